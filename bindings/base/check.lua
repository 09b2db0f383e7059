-- SPDX-License-Identifier: GPL-2.0-only
--- Checks of arguments that scripts pass. Errors point at the line of the caller's caller.
local ffi = require 'ffi'
local nearest = require 'bindings.base.nearest'

local floor, getmetatable, istype, type = math.floor, getmetatable, ffi.istype, type
local INT64, UINT64 = ffi.typeof 'int64_t', ffi.typeof 'uint64_t'
local EXACT = 2 ^ 53
local check = {}

--- Returns whether a value is an integer of 64 bits.
---@param value any
---@return boolean
function check.is_wide(value) return type(value) == 'cdata' and (istype(INT64, value) or istype(UINT64, value)) end

--- Raises an error if a number, as a key, may stand for several integers of 64 bits: from 2^53 on, not each is a number
--- of Lua.
---@param key number
---@param level integer of the error
function check.exact_key(key, level)
  if not (key >= EXACT and key < 2 ^ 64 or key <= -EXACT and key >= -2 ^ 63) then return end
  error(('the number %.0f cannot be a key: numbers from 2^53 on are not exact, so other keys are the same number; '
    .. "compute it with 64-bit integers, as in ev:u64 'dev' * 0x100000000 + ev.sector"):format(key), level + 1)
end

--- Formats a value for a message.
---@param value any
---@return string
function check.shown(value)
  local kind = type(value)
  if kind == 'string' then return ("'%s'"):format(value) end
  if kind == 'number' or kind == 'nil' or kind == 'boolean' then return tostring(value) end
  return kind == 'cdata' and tonumber(value) and tostring(value):gsub('U?LL$', '') or 'a ' .. kind
end

--- Checks for an integer from `min` to `max`.
---@param value any
---@param min number
---@param max number
---@param what string start of the message: "array.new takes the number of elements"
function check.whole(value, min, max, what)
  if type(value) == 'number' and value >= min and value <= max and value == floor(value) then return end
  error(('%s (an integer from %.0f to %.0f), not %s'):format(what, min, max, check.shown(value)), 3)
end

--- Checks the Lua type of a value.
---@param value any
---@param kind string
---@param what string start of the message: "out:printf takes a format"
function check.is(value, kind, what)
  if type(value) == kind then return end
  local named = what:sub(-#kind - 3) == ' a ' .. kind
  error(('%s%s, not %s'):format(what, named and '' or (' (a %s)'):format(kind), check.shown(value)), 3)
end

--- Checks that a table has no settings but those of a list: the others would be ignored without a word.
---@param settings any nil: none
---@param known string[]
---@param what string for the message: "counter:print"
function check.settings(settings, known, what)
  if settings == nil then return end
  if type(settings) ~= 'table' then
    error(('%s takes a table of settings, not %s'):format(what, check.shown(settings)), 3)
  end
  for name in pairs(settings) do
    local found = false
    for _, one in ipairs(known) do found = found or one == name end
    if not found then
      local hint = nearest.hint(tostring(name), known)
      error(("%s: there is no setting '%s'%s"):format(what, tostring(name),
        hint ~= '' and hint or '; there are ' .. table.concat(known, ', ')), 3)
    end
  end
end

--- Checks the names and types of a table of settings. Errors point at the line of the caller's caller.
---@param given any
---@param types table<string, string> the Lua type of each setting; 'any': its user checks it
---@param what string for the message: "session.want"
---@param noun? string default: 'setting'
function check.types(given, types, what, noun)
  if type(given) ~= 'table' then error(('%s takes a table, not %s'):format(what, check.shown(given)), 3) end
  for name, value in pairs(given) do
    local expected = types[name]
    if not expected then
      error(("%s: unknown %s '%s'%s"):format(what, noun or 'setting', tostring(name),
        nearest.hint(tostring(name), nearest.keys(types))), 3)
    elseif expected ~= 'any' and type(value) ~= expected then
      error(('%s: %s is a %s, not a %s'):format(what, name, type(value), expected), 3)
    elseif value ~= value then
      error(('%s: %s is not a number'):format(what, name), 3)
    end
  end
end

--- Makes reading a member that objects of a class do not have an error. Names with `_` are the class's own.
---@param class table the metatable
---@param what string for the message: "a map"
---@param others? string[] members that each object has of its own
function check.members(class, what, others)
  setmetatable(class, { __index = function(_, name)
    if type(name) ~= 'string' or name:find '^_' then return end
    local names = { unpack(others or {}) }
    for _, known in ipairs(nearest.keys(class)) do
      if not known:find '^_' then names[#names + 1] = known end
    end
    error(("%s has no '%s'%s"):format(what, name, nearest.hint(name, names)), 2)
  end })
end

--- Checks the object that a method was called with. It is wrong if the script wrote a dot instead of a colon.
---@param self any
---@param class table
---@param method string for the message: "keys:count"
function check.self(self, class, method)
  if getmetatable(self) == class then return end
  error(('%s is a method: call it with a colon, not with %s'):format(method, check.shown(self)), 3)
end

--- Checks the same for an object of C.
---@param self any
---@param ctype ffi.ctype*
---@param method string
function check.ctype(self, ctype, method)
  if istype(ctype, self) then return end
  error(('%s is a method: call it with a colon, not with %s'):format(method, check.shown(self)), 3)
end

--- Returns the private part of an object whose method was called.
---@param inner table<table, table> by object
---@param self any
---@param method string for the message: "keys:count"
---@return table found
function check.inner(inner, self, method)
  local found = inner[self]
  if found then return found end
  error(('%s is a method: call it with a colon, not with %s'):format(method, check.shown(self)), 4)
end

--- Raises an error if a C function could not allocate an object.
---@param object any
---@param what string what the memory is for: "an array"
---@return any object
function check.allocated(object, what)
  if object == nil then error('out of memory for ' .. what, 3) end
  return object
end

return check
