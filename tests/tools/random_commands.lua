-- SPDX-License-Identifier: GPL-2.0-only
-- Random commands that count the events of one program: --seed chooses filters, keys, targets and what is counted.
-- --dry-run prints the commands: "case I KEYS VALUES PROFILER ARGS...". KEYS and VALUES are columns of its CSV.
-- Otherwise computes in plain Lua, from perf's samples, what each command must print: lines "I KEYS: VALUES".

-- The fields are those that a command may compute with. wide: 64 bits without a sign. only: when a task switches for
-- the last time, its parent may be reaping it, so one tracer may see its ids and the next one not. sum: the only field
-- that adds up exactly. counted: programs can count it, but not capture it.
local EVENTS = {
  { name = 'raw_syscalls:sys_enter', fields = { 'id' } },
  { name = 'raw_syscalls:sys_exit', fields = { 'id', 'ret' } },
  { name = 'sched:sched_switch', fields = { 'prev_pid', 'prev_prio', 'prev_state', 'next_pid', 'next_prio' },
    texts = { 'prev_comm', 'next_comm' },
    only = { text = 'prev_state < 16', value = function(ev) return tonumber(ev.prev_state) < 16 end } },
  { name = 'sched:sched_wakeup_new', fields = { 'pid', 'prio', 'target_cpu' }, texts = { 'comm' } },
  { name = 'sched:sched_process_fork', fields = { 'parent_pid', 'child_pid' }, counted = true },
  { name = 'exceptions:page_fault_user', fields = { 'address', 'ip', 'error_code' }, wide = true, sum = 'error_code' },
  { name = 'syscalls:sys_exit_clock_nanosleep', fields = { 'ret' } },
}
--- Numbers with which fields are compared; those of threads come after the number of the program.
local CONSTANTS = {
  id = { 9, 15, 39, 56, 61, 202, 230, 234 }, ret = { -1, 0, 1, 2, 4096 }, prev_state = { 0, 1, 2 },
  error_code = { 4, 5, 6, 7, 20, 21 }, address = { 4096, 2 ^ 46 }, ip = { 2 ^ 46 }, _cpu = { 0, 1 },
  target_cpu = { 0, 1 }, prio = { 0, 120 }, prev_prio = { 0, 120 }, next_prio = { 0, 100, 120 },
}
local AFTER_PID = { 0, 1, 5, 9, 14 }
local OF_SAMPLE = { '_cpu', '_tid', '_pid' }
local COMPARE = { '==', '!=', '<', '>', '<=', '>=' }

local state = 0
local function random(n)
  state = (state * 16807) % 2147483647
  return state % n + 1
end
local function pick(list) return list[random(#list)] end

-- Expressions: their text in C, and a function that returns their value. No value overflows its type in C, nor 2^53,
-- beyond which Lua's numbers are not exact.

local function field_of(event, adds_up)
  local name = adds_up and event.sum or random(3) == 1 and pick(OF_SAMPLE) or pick(event.fields)
  return { text = name, value = function(ev) return tonumber(ev[name]) end, field = name, of = name }
end

local program -- its process

--- Returns a number with which to compare values of a field.
local function constant(field) return CONSTANTS[field] and pick(CONSTANTS[field]) or program + pick(AFTER_PID) end

--- Returns an expression. few: it has so many values, from 0; of: its values are like those of this field.
local function number(event, depth, adds_up)
  local one = field_of(event, adds_up)
  local a, value, n = one.text, one.value, random(9)
  if depth == 0 then return one end
  local choice = random(event.wide and 4 or 6)
  if choice == 1 then return one end
  if choice == 2 then
    return { text = ('%s * %d'):format(a, n), value = function(ev) return value(ev) * n end, of = one.of }
  end
  if choice == 3 then
    return { text = ('%s / %d'):format(a, n), value = function(ev)
      local x = value(ev)
      return (x - math.fmod(x, n)) / n
    end, of = one.of }
  end
  if choice == 4 then
    return { text = ('%s %% %d'):format(a, n), value = function(ev) return math.fmod(value(ev), n) end, few = n }
  end
  local other = number(event, depth - 1)
  local second = other.value
  if choice == 5 then
    return { text = ('(%s) + (%s)'):format(a, other.text), value = function(ev) return value(ev) + second(ev) end,
      of = one.of }
  end
  return { text = ('(%s) - (%s)'):format(a, other.text), value = function(ev) return value(ev) - second(ev) end,
    of = one.of }
end

local function compare(sign, a, b)
  if sign == '==' then return a == b end
  if sign == '!=' then return a ~= b end
  if sign == '<' then return a < b end
  if sign == '>' then return a > b end
  if sign == '<=' then return a <= b end
  return a >= b
end

--- Returns a condition on text: `lua` is the same in a script.
local function text_condition(event, name)
  local field, choice = pick(event.texts or { '_comm' }), random(3)
  if choice == 1 then
    local letter = pick { 's', 'r', name:sub(1, 1) }
    local function value(ev) return ev[field]:sub(1, 1) == letter end
    return { text = ('%s ~ "%s*"'):format(field, letter), value = value }
  end
  local sign, wanted = choice == 2 and '==' or '!=', pick { name, 'bash', 'swapper' }
  return { text = ('%s %s "%s"'):format(field, sign, wanted), value = function(ev)
    return compare(sign, ev[field], wanted)
  end, lua = ("ev.%s %s '%s'"):format(field, sign == '!=' and '~=' or sign, wanted) }
end

local function condition(event, name, depth)
  local choice = depth == 0 and 1 or random(4)
  if choice == 1 and random(event.texts and 3 or 6) == 1 then return text_condition(event, name) end
  if choice == 1 then
    local a, sign = number(event, random(2) - 1), pick(COMPARE)
    local n = a.few and random(a.few) - 1 or constant(a.of)
    local function value(ev) return compare(sign, a.value(ev), n) end
    return { text = ('%s %s %d'):format(a.text, sign, n), value = value,
      lua = a.field and ('ev.%s %s %d'):format(a.field, sign == '!=' and '~=' or sign, n) }
  end
  local a, b = condition(event, name, depth - 1), condition(event, name, depth - 1)
  if choice == 2 then
    local function value(ev) return a.value(ev) and b.value(ev) end
    return { text = ('(%s) && (%s)'):format(a.text, b.text), value = value,
      lua = a.lua and b.lua and ('(%s) and (%s)'):format(a.lua, b.lua) }
  end
  if choice == 3 then
    local function value(ev) return a.value(ev) or b.value(ev) end
    return { text = ('(%s) || (%s)'):format(a.text, b.text), value = value,
      lua = a.lua and b.lua and ('(%s) or (%s)'):format(a.lua, b.lua) }
  end
  return { text = ('!(%s)'):format(a.text), value = function(ev) return not a.value(ev) end,
    lua = a.lua and ('not (%s)'):format(a.lua) }
end

-- Commands -----------------------------------------------------------------------------------------

--- A command.
---@class RandomCase
---@field args string[]
---@field keys string columns of the CSV, joined by commas
---@field values string columns that add up
---@field attributes? string of its events
---@field whole? boolean it has no intervals
---@field on table<string, fun(ev: Ev)> by event: what the command does
---@field sums table<string, number[]> by key

--- By profiler: a function that completes a command and returns what it does with an event.
local KINDS = {}

--- Adds numbers to the sums of a key.
local function add(case, key, ...)
  local sums = case.sums[key]
  if not sums then
    sums = {}
    case.sums[key] = sums
  end
  for i = 1, select('#', ...) do sums[i] = (sums[i] or 0) + select(i, ...) end
end

local function text_of(value) return type(value) == 'number' and ('%.0f'):format(value) or tostring(value) end

--- Returns a member of an event as a key in Lua code.
local function member(event)
  local choice = random(5)
  if choice == 1 then return { lua = 'ev._comm', value = function(ev) return ev._comm end } end
  if choice == 2 and event.texts then
    local name = pick(event.texts)
    return { lua = 'ev.' .. name, value = function(ev) return ev[name] end }
  end
  local one = field_of(event)
  return { lua = 'ev.' .. one.field, value = function(ev) return text_of(one.value(ev)) end }
end

--- exec counts or adds up, sometimes under a condition, which programs may not understand.
function KINDS.exec(case, event, name)
  local keys, lua = {}, {}
  for i = 1, random(3) do
    local one
    repeat one = member(event) until not lua[one.lua]
    keys[i], lua[i], lua[one.lua] = one.value, one.lua, true
  end
  local when, number_of, call = nil, nil, 'count'
  if random(2) == 1 then
    number_of = field_of(event, true)
    -- To quantiles, negative numbers are 0.
    call = number_of.field ~= 'ret' and random(2) == 1 and 'quantiles' or 'sum'
    lua[0] = 'ev.' .. number_of.field
  end
  local code = ('%s(%s)'):format(call, table.concat(lua, ', ', lua[0] and 0 or 1))
  if random(2) == 1 then
    repeat when = condition(event, name, random(3) - 1) until when.lua
    if random(4) == 1 and not event.counted then
      local extra, field = when, pick(event.fields)
      when = { lua = ('(%s) and ev.%s %% 3 > 0'):format(extra.lua, field), value = function(ev)
        return extra.value(ev) and tonumber(ev[field]) % 3 > 0
      end }
    end
    code = ('if %s then %s end'):format(when.lua, code)
  end
  table.insert(case.args, code)
  local columns = {}
  for i = 1, #keys do columns[i] = i + 2 end
  case.keys, case.values = table.concat(columns, ','), #keys + 3 .. (call == 'quantiles' and ',' .. #keys + 4 or '')
  return function(ev)
    if when and not when.value(ev) then return end
    local parts = {}
    for i, value in ipairs(keys) do parts[i] = value(ev) end
    local key = table.concat(parts, ',')
    if call == 'quantiles' then
      add(case, key, 1, number_of.value(ev))
    else
      add(case, key, number_of and number_of.value(ev) or 1)
    end
  end
end

--- top counts by an expression, or adds up another one.
function KINDS.top(case, event)
  local key, sum = number(event, 1), random(2) == 1 and number(event, 1, true) or nil
  case.attributes = ("key='%s'/"):format(key.text)
  if sum then case.attributes = ("%stop-by='%s'/"):format(case.attributes, sum.text) end
  case.keys, case.values = '3', '4'
  return function(ev) add(case, text_of(key.value(ev)), sum and sum.value(ev) or 1) end
end

--- num-dist has the number and the sum of an expression.
KINDS['num-dist'] = function(case, event)
  local one = number(event, 1, true)
  case.attributes = ("num='%s'/"):format(one.text)
  local name, by_cpu = event.name:match ':(.*)', random(2) == 1 and not event.counted
  case.keys, case.values = '3', '4,5'
  if by_cpu then
    table.insert(case.args, '--perins')
    case.keys, case.values = '3,4', '5,6'
  end
  return function(ev, is_thread)
    add(case, by_cpu and ('%d,%s'):format(is_thread and ev._tid or ev._cpu, name) or name, 1, one.value(ev))
  end
end

--- sql reads all events, and counts afterwards.
function KINDS.sql(case, event)
  local key, sum = field_of(event), field_of(event, true)
  table.insert(case.args, '--query')
  table.insert(case.args, ('SELECT %s, count(*), sum(%s) FROM %s GROUP BY 1'):format(key.text, sum.text,
    event.name:match ':(.*)'))
  case.keys, case.values, case.whole = '3', '4,5', true
  return function(ev) add(case, text_of(key.value(ev)), 1, sum.value(ev)) end
end

--- multi-trace pairs the calls of each thread, or those of each thread and every few numbers.
KINDS['multi-trace'] = function(case)
  local n = random(4)
  local key = n > 1 and ('common_pid * 8 + id %% %d'):format(n) or 'common_pid'
  local waiting = {}
  case.attributes = ("key='%s'/"):format(key)
  table.insert(case.args, '--perins')
  case.keys, case.values = '3', '6'
  local function key_of(ev) return text_of(n > 1 and ev._tid * 8 + math.fmod(tonumber(ev.id), n) or ev._tid) end
  return function(ev) waiting[key_of(ev)] = true end, function(ev)
    local key_now = key_of(ev)
    if waiting[key_now] then add(case, key_now, 1) end
    waiting[key_now] = nil
  end
end

local ORDER = { 'exec', 'exec', 'exec', 'top', 'top', 'num-dist', 'sql', 'multi-trace' }
local ENTER, EXIT = EVENTS[1], EVENTS[2]

--- Makes a command about the process `pid` and what it starts. Names of other tasks differ.
local function make(pid, name)
  local kind = pick(ORDER)
  local case = { kind = kind, args = {}, sums = {}, on = {} }
  local is_pairs = kind == 'multi-trace'
  local event = is_pairs and ENTER or pick(EVENTS)
  while kind == 'sql' and event.counted do event = pick(EVENTS) end
  local target = random(4)
  -- A thread's last switch, and what follows its exit, are no events of the thread.
  if target == 1 and not event.name:match '^raw' and not event.name:match 'fork' then target = 2 end
  local on, on_exit = KINDS[kind](case, event, name)
  local filters, tests = {}, {}
  if target > 1 then
    -- The kernel evaluates the first part, so that few events of others arrive.
    filters[1] = ('common_pid >= %d && common_pid < %d && _comm == "%s"'):format(pid, pid + 1000, name)
    tests[1] = function(ev) return ev._tid >= pid and ev._tid < pid + 1000 end
  end
  if random(3) > 1 then
    -- The two events of a pair have the same number.
    local number_only = { name = event.name, fields = { 'id' } }
    local one = condition(is_pairs and number_only or event, name, random(3) - 1)
    filters[#filters + 1], tests[#tests + 1] = ('(%s)'):format(one.text), one.value
  end
  if event.only then
    filters[#filters + 1], tests[#tests + 1] = event.only.text, event.only.value
  end
  local cpu = target == 3 and random(2) == 1 and 0 or nil
  if cpu and not is_pairs then
    table.insert(case.args, '-C')
    table.insert(case.args, '0')
    table.insert(tests, function(ev) return ev._cpu == cpu end)
  end
  local filter = table.concat(filters, ' && ')
  local by_option = random(3) == 1 and filter ~= ''
  if by_option then
    table.insert(case.args, '--filter')
    table.insert(case.args, filter)
  end
  local attributes = case.attributes or ''
  local function handle(one, call)
    local quoted = not by_option and filter ~= '' and ('"%s"'):format((filter:gsub('["\\]', '\\%0'))) or ''
    table.insert(case.args, '-e')
    table.insert(case.args, ('%s/%s/%s'):format(one.name, quoted, attributes))
    case.on[one.name] = function(ev)
      for _, test in ipairs(tests) do
        if not test(ev) then return end
      end
      call(ev, target == 1)
    end
  end
  handle(event, on)
  if is_pairs then handle(EXIT, on_exit) end
  if target == 1 then
    local how = random(3)
    table.insert(case.args, how == 1 and '-t' or '-p')
    table.insert(case.args, tostring(pid))
    if how == 2 then table.insert(case.args, '--no-inherit') end
    if how < 3 then table.insert(tests, function(ev) return ev._tid == pid end) end
  end
  table.insert(case.args, '-i')
  table.insert(case.args, not case.whole and random(4) == 1 and '150' or '100s')
  return case
end

local function quoted(word) return "'" .. word:gsub("'", "'\\''") .. "'" end

return {
  summary = 'Random commands, and what they must print',
  options = {
    seed = { type = 'integer', required = true, min = 1, help = 'of the random numbers' },
    cases = { type = 'integer', default = 8, min = 1, help = 'number of commands' },
    pid = { type = 'integer', required = true, help = 'the program' },
    name = { type = 'string', required = true, help = 'its name' },
  },
  start = function(opt, out)
    state, program = opt.seed, opt.pid
    for _ = 1, 10 do random(1) end
    local cases, handlers = {}, {}
    for i = 1, opt.cases do cases[i] = make(opt.pid, opt.name) end
    if opt.dry_run then
      for i, case in ipairs(cases) do
        local words = {}
        for k, word in ipairs(case.args) do words[k] = quoted(word) end
        out:print(('case %d %s %s %s %s'):format(i, case.keys, case.values, case.kind, table.concat(words, ' ')))
      end
    end
    for _, event in ipairs(EVENTS) do
      handlers[('%s/COMM == "%s"/'):format(event.name, opt.name)] = function(ev)
        for _, case in ipairs(cases) do
          local call = case.on[event.name]
          if call then call(ev) end
        end
      end
    end
    handlers.stop = function()
      for i, case in ipairs(cases) do
        for key, sums in pairs(case.sums) do
          local parts = {}
          for k, sum in ipairs(sums) do parts[k] = text_of(sum) end
          out:print(('%d %s: %s'):format(i, key, table.concat(parts, ',')))
        end
      end
    end
    return handlers
  end,
}
