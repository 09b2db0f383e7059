-- SPDX-License-Identifier: GPL-2.0-only
--- The pairs of multi-trace, by the rules in their simplest form: luajit pairing.lua SEED TEXT DIR. The seed
--- selects stages, keys, roles and --cycle for the scheduler events in TEXT, whose lines are
--- "TID CPU TIME_NS EVENT: FIELDS". DIR/args gets the options, one per line, DIR/pairs "TIME LATENCY" of each
--- pair, DIR/counts "FIRST SECOND N" for each two events, "FIRST N" for starts that are left, and
--- "replaced N unstarted N".
local bit = require 'bit'

math.randomseed(tonumber(arg[1]))
for _ = 1, 10 do math.random() end
local function one_of(list) return list[math.random(#list)] end

-- The fields that name a task or a CPU, by event.
local EVENTS = {
  { name = 'sched_wakeup', task = { '' }, cpu = { 'target_cpu' } },
  { name = 'sched_wakeup_new', task = { '' }, cpu = { 'target_cpu' } },
  { name = 'sched_migrate_task', task = { '' }, cpu = { 'orig_cpu', 'dest_cpu' } },
  { name = 'sched_switch', task = { 'prev_', 'next_' }, cpu = {} },
}
local kind = one_of { 'pid', 'pid', 'rest', 'comm', 'cpu', 'instance' }
local rest, by_name = math.random(2, 9), {}

--- The key of an event as an expression, and how to get it from a line.
local function key_of(event)
  if kind == 'instance' then return nil, function(e) return e.cpu end end
  if kind == 'cpu' then
    local field = one_of(event.cpu)
    return field, function(e) return tonumber(e.text:match(' ' .. field .. '=(%d+)')) end
  end
  local prefix = one_of(event.task)
  if kind == 'comm' then
    return prefix .. 'comm', function(e) return e.text:match(' ' .. prefix .. 'comm=(.-) ' .. prefix .. 'pid=') end
  end
  local function pid(e) return tonumber(e.text:match(' ' .. prefix .. 'pid=(%d+)')) end
  if kind == 'pid' then return prefix .. 'pid', pid end
  return ('%spid %% %d'):format(prefix, rest), function(e) return pid(e) % rest end
end

--- The role of an event, in the same two forms.
local function role_of(event)
  if math.random(3) > 1 then return nil, function() return 3 end end
  local field, shift, always = one_of(event.task) .. 'pid', math.random(0, 2), math.random(0, 2)
  return ('(%s >> %d) | %d'):format(field, shift, always), function(e)
    return bit.band(bit.bor(bit.rshift(tonumber(e.text:match(' ' .. field .. '=(%d+)')), shift), always), 3)
  end
end

local cycle = math.random(2) == 1
local n = math.random(cycle and 1 or 2, 3)
local stages, sees_switches = {}, false
local chosen = {}
for _, event in ipairs(EVENTS) do
  if kind ~= 'cpu' or #event.cpu > 0 then table.insert(chosen, math.random(#chosen + 1), event) end
end
for i, event in ipairs(chosen) do
  event.stage = i <= n and i or math.random(n + 1) -- n + 1: in no stage
  if event.stage <= n then
    local key, role
    key, event.key = key_of(event)
    role, event.role = role_of(event)
    local text = ('sched:%s//%s%s'):format(event.name, key and ('key="%s"/'):format(key) or '',
      role and ('role="%s"/'):format(role) or '')
    stages[event.stage] = (stages[event.stage] and stages[event.stage] .. ',' or '') .. text
    by_name[event.name] = event
    sees_switches = sees_switches or event.name == 'sched_switch'
  end
end

local function write(name, lines)
  local file = assert(io.open(arg[3] .. '/' .. name, 'w'))
  for _, line in ipairs(lines) do file:write(line, '\n') end
  file:close()
end
local options = cycle and { '--cycle' } or {}
for _, stage in ipairs(stages) do
  options[#options + 1] = '-e'
  options[#options + 1] = stage
end
write('args', options)

-- The rules.
local stored, running, pairs_, counts, replaced, unstarted = {}, {}, {}, {}, 0, 0
for line in io.lines(arg[2]) do
  local tid, cpu, time, name, text = line:match '^(%d+) (%d+) (%d+) sched:([%w_]+):(.*)$'
  local event = by_name[name]
  if event then
    local e = { name = name, cpu = tonumber(cpu), time = time, text = ' ' .. text, stage = event.stage }
    local key, role = event.key(e), event.role(e)
    local pid, target = tonumber(text:match ' pid=(%d+)'), tonumber(text:match 'target_cpu=(%d+)')
    local is_needed = name ~= 'sched_wakeup' or pid ~= tonumber(tid) and not (sees_switches and running[target] == pid)
    if name == 'sched_switch' then running[e.cpu] = tonumber(text:match 'next_pid=(%d+)') end
    if (e.stage > 1 or cycle) and role >= 2 then
      local first = stored[key]
      stored[key] = nil
      if not first then
        unstarted = unstarted + 1
      elseif first.stage % n + 1 == e.stage and first.time < time then
        pairs_[#pairs_ + 1] = ('%s %d'):format(time, tonumber(time) - tonumber(first.time))
        local what = first.name .. ' ' .. name
        counts[what] = (counts[what] or 0) + 1
      end
    end
    if (e.stage < n or cycle) and role % 2 == 1 and is_needed then
      if stored[key] then replaced = replaced + 1 end
      stored[key] = e
    end
  end
end
for _, first in pairs(stored) do counts[first.name] = (counts[first.name] or 0) + 1 end
table.sort(pairs_)
write('pairs', pairs_)
local lines = { ('replaced %d unstarted %d'):format(replaced, unstarted) }
for what, count in pairs(counts) do lines[#lines + 1] = ('%s %d'):format(what, count) end
table.sort(lines)
write('counts', lines)
