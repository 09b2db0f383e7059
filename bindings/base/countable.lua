-- SPDX-License-Identifier: GPL-2.0-only
--- Countables: classes of the library whose method `add` can be replaced by counting in the kernel, or `start` and
--- `finish` by pairing. The module of the class says how. bpf/ways/handler.lua uses it for handlers that do
--- nothing else.
local ffi = require 'ffi'

local countable = {}

--- A part of a key: a C expression, a constant, or the text that a function returns for a number.
---@alias TallyKey string|{ constant: number|string }|{ of: string, text: fun(n: number): string }

--- An argument of add(), for events of one class.
---@class countable.Term
---@field key? TallyKey C expression; nil: it may be a fraction
---@field value? string C expression, of which a fraction is truncated; nil: it is not a number
---@field type? string the type of the number
---@field constant? number

--- What a tally counts in place of add().
---@class CountedAdd : TallySettings
---@field keys? Keys of the tally
---@field after? fun() called when the tally was updated

---@class Countable
---@field is_own? fun(object: table): boolean whether add() is the method of the class
---@field refuse? string why it cannot be counted
---@field count? fun(object: any, terms: countable.Term[]): CountedAdd?, string? what add() with these arguments counts;
--- nil and why programs cannot
---@field join? fun(object: table): CountedJoin what start() and finish() do

---@class CountedJoin
---@field expires number ns after which a start does not count
---@field refuse? string why it cannot be done in the kernel
---@field lost function handler `lost`, which has nothing to do there
---@field moved? function handler of threads that get other ids, which has nothing to do there either
---@field update fun(counts: table<string, number>, waiting: fun(): integer) called with what was counted since the last
--- call: unstarted, replaced, expired, evicted, found (0: none); and a function that returns the number of open starts

local classes, ctypes = {}, {}
local functions = setmetatable({}, { __mode = 'kv' }) -- objects by function
local texts = setmetatable({}, { __mode = 'k' }) -- functions

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

--- Adds a function that returns a text for a number, always the same one: programs count the number.
---@param fn fun(n: number): string
function countable.add_text(fn) texts[fn] = true end

--- Returns whether a function is one that returns a text for a number.
---@param fn function
---@return boolean
function countable.is_text(fn) return texts[fn] or false end

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
