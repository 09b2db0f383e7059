-- SPDX-License-Identifier: GPL-2.0-only
--- Countables: classes of the library whose method `add` can be replaced by counting in the kernel. The module of the
--- class says how. bindings/run/handler_plans.lua uses it for handlers that do nothing else.
local ffi = require 'ffi'

local countable = {}

--- An argument of add(), for events of one class.
---@class countable.Term
---@field key? string|{ constant: number|string } C expression, as session.tally takes keys; nil: it may be a fraction
---@field value? string C expression, of which a fraction is truncated; nil: it is not a number
---@field type? string the type of the number
---@field constant? number

---@class Countable
---@field is_own? fun(object: table): boolean whether add() is the method of the class
---@field refuse? string why it cannot be counted
---@field count? fun(object: any, session: { tally: fun(settings: table): Tally }, event: Event,
--- terms: countable.Term[], settings: { handler: function, filter?: string }): (fun()?), string? adds a tally that
--- counts the same; returns a function to be called after the tally was updated, or nil and why not

local classes, ctypes = {}, {}
local functions = setmetatable({}, { __mode = 'kv' }) -- objects by function

--- Adds a class of tables.
---@param class table the metatable
---@param how Countable
function countable.add(class, how) classes[class] = how end

--- Adds a class of cdata.
---@param ctype ffi.ctype*
---@param how Countable
function countable.add_ctype(ctype, how) ctypes[#ctypes + 1] = { ctype, how } end

--- Adds a function that does the same as the method add() of an object.
---@param fn function
---@param object any
function countable.add_function(fn, object) functions[fn] = object end

--- Returns the object to which a function adds; nil if it is another function.
---@param fn function
---@return any
function countable.of_function(fn) return functions[fn] end

--- Returns how an object is counted; nil if it is not countable.
---@param object any
---@return Countable?
function countable.of(object)
  if type(object) == 'table' then
    local how = classes[getmetatable(object)]
    return how and (not how.is_own or how.is_own(object)) and how or nil
  end
  if type(object) ~= 'cdata' then return end
  for _, entry in ipairs(ctypes) do
    if ffi.istype(entry[1], object) then return entry[2] end
  end
end

return countable
