-- SPDX-License-Identifier: GPL-2.0-only
-- The parts of BPF that need no kernel: attributes of perf events, and the types and constants of an object.
local ffi = require 'ffi'
local attach = require 'bindings.bpf.attach'
local btf = require 'bindings.bpf.btf'
local libbpf = require 'bindings.bpf.libbpf'
local Object = require 'bindings.bpf.object'

it('attributes of perf events by their names', function()
  local attr, message = attach.attr { type = 'software', config = 'page-faults', sample_freq = 50, exclude_user = true }
  assert.is_nil(message)
  assert.equal(1, attr.type)
  assert.equal(2, tonumber(attr.config))
  assert.equal(50, tonumber(attr.sample_freq))
  assert.equal(1, attr.freq)
  assert.equal(1, attr.exclude_user)
  assert.equal(0, attr.exclude_kernel)
  assert.equal(ffi.sizeof(attr), attr.size) -- tells the kernel which members exist
end)

it('attributes by numbers', function()
  local attr, message = attach.attr {
    type = 5, bp_type = 2, bp_addr = 4096, bp_len = 8, sample_period = 1, precise_ip = 2,
  }
  assert.is_nil(message)
  assert.equal(5, attr.type)
  assert.equal(4096, tonumber(attr.config1))
  assert.equal(8, tonumber(attr.config2))
  assert.equal(2, attr.precise_ip)
  assert.equal(0, attr.freq)
end)

it('refuses unknown names', function()
  for expected, given in pairs {
    ["unknown type 'softwar'; did you mean 'software'?"] = { type = 'softwar', config = 0, sample_period = 1 },
    ["no such event 'page-fault'; did you mean 'page-faults'?"] = { config = 'page-fault' },
    ["'cycles' is not an event of type software"] = { type = 'software', config = 'cycles', sample_period = 1 },
    ["perf_event_attr has no 'sample_perod'; did you mean 'sample_period'?"] = { config = 0, sample_perod = 1 },
    ['sample_period is a string, not a number'] = { config = 0, sample_period = '1' },
    ['missing sample_period or sample_freq'] = { type = 1, config = 0 },
  } do
    local _, message = attach.attr(given)
    assert.equal(expected, message)
  end
end)

describe('an object file', function()
  local bytes, no_bytes = libbpf.built_in 'filter'
  local lib, no_lib = libbpf.open()
  if not bytes or not lib then
    pending(no_bytes or no_lib)
    return
  end

  it('has constants of the right types', function()
    local object = Object.open('filter', bytes)
    object:set_constants { irqs_disabled = -1, nr_running_max = 4294967295, prio = { [0] = 1, [139] = 7 } }
    local memory, codec = object:variable('prio', { '.rodata' })
    assert.equal(140, codec.size)
    local values = codec.read(memory)
    assert.equal(1, values[0])
    assert.equal(0, values[1])
    assert.equal(7, values[139])
    memory, codec = object:variable('nr_running_max', { '.rodata' })
    assert.equal(4294967295, codec.read(memory))
    memory, codec = object:variable('irqs_disabled', { '.rodata' })
    assert.equal(-1, codec.read(memory))
  end)

  it('refuses unknown constants, and values that do not fit', function()
    local object = Object.open('filter', bytes)
    for expected, given in pairs {
      ["filter: no variable 'pri' in .rodata; did you mean 'prio'?"] = { pri = 1 },
      ['filter: constant prio: index 140 is out of range 0..139'] = { prio = { [140] = 1 } },
      ['filter: constant exclude_pid: expected a uint32_t, not a string'] = { exclude_pid = 'x' },
    } do
      local ok, err = pcall(object.set_constants, object, given)
      assert.is_false(ok)
      assert.equal(expected, tostring(err))
    end
  end)

  it('describes the structures that it reads', function()
    local object = Object.open('filter', bytes)
    local types = object.btf
    local id = types:find('bpf_perf_event_data', btf.KIND.STRUCT)
    local fields = {}
    for _, field in ipairs(types:fields(id)) do
      fields[field.name] = field
    end
    assert.equal(8, fields.sample_period.size)
    assert.is_true(fields.addr.offset == fields.sample_period.offset + 8)
    assert.is_nil(fields.regs) -- a struct is flattened into its members
    local codec = types:codec(types:find('task_struct', btf.KIND.STRUCT))
    local memory = ffi.new('uint8_t[?]', codec.size + 8)
    codec.write(memory, { prio = -5, policy = 3, thread_info = { flags = 2 ^ 40 } })
    local task = codec.read(memory)
    assert.equal(-5, task.prio)
    assert.equal(3, task.policy)
    assert.equal(2 ^ 40, task.thread_info.flags)
    assert.has_error(function() codec.write(memory, { pri = 1 }) end, "no member 'pri'; did you mean 'prio'?")
  end)
end)
