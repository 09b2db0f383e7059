-- SPDX-License-Identifier: GPL-2.0-only
-- Programs of single system calls: which calls they are, and how several programs of one call follow each other. The
-- system call is semget, which hardly anybody else makes.
local ffi = require 'ffi'
local asm = require 'bpf.gen.asm'
local libc = require 'bindings.base.libc'
local probe = require 'bpf.gen.probe'
local program = require 'bpf.gen.program'
local run_bpf = require 'tests.unit.bpf.gen.run_bpf'
local switch = require 'bpf.gen.switch'
local system_calls = require 'bpf.gen.system_calls'

local SEMGET = 64

local function call(n)
  for _ = 1, n do libc.syscall(SEMGET, ffi.cast('int', 0x70726f66), ffi.cast('int', 0), ffi.cast('int', 0)) end
end

--- Loads a program that counts an event.
local function counter(calls, gate, event)
  local counts = program.mapped(8, 'test')
  local loaded = probe.load({ event = event, verb = 'test', switch = gate, filters = {}, calls = calls }, function(a)
    a:map_value(1, counts, 0)
    a:alu('mov', 2, 1)
    a:atomic_add(8, 1, 0, 2)
  end)
  return { loaded = loaded, n = function() return tonumber(ffi.cast('uint64_t *', counts.bytes)[0]) end }
end

describe('system calls', function()
  it('are found by the names of their events', function()
    assert.same({ 'sys_exit', 'exit_group' }, { system_calls.parts 'syscalls:sys_exit_exit_group' })
    assert.is_nil(system_calls.parts 'raw_syscalls:sys_enter')
    assert.is_true(system_calls.is_one 'raw_syscalls:sys_enter')
    assert.is_false(system_calls.is_one 'sched:sched_switch')
    if ffi.arch ~= 'x64' then return end
    assert.same({ tracepoint = 'sys_enter', nr = 4 }, system_calls.of 'syscalls:sys_enter_newstat')
    local _, why = asm.attempt(function() return system_calls.of 'syscalls:sys_enter_nosuch' end)
    assert.equal('libseccomp does not know the number of nosuch', why)
  end)

  it('have a limited number of programs', function()
    if run_bpf.missing() or ffi.arch ~= 'x64' then return pending(run_bpf.missing() or 'not x86-64') end
    local calls, places = system_calls.new(), {}
    local _, why = asm.attempt(function()
      for i = 1, 40 do places[i] = calls:chain(asm.new(), { tracepoint = 'sys_enter', nr = SEMGET }) end
    end)
    assert.equal('too many programs are for system calls', why)
    assert.equal(32, #places)
    assert.equal(32, places[32] - places[1] + 1)
  end)

  it('have programs that follow each other', function()
    if run_bpf.missing() or ffi.arch ~= 'x64' then return pending(run_bpf.missing() or 'not x86-64') end
    local calls, gate, list, links = system_calls.new(), switch.new(nil, 1), {}, {}
    local _, why = asm.attempt(function()
      for i, name in ipairs { 'enter', 'enter', 'enter', 'exit' } do
        list[i] = counter(calls, gate, ('syscalls:sys_%s_semget'):format(name))
      end
      list[5] = counter(calls, gate, 'syscalls:sys_enter_semtimedop')
      for i, one in ipairs(list) do links[i] = probe.attach(one.loaded, calls) end
      return true
    end)
    if why then return pending(why) end
    local function are(...)
      local seen = {}
      for i, one in ipairs(list) do seen[i] = one.n() end
      assert.same({ ... }, seen)
    end
    call(5)
    are(0, 0, 0, 0, 0)
    gate:on()
    call(10)
    are(10, 10, 10, 10, 0)
    links[1]:close()
    call(10)
    are(10, 20, 20, 20, 0)
    links[3]:close()
    call(10)
    are(10, 30, 20, 30, 0)
    links[1] = probe.attach(list[1].loaded, calls)
    links[4]:close()
    call(10)
    are(20, 40, 20, 30, 0)
    for _, i in ipairs { 1, 2, 5 } do links[i]:close() end
    call(10)
    are(20, 40, 20, 30, 0)
    links[2] = probe.attach(list[2].loaded, calls)
    call(10)
    are(20, 50, 20, 30, 0)
    links[2]:close()
    gate:off()
  end)
end)
