-- SPDX-License-Identifier: GPL-2.0-only
--- Checks of what scripts pass to the library: the error is at the line of the caller's caller.
local floor, getmetatable = math.floor, getmetatable
local check = {}

--- How messages show a value.
---@param value any
---@return string
function check.shown(value)
  local kind = type(value)
  if kind == 'string' then return ("'%s'"):format(value) end
  if kind == 'number' or kind == 'nil' or kind == 'boolean' then return tostring(value) end
  return kind == 'cdata' and tonumber(value) and tostring(value):gsub('U?LL$', '') or 'a ' .. kind
end

--- A whole number from `least` to `most`.
---@param value any
---@param least number
---@param most number
---@param what string for the message: "array.new takes the number of elements"
function check.whole(value, least, most, what)
  if type(value) == 'number' and value >= least and value <= most and value == floor(value) then return end
  error(('%s, a whole number from %.0f to %.0f, not %s'):format(what, least, most, check.shown(value)), 3)
end

--- A value of some Lua type.
---@param value any
---@param kind string
---@param what string for the message: "out:printf takes a format"
function check.is(value, kind, what)
  if type(value) == kind then return end
  error(('%s, a %s, not %s'):format(what, kind, check.shown(value)), 3)
end

--- The object that a method was called with: a dot in place of a colon gives it another.
---@param self any
---@param class table
---@param method string for the message: "keys:count"
function check.self(self, class, method)
  if getmetatable(self) == class then return end
  error(('%s is a method: call it with a colon, not with %s'):format(method, check.shown(self)), 3)
end

--- What C has allocated.
---@param object any
---@param what string for the message
---@return any object
function check.allocated(object, what)
  if object == nil then error('out of memory for ' .. what, 3) end
  return object
end

return check
