-- SPDX-License-Identifier: GPL-2.0-only
--- C expressions over named numbers of a script instead of the fields of an event.
local ffi = require 'ffi'
local events = require 'bindings.select.events'
local expr = require 'bindings.expr.compile'
local views = require 'bindings.view.views'

local C = ffi.C
local condition = {}

--- Compiles an expression over 64-bit integers.
---@param services Services
---@param what string what the numbers are, for messages: 'the counts'
---@param names string[]
---@param text string
---@param values ffi.cdata* int64_t[] or uint64_t[], one per name
---@return fun(): boolean evaluates the expression for the current values
function condition.compile(services, what, names, text, values)
  local list, by_name, is_signed = {}, {}, ffi.istype('int64_t', values[0])
  for i, name in ipairs(names) do
    local field = {
      name = name:gsub('[^%w_]', '_'), type = is_signed and 'long' or 'unsigned long', offset = (i - 1) * 8, size = 8,
      elem_size = 8, count = 1, flags = is_signed and C.FIELD_SIGNED or 0,
    }
    list[i], by_name[field.name] = field, field
  end
  local view = views.new(what, list, services)
  local compiled = events.compile({ name = what, fields = by_name, view = view }, text, 'condition')
  local evaluate = expr.load(compiled, services.expression_env)
  local event, raw = ffi.new 'struct event', ffi.cast('const uint8_t *', values)
  return function()
    local value = evaluate(event, ffi.cast(view.payload, raw), raw, ffi.sizeof(values))
    return value ~= nil and value ~= 0
  end
end

return condition
