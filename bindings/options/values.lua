-- SPDX-License-Identifier: GPL-2.0-only
--- The option values that start() receives: read-only, and only declared options, so that a misspelled name is an
--- error.
local declarations = require 'bindings.options.declare'
local nearest = require 'bindings.base.nearest'
local needs = require 'bpf.plan.needs'

local values = {}

--- The values of the options that the script declares, and of the common ones, by name. It is read-only, and reading an
--- option that does not exist is an error. `profscript trace --help` lists the common options: `--mmap-pages` is
--- `opt.mmap_pages`. The value of an option of type `event` is a list of events for each time that it is given.
---@class Options
---@field [string] any

local values_of = setmetatable({}, { __mode = 'k' }) -- by the script's table: reads any option, declared or not
local specs = setmetatable({}, { __mode = 'k' }) -- by the script's table

local function refuse_writing(_, name)
  error(('opt.%s cannot be set: options are read-only; see session.want()'):format(tostring(name)), 2)
end

--- Copies lists, so that a script can modify its own.
local function copy(value)
  if type(value) ~= 'table' or getmetatable(value) then return value end
  local list = {}
  for i, element in ipairs(value) do list[i] = copy(element) end
  return list
end

--- Returns the names of all options that a script can read.
---@param spec opt.Spec
---@return string[] names sorted
function values.names(spec)
  local known = {}
  for _, list in ipairs { declarations.common, spec.list, spec.positional } do
    for _, option in ipairs(list) do known[option.name] = true end
  end
  return nearest.keys(known)
end

--- Returns the table for start().
---@param opt table parsed options
---@param spec opt.Spec
---@param later? table<string, fun(): any> by option: returns the value when the script first reads it
---@return table
---@return table<string, boolean> read the options that have been looked at
function values.new(opt, spec, later)
  local known, copied, read = {}, {}, {}
  for _, name in ipairs(values.names(spec)) do known[name] = true end
  for name in pairs(known) do copied[name] = copy(opt[name]) end
  local function take(_, name)
    if later and later[name] and not read[name] then copied[name] = copy(later[name]()) end
    read[name] = true
    return copied[name]
  end
  local public = setmetatable({}, {
    __index = function(_, name)
      local value = take(_, name)
      if value == nil and not known[name] then
        local hint = nearest.hint(tostring(name), nearest.keys(known))
        error(("no such option '%s'%s"):format(tostring(name), hint), 2)
      end
      return value
    end,
    __newindex = refuse_writing,
  })
  values_of[public], specs[public] = take, spec
  return public, read
end

--- Returns whether a value is such a table.
---@param value any
---@return boolean
function values.is_options(value) return values_of[value] ~= nil end

--- Returns the first given option with a need, as on the command line; nil: there is none.
---@param opt table
---@param word string see bpf/plan/needs.lua
---@return string? option such as '--exit-n'
function values.given(opt, word) return needs.given(specs[opt].list, values.optional(opt), word) end

--- Returns the same for a library that reads options which a profiler may not have declared: these are nil.
---@param opt table
---@return table
function values.optional(opt)
  local copied = values_of[opt]
  return copied and setmetatable({}, { __index = copied, __newindex = refuse_writing }) or opt
end

return values
