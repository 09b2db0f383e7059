-- SPDX-License-Identifier: GPL-2.0-only
--- `profscript check FILE...`: loads scripts without starting them, which finds what depends on no event.
local catalog = require 'bindings.select.catalog'
local contract = require 'bindings.options.contract'
local event_fields = require 'lib.engines.event_fields'
local failure = require 'bindings.base.failure'
local lua_source = require 'bindings.base.lua_source'
local nearest = require 'bindings.base.nearest'
local scripts = require 'bindings.options.scripts'
local sys = require 'bindings.base.sys'
local views = require 'bindings.view.views'

local check_script = {}

--- Returns the text of an error, without the name of the program.
local function text_of(problem)
  return (tostring(failure.is(problem) and problem.message or problem):gsub('^profscript: ', ''))
end

--- Returns what is wrong with the members of modules that a script uses, such as `counter.create`.
local function wrong_members(source, file)
  local modules, lines, at, line = {}, {}, 1, 1
  local pattern = 'local%s+([%w_]+)%s*=%s*require%s*%(?%s*[\'"](lib%.[%w_.]+)[\'"]%s*%)?%s*([.:]?)'
  for name, module, rest in source:gmatch(pattern) do
    local ok, loaded = pcall(require, module)
    modules[name] = ok and rest == '' and type(loaded) == 'table' and { name = module, of = loaded } or nil
  end
  local before
  while at <= #source do
    local after, token = lua_source.next(source, at)
    local module = modules[token]
    local member = module and before ~= '.' and before ~= ':' and source:match('^%.([%a_][%w_]*)', after)
    if member and module.of[member] == nil then
      lines[#lines + 1] = ("%s:%d: %s has no '%s'%s"):format(file, line, module.name, member,
        nearest.hint(member, nearest.keys(module.of)))
    end
    line = line + select(2, source:sub(at, after - 1):gsub('\n', ''))
    before, at = token or before, after
  end
  return lines
end

--- Returns whether an error is about this kernel or user, and not about the script.
local function is_unavailable(problem) return failure.is(problem) and problem.code == 3 end

--- Returns what is wrong with a handler, as far as the formats of its events say.
local function wrong_handler(script, handler)
  local key, start = handler.key, script.profiler.start
  local place = ('%s:%d: '):format(script.path, handler.line)
  if contract.LIFE[key] then return end
  if not key:find ':' then
    local known = nearest.keys(contract.LIFE)
    return nearest.find(key, known) and ("%sunknown handler '%s'%s"):format(place, key, nearest.hint(key, known)) or nil
  end
  local ok, events = pcall(event_fields.of, { key }, { name = 'check' })
  if not ok then return not is_unavailable(events) and place .. text_of(events) or nil end
  local known = {}
  for i, event in ipairs(events) do
    local strings = {}
    for name in pairs(event.view.strings or {}) do strings[name] = true end
    for _, name in ipairs(event.strings) do strings[name] = true end
    known[i] = { name = event.name, fields = event.view.names, texts = event.texts, strings = strings,
      others = event.strings }
  end
  return contract.check_fields(start, known, views.METHODS, handler.node)
end

--- Returns the mistakes that the formats of events tell, if this user may read them. Nothing is started.
local function wrong_uses(script)
  local lines, start = {}, script.profiler.start
  if script.profiler.events ~= false and not contract.returns(start) then
    lines[1] = ('%s:%d: start returns nothing; it returns a table of handlers'):format(script.path,
      debug.getinfo(start, 'S').linedefined)
  end
  local has_formats = catalog.machine():formats()
  for _, handler in ipairs(has_formats and contract.written_handlers(start) or {}) do
    lines[#lines + 1] = wrong_handler(script, handler)
  end
  return lines
end

--- Checks one script.
---@param given string name or path
---@return string? problem the lines of all mistakes found; nil: none
function check_script.problem(given)
  local script, message = scripts.new(sys, arg.data_dir):load(given)
  if message and message:find(scripts.MODULE, 1, true) then return end -- which scripts require
  if not script then return (message:gsub('^profscript: ', '')) end
  local f = io.open(script.path)
  local lines = wrong_members(f and f:read '*a' or '', script.path)
  if f then f:close() end
  if debug.getinfo(script.profiler.start, 'S').what == 'Lua' then
    for _, line in ipairs(wrong_uses(script)) do lines[#lines + 1] = line end
  end
  return #lines > 0 and table.concat(lines, '\n') or nil
end

local INEXACT = 'warning: the sum is not exact beyond 2^53, so different keys may be the same number; compute it with '
  .. "64-bit integers, as in ev:u64 'dev' * 0x100000000 + ev.sector"
local LEAST = 2 ^ 31 -- a factor that makes room for another number of 32 bits
local APART = { [','] = true, ['('] = true, [')'] = true, ['['] = true, [']'] = true, ['='] = true, [';'] = true,
  ['then'] = true, ['return'] = true, ['end'] = true, ['do'] = true }

--- Returns the factor at `at`, such as 0x100000000 or 2 ^ 32; nil: it is an integer of 64 bits, or not a constant.
local function factor(source, at)
  local base, exponent = source:match('^%s*(%d[%w]*)%s*%^%s*(%d+)', at)
  if base then return (tonumber(base) or 0) ^ tonumber(exponent) end
  return tonumber(source:match('^%s*(%d[%w.]*)', at))
end

--- Returns warnings about a script: sums such as `ev.dev * 2 ^ 32 + ev.sector`, which put two numbers into one. Beyond
--- 2^53 it is not exact.
---@param file string name of the script
---@return string[] lines
function check_script.warnings(file)
  local f = io.open(file)
  local source = f and f:read '*a' or ''
  if f then f:close() end
  local lines, at, line = {}, 1, 1
  local product, has_sum, is_wide
  while at <= #source do
    local after, token = lua_source.next(source, at)
    token = token or ''
    if APART[token] then product, has_sum, is_wide = nil, false, false end
    if token == '*' and (factor(source, after) or 0) >= LEAST then product = line end
    has_sum, is_wide = has_sum or token == '+', is_wide or token == 'u64' or token:find '^%d.*[lL]$' ~= nil
    if product and has_sum and not is_wide then
      lines[#lines + 1] = ('%s:%d: %s'):format(file, product, INEXACT)
      product = nil
    end
    line = line + select(2, source:sub(at, after - 1):gsub('\n', ''))
    at = after
  end
  return lines
end

return check_script
