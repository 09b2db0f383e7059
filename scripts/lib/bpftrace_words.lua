-- SPDX-License-Identifier: GPL-2.0-only
--- Words of bpftrace in one-liners: turns them into Lua (`@x[comm] = count()` into `count(ev._comm)`), or says what to
--- write instead.
---
---   words.translate { 'if (pid != 1 && args->ret > 0) then @[comm] = sum(args->ret) end' }
---   -- 'if (ev._pid ~= 1 and ev.ret > 0) then sum(ev.ret, ev._comm) end'
local diagnostic = require 'bindings.base.diagnostic'
local lua_source = require 'bindings.base.lua_source'

local words = {}

--- Variables of bpftrace. A program that assigns one of these names has a variable of its own.
local VARIABLES = { pid = 'ev._pid', tid = 'ev._tid', comm = 'ev._comm', cpu = 'ev._cpu', nsecs = 'ev._time',
  probe = 'ev._event', func = 'ev.func', ustack = 'stack', kstack = 'stack' }
local SIGNS = { ['!='] = '~=', ['&&'] = ' and ', ['||'] = ' or ' }

--- What has an equivalent elsewhere: what is wrong, and what to write. %s is the word.
local ELSEWHERE = {
  BEGIN = { 'BEGIN is an option here', "--begin 'CODE' runs before the first event" },
  END = { 'END is an option here', "--end 'CODE' runs at the end, before the tables" },
  interval = { 'an interval is an option here', '-i 1s prints the tables every second and clears them' },
  delete = { 'Lua has no delete()', 'write NAME[KEY] = nil' },
  clear = { 'tables are printed and cleared at each -i', 'write -i 1s' },
  zero = { 'tables are printed and cleared at each -i', 'write -i 1s' },
  retval = { 'a result is a field', "write ev.retval, with -e kretprobe:FUNCTION" },
  cgroup = { 'cgroups are an option', 'write --cgroups NAME, or the key in top --comm' },
  uid = { 'events have no user', 'write -p, or --filter' },
  elapsed = { 'times are since the run began', 'write ev._time' },
  kaddr = { 'there is no kaddr()', 'write profscript kcore' },
  ntop = { 'ntop() is ip() here', 'write ip(ev.saddr)' },
  strftime = { 'there is no strftime()', 'tables have the time of day, and trace has it in each line' },
  stddev = { 'stddev() is a column of stats() here', 'write stats(VALUE, KEY)' },
  variance = { 'variance() is a column of stats() here', 'write stats(VALUE, KEY)' },
  str = { 'str() takes the name of a field', 'write str(ev.NAME)' },
  user = { 'user() takes a type in quotes and the name of a field', "write user('u32', ev.NAME)" },
  strerror = { 'strerror() is errno() here', 'write errno(ev.ret)' },
  system = { 'system() is os.execute() here', "write os.execute 'COMMAND'" },
}
for i = 0, 5 do
  ELSEWHERE['arg' .. i] = { 'a probe names its arguments',
    ("write -e 'kprobe:FUNCTION(NAME=$arg%d)' and ev.NAME"):format(i + 1) }
end
local PROBES = { tracepoint = true, kprobe = true, kretprobe = true, uprobe = true, uretprobe = true, usdt = true,
  profile = true, software = true, hardware = true }
local AGGREGATIONS = { count = true, sum = true, avg = true, min = true, max = true, hist = true, lhist = true,
  quantiles = true, stats = true }

local KEYWORDS = {}
for name in ([[and break do else elseif end false for function goto if in local nil not or repeat return then true
  until while]]):gmatch '%a+' do KEYWORDS[name] = true end

--- Returns the source of a field.
local function field_source(name) return KEYWORDS[name] and ("ev['%s']"):format(name) or 'ev.' .. name end

--- Returns the position after the bracket that closes the one at `at`.
local function after_bracket(source, at)
  local depth = 0
  while at <= #source do
    local after, token = lua_source.next(source, at)
    if token == '(' or token == '[' or token == '{' then depth = depth + 1 end
    if token == ')' or token == ']' or token == '}' then
      depth = depth - 1
      if depth == 0 then return after end
    end
    at = after
  end
end

local function refuse(source, at, message, hint)
  error(diagnostic.new('one-liner', source, at, message, hint), 0)
end

local translate -- source, own names

--- Returns the variable that holds the values of a map.
local function variable(name) return 'map_' .. name:sub(2) end

--- Adds the maps that have values, `@x = 1` or `@x[key] = 1`, to the names of a program: '@x' = whether it has keys.
local function add_maps(own, source)
  local at = 1
  while at <= #source do
    local after, token = lua_source.next(source, at)
    if token == '@' then
      local name, stop = source:match('^(@[%w_]*)()', at)
      local is_keyed = source:sub(stop, stop) == '['
      after = stop
      stop = is_keyed and after_bracket(source, stop) or stop
      local kind = source:match('^%s*=%s*([%a_]+)%s*%(', stop)
      if source:find('^%s*=[^=]', stop) and not AGGREGATIONS[kind] then own[name] = is_keyed and 'keys' or 'value' end
    end
    at = after
  end
end

--- Returns whether a list of keys has more than one.
local function has_several(keys)
  local at, depth = 1, 0
  while at <= #keys do
    local after, token = lua_source.next(keys, at)
    if token == '(' or token == '[' or token == '{' then depth = depth + 1 end
    if token == ')' or token == ']' or token == '}' then depth = depth - 1 end
    if token == ',' and depth == 0 then return true end
    at = after
  end
  return false
end

--- Returns a map, `@x[key]` with what is done to it, as a call or a variable, and the position after it.
local function map(source, at, own)
  local name, after = source:match('^(@[%w_]*)()', at)
  local keys = ''
  if source:sub(after, after) == '[' then
    local stop = after_bracket(source, after) or refuse(source, after, "the '[' is not closed")
    keys, after = translate(source:sub(after + 1, stop - 2), own), stop
  end
  if own[name] == 'keys' or own[name] and keys == '' then
    local key = has_several(keys) and ('map_key(%s)'):format(keys) or keys
    local text = key == '' and variable(name) or ('%s[%s]'):format(variable(name), key)
    local sign, stop = source:match('^%s*%+([+=])()', after)
    if not sign then return text, after end
    return ('%s = (%s or 0) + %s'):format(text, text, sign == '+' and '1' or ''), stop
  end
  local title = ('--[[%s]]'):format(name)
  local function call(kind, value)
    local list = value ~= '' and keys ~= '' and value .. ', ' .. keys or value .. keys
    return ('%s%s(%s)'):format(kind, title, list)
  end
  local stop = source:match('^%s*%+%+()', after)
  if stop then return call('count', ''), stop end
  local value
  value, stop = source:match('^%s*%+=%s*([^;\n}]+)()', after)
  if value then return call('sum', translate(value, own)), stop end
  local kind, paren = source:match('^%s*=%s*([%a_]+)%s*()%(', after)
  if AGGREGATIONS[kind] then
    stop = after_bracket(source, paren) or refuse(source, paren, ("the '(' after %s is not closed"):format(kind))
    return call(kind, translate(source:sub(paren + 1, stop - 2), own)), stop
  end
  refuse(source, at, ('%s has no values'):format(name), ('write %s%s = VALUE, or a function such as count()'):format(
    name, keys == '' and '' or ('[%s]'):format(keys)))
end

--- Returns the name of a field, without what stands for the event.
local function member_name(of, field)
  local name = (of and of .. '.' .. field or field):gsub('%->', '.')
  return (name:gsub('^ev%.', ''):gsub('^args%.', ''))
end

--- Returns what stands for a word, and the position after it; nil: the word stays.
local function word_at(source, at, after, token, own)
  local member, stop = source:match('^%s*%->%s*([%a_][%w_]*)()', after)
  if not member then member, stop = source:match('^%.([%a_][%w_]*)()', after) end
  if token == 'args' and member and not own.args or token == 'ev' and KEYWORDS[member] then
    local text = field_source(member)
    while true do -- what it points to
      local inner, after_inner = source:match('^%->([%a_][%w_]*)()', stop)
      if not inner then return text, stop end
      text, stop = ('%s.%s'):format(text, inner), after_inner
    end
  end
  if token == 'str' or token == 'join' then
    local of, field
    of, field, stop = source:match('^%s*%(%s*([%a_][%w_]*)%s*[%->.]+%s*([%a_][%w_.>-]*)[^()]*%)()', after)
    if not field then field, stop = source:match('^%s*%(%s*([%a_][%w_]*)%s*[,)]()', after) end
    if field and not own[of] then return ("str(ev, '%s')"):format(member_name(of, field)), stop end
  end
  if token == 'user' and not own.user then
    local kind, name
    kind, name, stop = source:match('^%s*%(%s*([\'"][%w_%s.]+[\'"])%s*,%s*([%a_][%w_.>-]*)%s*%)()', after)
    if name then return ("ev:user(%s, '%s')"):format(kind, member_name(nil, name)), stop end
  end
  if token == 'delete' then
    local paren, name = source:match('^%s*()%(%s*(@[%w_]*)%[', after)
    stop = own[name or ''] == 'keys' and after_bracket(source, paren)
    if stop then return translate(source:sub(paren + 1, stop - 2), own) .. ' = nil', stop end
  end
  local printed = token == 'print' and source:match('^%s*%(%s*(@[%w_]*)', after)
  if printed and not own[printed] then
    refuse(source, at, 'aggregations are printed at each -i and at the end', 'write --top N, or --sort COLUMN')
  end
  if (token == 'ksym' or token == 'usym') and not own[token] then
    stop = source:match('^%s*%(()', after)
    if stop then return token .. '(ev, ', stop end
  end
  if own[token] then return end
  if (token == 'kstack' or token == 'ustack') and source:find('^%s*%(%s*%d', after) then
    refuse(source, at, token .. ' takes no number of frames', ('write %s, and -e EVENT//max-stack=N/'):format(token))
  end
  if VARIABLES[token] then return VARIABLES[token], after end
  local elsewhere = ELSEWHERE[token]
  if elsewhere then refuse(source, at, elsewhere[1], elsewhere[2]) end
  if PROBES[token] and source:find('^:', after) then
    refuse(source, at, 'events stand after -e', ('write exec -e %s CODE'):format(
      (source:match('^[%w_:*.]+', at):gsub('^tracepoint:', ''))))
  end
end

--- Returns the names that a program assigns.
local function own_names(source)
  local names = {}
  for name in source:gmatch '%f[%w_]([%a_][%w_]*)%s*=%f[^=]' do names[name] = true end
  for list in source:gmatch '%f[%w_]local%s+([%w_%s,]+)' do
    for name in list:gmatch '[%a_][%w_]*' do names[name] = true end
  end
  for list in source:gmatch '%f[%w_]for%s+([%w_%s,]-)%s+in%f[^%w_]' do
    for name in list:gmatch '[%a_][%w_]*' do names[name] = true end
  end
  for list in source:gmatch 'function[%s%w_]*%(([%w_%s,]*)%)' do
    for name in list:gmatch '[%a_][%w_]*' do names[name] = true end
  end
  return names
end

function translate(source, own)
  local parts, at, before = {}, 1, nil
  while at <= #source do
    local after, token = lua_source.next(source, at)
    local text = source:sub(at, after - 1)
    local pair = source:sub(at, at + 1)
    if token == '@' then
      text, after = map(source, at, own)
    elseif token == '$' then
      refuse(source, at, 'variables have no $ here', 'write local NAME = VALUE, or NAME = VALUE to keep it')
    elseif token and SIGNS[pair] then
      text, after = SIGNS[pair], at + 2
    elseif token == '+' and (pair == '++' or pair == '+=') then
      local name = source:sub(1, at - 1):match '([%w_]+)%s*$' or 'n'
      refuse(source, at, ('Lua has no %s'):format(pair), ('write %s = %s + 1'):format(name, name))
    elseif token == '!' then
      text = 'not '
    elseif token and token:find '^[%a_]' and before ~= '.' and before ~= ':' then
      local new, stop = word_at(source, at, after, token, own)
      if new then text, after = new, stop end
    end
    parts[#parts + 1] = text
    before, at = token or before, after
  end
  return table.concat(parts)
end

local function translate_whole(source, own)
  local filter = source:match '^%s*()/.-/%s*{'
  if filter then refuse(source, filter, 'a filter stands after its event', "write exec -e 'EVENT/FILTER/' CODE") end
  local block = source:match '^%s*if%s*%b()%s*(){'
  if block then refuse(source, block, 'blocks have no braces in Lua', 'write if CONDITION then CODE end') end
  local inner = source:match '^%s*(%b{})%s*;?%s*$'
  return translate(inner and inner:sub(2, -2) or source, own)
end

--- Returns parts of a one-liner without words of bpftrace; line numbers stay the same.
---@param sources string[]
---@param known? table<string, any> variables of other one-liners
---@return string[]? sources nil: one has a word that has no equivalent in place
---@return string? message three lines, with a caret
---@return table<string, 'keys'|'value'> maps the maps that have values, such as '@x'; their variables are map_x
function words.translate(sources, known)
  local own, list, maps = own_names(table.concat(sources, '\n')), {}, {}
  for name, value in pairs(known or {}) do
    own[name] = true
    local map_name = type(value) == 'table' and name:match '^map_(.*)'
    if map_name then own['@' .. map_name] = 'keys' end
  end
  for _, source in ipairs(sources) do add_maps(maps, source) end
  for name, kind in pairs(maps) do own[name] = kind end
  for i, source in ipairs(sources) do
    local ok, result = pcall(translate_whole, source, own)
    if not ok and type(result) ~= 'table' then error(result, 0) end
    if not ok then return nil, diagnostic.caret(result), maps end
    list[i] = result
  end
  return list, nil, maps
end

return words
