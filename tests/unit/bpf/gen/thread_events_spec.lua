-- SPDX-License-Identifier: GPL-2.0-only
local run_bpf = require 'tests.unit.bpf.gen.run_bpf'
local thread_events = require 'bpf.gen.thread_events'

--- Returns whether programs can tell the threads of an event with these fields.
local function names(event, ...)
  local fields = {}
  for _, name in ipairs { ... } do fields[name] = {} end
  return thread_events.names_threads { name = event, fields = fields }
end

describe('events about threads', function()
  local missing = run_bpf.missing()
  if missing then return pending(missing) end

  it('have a field that names one, and arguments that programs know', function()
    assert.is_true(names('sched:sched_switch', 'prev_comm', 'prev_pid', 'next_pid'))
    assert.is_true(names('sched:sched_wakeup', 'comm', 'pid', 'prio'))
    assert.is_false(names('raw_syscalls:sys_enter', 'id', 'args'))
    assert.is_false(names('no:such_event', 'pid'))
  end)
end)
