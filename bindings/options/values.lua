-- SPDX-License-Identifier: GPL-2.0-only
--- The values of options as start() gets them: to be read only, and only those that are declared, so that a
--- misspelled one is an error.
local declarations = require 'bindings.options.declare'
local nearest = require 'bindings.base.nearest'

local values = {}

local hidden = setmetatable({}, { __mode = 'k' }) -- by what a script has: reads any option, declared or not

local function refuse_writing(_, name)
  error(("opt.%s cannot be set: options are what the user says; session.want() asks for more"):format(
    tostring(name)), 2)
end

--- Lists are copied: what a script does to its own changes nothing.
local function copy(value)
  if type(value) ~= 'table' or getmetatable(value) then return value end
  local list = {}
  for i, element in ipairs(value) do list[i] = copy(element) end
  return list
end

--- What start() gets.
---@param opt table parsed options
---@param spec opt.Spec
---@return table
---@return table<string, boolean> read the options that have been looked at
function values.new(opt, spec)
  local known, copied, read = {}, {}, {}
  for _, list in ipairs { declarations.common, spec.list, spec.positional } do
    for _, option in ipairs(list) do known[option.name] = true end
  end
  for name in pairs(known) do copied[name] = copy(opt[name]) end
  local public = setmetatable({}, {
    __index = function(_, name)
      local value = copied[name]
      read[name] = true
      if value == nil and not known[name] then
        local hint = nearest.hint(tostring(name), nearest.keys(known))
        error(("there is no option '%s'%s"):format(tostring(name), hint), 2)
      end
      return value
    end,
    __newindex = refuse_writing,
  })
  hidden[public] = function(_, name)
    read[name] = true
    return copied[name]
  end
  return public, read
end

--- The same for a library, whose options a profiler may declare or not: those that it does not are nil.
---@param opt table
---@return table
function values.optional(opt)
  local copied = hidden[opt]
  return copied and setmetatable({}, { __index = copied, __newindex = refuse_writing }) or opt
end

return values
