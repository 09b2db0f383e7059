-- SPDX-License-Identifier: GPL-2.0-only
--- Facades: what scripts get of the host's objects. They have the public methods of the object, but not its fields,
--- which lead to memory of C and to other objects of the host.
local check = require 'bindings.base.check'

local facade = {}

local object_of = setmetatable({}, { __mode = 'k' })

--- Returns the method of a facade that calls the object's.
local function forward(objects, name, method)
  return function(self, a, b, c)
    local object = objects[self]
    if not object then
      error(('%s is a method: call it with a colon, not with %s'):format(name, check.shown(self)), 2)
    end
    return method(object, a, b, c)
  end
end

--- Returns a function that creates the facades of a class.
---@param name string of an object in messages: "counts"
---@param class table<string, function>
---@param methods string[] the public ones, with at most three parameters
---@return fun(object: table, fields?: table<string, any>): any new fields: what scripts can read
function facade.class(name, class, methods)
  local objects, index = setmetatable({}, { __mode = 'k' }), {}
  for _, method in ipairs(methods) do index[method] = forward(objects, name .. ':' .. method, class[method]) end
  local meta = { __index = index, __metatable = false }
  return function(object, fields)
    local new = setmetatable(fields or {}, meta)
    objects[new], object_of[new] = object, object
    return new
  end
end

--- Returns the object behind a facade.
---@param any any
---@return table? object nil: it is not a facade
function facade.object(any) return any ~= nil and object_of[any] or nil end

return facade
