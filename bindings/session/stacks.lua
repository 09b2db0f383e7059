-- SPDX-License-Identifier: GPL-2.0-only
--- Addresses and stacks.
local check = require 'bindings.base.check'
local ffi = require 'ffi'
local views = require 'bindings.view.views'

local C = ffi.C
local stacks = {}

--- Adds the functions that look up addresses.
---@param api Session
---@param of SessionParts
function stacks.addresses(api, of)
  local services, session = of.run.services, of.run.session

  --- Returns the stack whose only frame is an address. name: the caller, for messages.
  local function address_id(ev, address, name)
    local e = views.event(ev, name)
    if type(address) ~= 'number' and not tonumber(address) then
      error(('%s takes an address, not %s'):format(name, check.shown(address)), 3)
    end
    if C.session_stacks(session, 0) == nil then error(name .. ' requires an event with resolve = true', 3) end
    return C.session_address(session, e, address)
  end

  --- Looks up an address in the kernel, or in the event's process at the time of the event. At least one event must
  --- record stacks or have been requested with resolve = true. Addresses of data have names if an event was requested
  --- with resolve = 'data', such as `session.event { 'syscalls:sys_enter_write', resolve = 'data' }`: those of global
  --- variables, heap, stack, and mapped files. Unmapping is not reported, so the name may be that of what was there,
  --- and the kernel reports a heap as '[anon]' until it has grown. A recording has what was recorded: that of a script
  --- which resolves data, or of `perf record -d`.
  ---@param ev Ev
  ---@param address number|integer64
  ---@return Frame? frame nil if unknown
  function api.address(ev, address) return services.frames.list(address_id(ev, address, 'session.address'))[1] end

  --- Like session.address(), but returns only text. It is much cheaper for addresses that recur.
  ---@param ev Ev
  ---@param address number|integer64
  ---@return string text 'symbol+0x1c', '[heap]' or '[libc.so.6]' for data without a symbol, or else the address in
  --- hexadecimal
  function api.address_text(ev, address)
    return services.frames.symbol_text(address_id(ev, address, 'session.address_text')) or ('%016x'):format(address)
  end
end

--- Adds the functions that read stacks.
---@param api Session
---@param of SessionParts
function stacks.frames(api, of)
  local services = of.run.services

  local function check_stack(id, name)
    if type(id) ~= 'number' then
      error(('%s takes a stack, such as ev._stack, not %s'):format(name, check.shown(id)), 3)
    end
  end

  --- Returns the frames of a stack, innermost first: kernel frames, then user frames.
  ---@param stack integer `ev._stack`
  ---@return Frame[]
  function api.frames(stack)
    check_stack(stack, 'session.frames')
    return services.frames.list(stack)
  end

  --- Returns the frames of a stack as lines: '000055784e09c1de main+0x10e (/tmp/leak)'.
  ---@param stack integer
  ---@return string[]
  function api.stack_lines(stack)
    check_stack(stack, 'session.stack_lines')
    return services.frames.lines(stack)
  end

  --- Returns the same as one text of indented lines.
  ---@param stack integer
  ---@return string
  function api.stack_text(stack)
    check_stack(stack, 'session.stack_text')
    return services.frames.text(stack)
  end

  --- Stores the names of the frames of a stack in tables that the caller reuses, for scripts that read many stacks.
  ---@param stack integer
  ---@param names string[] receives the names, innermost first; '[libc.so.6]' if only the file is known
  ---@param kinds string[] receives 'k' for kernel, 'j' for JIT-compiled code, 'i' for inlined, 'u' for other functions;
  --- '?' if only the file is known
  ---@return integer n number of frames
  function api.frame_names(stack, names, kinds)
    check_stack(stack, 'session.frame_names')
    return services.frames.names(stack, names, kinds)
  end

  --- Frees all stacks if there are too many distinct ones. Values of `ev._stack` that the script has kept are then
  --- invalid.
  function api.forget_stacks() services.frames.forget() end
end

return stacks
