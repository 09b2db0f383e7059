-- SPDX-License-Identifier: GPL-2.0-only
--- System calls of i386 on x86_64, as 32-bit programs and `int $0x80` make them. A sample of perf has their number but
--- does not say whose it is, so it is named as one of x86_64. This says so. Programs that take the events in the kernel
--- mark these numbers (bpf/gen/system_calls.lua).
local asm = require 'bpf.gen.asm'
local ffi = require 'ffi'
local program = require 'bpf.gen.program'
local route = require 'bpf.plan.route'
local system_calls = require 'bpf.gen.system_calls'

local C = ffi.C
local i386_calls = {}

--- Returns the name of an event whose samples come from perf and have numbers of system calls.
local function unmarked(run)
  for _, event in ipairs(run.events.list) do
    local is_sampled = route.is_read(event.route) and not event.route.is_captured and not event.route.sent
    if event.system == 'raw_syscalls' and is_sampled and event.request.counted == 0 then return event.name end
  end
end

--- Begins to count them if events of the run cannot be told apart.
---@param run Run
---@return I386Calls? counted
function i386_calls.begin(run)
  if run.is_recorded or ffi.arch ~= 'x64' or program.is_dry() then return end
  local name = unmarked(run)
  local loaded = name and asm.attempt(system_calls.count_i386)
  return loaded and { name = name, loaded = loaded } or nil
end

---@class I386Calls
---@field name string of an event
---@field loaded table the program and its count

--- Warns about those of a live run.
---@param run Run
---@param counted? I386Calls
function i386_calls.finish(run, counted)
  if not counted then return end
  local n = counted.loaded:finish()
  if n == 0 then return end
  run.out:warn(('%s: %d system call%s of i386, in any task, happened meanwhile: in %s, perf does not tell them from '
    .. "x86_64's, so they have the names of other calls"):format(run.name, n, n == 1 and '' or 's', counted.name))
end

--- Warns about system calls of 32-bit programs in a recording.
---@param run Run
---@param programs integer
function i386_calls.warn_of_programs(run, programs)
  if programs == 0 or not run.is_recorded or ffi.string(C.session_arch(run.session, 0)) ~= 'x86_64' then return end
  for _, event in ipairs(run.events.list) do
    if event.system == 'raw_syscalls' then
      run.out:warn(('%s: the recording has %d 32-bit program%s: the numbers of %s system calls are those of i386, but '
        .. 'are named as those of x86_64'):format(run.name, programs, programs == 1 and '' or 's',
        programs == 1 and 'its' or 'their'))
      return
    end
  end
end

return i386_calls
