-- SPDX-License-Identifier: GPL-2.0-only
--- C expressions over the fields of events.
local check = require 'bindings.base.check'
local condition = require 'bindings.select.condition'
local ffi = require 'ffi'
local public_event = require 'bindings.view.public_event'

local expressions = {}

--- Adds the functions.
---@param api Session
---@param of SessionParts
function expressions.add(api, of)
  local services = of.run.services

  --- Compiles a C expression over the fields of an event, such as the value of the attributes key= and num=.
  ---
  ---   local key = session.expression(event, 'dev << 32 | sector')
  ---   count:add(1, key.value(ev))
  ---@param event Event
  ---@param text string
  ---@param allow_system? boolean allow calls of system()
  ---@return Expression
  function api.expression(event, text, allow_system)
    local real = public_event.one(event, 'session.expression')
    check.is(text, 'string', 'session.expression takes a C expression')
    return services.expression(real, text, allow_system)
  end

  --- Compiles a C expression whose value is a number.
  ---@param event Event
  ---@param text string
  ---@param what? string its name in messages, such as 'num'
  ---@return fun(ev: Ev): number? value rounded beyond 2^53; nil after a division by zero
  function api.number(event, text, what)
    local real = public_event.one(event, 'session.number')
    check.is(text, 'string', 'session.number takes a C expression')
    return services.number(real, text, what)
  end

  --- Compiles a C expression over one unsigned 64-bit number.
  ---
  ---   local is_large = session.condition('data', 'data > 4096')
  ---@param name string name of the number in the expression
  ---@param text string
  ---@return fun(number: number|integer64): boolean
  function api.condition(name, text)
    check.is(name, 'string', 'session.condition takes the name of a number')
    check.is(text, 'string', 'session.condition takes a C expression')
    local value = ffi.new 'uint64_t[1]'
    local is_true = condition.compile(services, 'the event', { name }, text, value)
    return function(number)
      value[0] = number
      return is_true()
    end
  end

  --- Returns a function that formats keys according to the attribute printkey= of an event, or in hexadecimal if they
  --- are addresses.
  ---@param event Event
  ---@param key? string the expression of the keys
  ---@return (fun(key: number|integer64): string)? print nil: keys are printed as they are
  function api.key_printer(event, key)
    return services.key_printer(public_event.one(event, 'session.key_printer'), key)
  end
end

return expressions
