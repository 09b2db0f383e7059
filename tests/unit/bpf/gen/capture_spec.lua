-- SPDX-License-Identifier: GPL-2.0-only
-- Programs that write to overwritten rings: where their records are, and what they do while the ring is paused, or
-- while they interrupt another one. They are run on synthetic events, and write to the ring of CPU 0.
local ffi = require 'ffi'
local asm = require 'bpf.gen.asm'
local capture = require 'bpf.gen.capture'
local libbpf = require 'bindings.bpf.libbpf'
local libc = require 'bindings.base.libc'
local program = require 'bpf.gen.program'
local run_bpf = require 'tests.unit.bpf.gen.run_bpf'
local source = require 'bpf.gen.source'

local C = ffi.C
local SAMPLE, LOST, ID = 9, 2, 1234

ffi.cdef [[
struct capture_record { uint64_t common, value, time; };
struct captured_sample {
  uint32_t type; uint16_t misc, size;
  uint64_t id; int32_t pid, tid; uint64_t time, cpu; uint32_t raw_size; uint8_t raw[28];
};
struct captured_loss { uint32_t type; uint16_t misc, size; uint64_t id, number; };
]]
local record = ffi.new 'struct capture_record'
local SIZE = ffi.sizeof 'struct captured_sample'
local LOSS = 56
local list = {}
for i, name in ipairs { 'value', 'time' } do
  list[i] = { name = name, offset = 8 * i, size = 8, elem_size = 8, count = 1, flags = 0, type = 'u64' }
end

local opts = ffi.new 'struct bpf_test_run_opts'
opts.sz, opts.ctx_size_in, opts.ctx_in = ffi.sizeof(opts), ffi.sizeof(record), record

--- A ring and the program that writes to it.
---@class OverwrittenRing
local Ring = {}
Ring.__index = Ring

local function new_ring(pages)
  local rings = capture.rings(pages, 50, true)
  local each = C.CAPTURE_DATA + rings.size + C.CAPTURE_MARGIN
  local memory = libc.mmap(nil, each * rings.nr_cpus, libc.PROT_READ + libc.PROT_WRITE, libc.MAP_SHARED,
    rings.map.fd, 0)
  local a = asm.new()
  local places = { cpu = a:take(8), side = a:take(8), time = a:take(8) }
  a:alu_r('mov', asm.CONTEXT, 1)
  a:load(8, 0, asm.CONTEXT, ffi.offsetof(record, 'time'))
  a:store(8, asm.FRAME, places.time, 0)
  a:store_value(8, asm.FRAME, places.cpu, 0)
  a:map(1, rings.map)
  a:alu_r('mov', 2, asm.FRAME)
  a:alu('add', 2, places.cpu)
  a:call 'map_lookup_elem'
  a:jump('==', 0, 0, 'done')
  a:store(8, asm.FRAME, places.side, 0)
  capture.write(a, source.record(), places,
    { event = 'raw_syscalls:sys_enter', list = list, type = 1, id = ID, rings = rings })
  a:label 'done'
  a:alu('mov', 0, 0)
  a:exit()
  return setmetatable({ bytes = ffi.cast('uint8_t *', memory), size = rings.size, time = 0,
    program = program.load(a, { type = 'syscall', name = 'test' }) }, Ring)
end

function Ring:word(at) return ffi.cast('uint64_t *', self.bytes + at) end

function Ring:get(at) return tonumber(ffi.cast('int64_t', self:word(at)[0])) end

--- Lets n events happen, with times from 1 on.
function Ring:happen(n)
  for _ = 1, n do
    self.time = self.time + 1
    record.time, record.value = self.time, self.time * 3
    assert(assert(libbpf.open()).bpf_prog_test_run_opts(self.program.fd, opts) == 0)
  end
end

--- Returns the record at a position, as a struct captured_sample.
function Ring:record(position)
  return ffi.cast('struct captured_sample *', self.bytes + C.CAPTURE_DATA + position % self.size)
end

--- Asserts that the sample of the event at a time is at a position.
function Ring:expect(position, time)
  local one = self:record(position)
  assert.same({ SAMPLE, SIZE, ID, time, 0, 28 },
    { one.type, one.size, tonumber(one.id), tonumber(one.time), tonumber(one.cpu), one.raw_size })
  local values = ffi.cast('uint64_t *', one.raw + 8)
  assert.same({ time * 3, time }, { tonumber(values[0]), tonumber(values[1]) })
end

describe('overwritten rings', function()
  local missing = run_bpf.missing()
  if missing then
    pending(missing)
    return
  end

  it('are written backward', function()
    local ring = new_ring(4)
    ring:happen(3)
    assert.equal(-3 * SIZE, ring:get(C.CAPTURE_RESERVED))
    for i = 1, 3 do ring:expect(-i * SIZE, i) end
    assert.equal(0, ring:get(C.CAPTURE_NEST))
    assert.equal(0, ring:get(C.CAPTURE_LOST))
  end)

  it('keep the newest records whole, also where they go on after the end', function()
    for _, pages in ipairs { 1, 2 } do
      local ring, whole = new_ring(pages), math.floor(pages * 4096 / SIZE)
      assert.is_true(ring.size % SIZE ~= 0)
      for _ = 1, 40 do
        ring:happen(33)
        local position = ring:get(C.CAPTURE_RESERVED)
        assert.equal(-ring.time * SIZE, position)
        for i = 0, math.min(whole, ring.time) - 1 do ring:expect(position + i * SIZE, ring.time - i) end
      end
    end
  end)

  it('lose what happens while they are paused, and tell it before the next record', function()
    local ring = new_ring(1)
    ring:happen(2)
    ring:word(C.CAPTURE_PAUSED)[0] = 1
    ring:happen(5)
    assert.same({ -2 * SIZE, 5, 0, 0 }, { ring:get(C.CAPTURE_RESERVED), ring:get(C.CAPTURE_LOST),
      ring:get(C.CAPTURE_TOLD), ring:get(C.CAPTURE_NEST) })
    ring:word(C.CAPTURE_PAUSED)[0] = 0
    ring:happen(2)
    local position = ring:get(C.CAPTURE_RESERVED)
    assert.equal(-4 * SIZE - LOSS, position)
    ring:expect(position, 9)
    local loss = ffi.cast('struct captured_loss *', ring:record(position + SIZE))
    assert.same({ LOST, LOSS, ID, 5 }, { loss.type, loss.size, tonumber(loss.id), tonumber(loss.number) })
    ring:expect(position + SIZE + LOSS, 8)
    ring:expect(position + 2 * SIZE + LOSS, 2)
    assert.equal(5, ring:get(C.CAPTURE_TOLD))
  end)

  it('do not let an interrupt overwrite the record of the program that it interrupts', function()
    local ring = new_ring(1)
    ring:happen(100)
    local start, whole = ring:get(C.CAPTURE_RESERVED), math.floor(ring.size / SIZE)
    -- A program has reserved a record and does not go on.
    ring:word(C.CAPTURE_START)[0] = ring:word(C.CAPTURE_RESERVED)[0]
    ring:word(C.CAPTURE_RESERVED)[0] = ring:word(C.CAPTURE_RESERVED)[0] - SIZE
    ring:word(C.CAPTURE_NEST)[0] = 1
    ring:happen(whole + 10)
    assert.same({ start - whole * SIZE, 11, 1 },
      { ring:get(C.CAPTURE_RESERVED), ring:get(C.CAPTURE_LOST), ring:get(C.CAPTURE_NEST) })
    for i = 1, whole - 1 do ring:expect(start - (1 + i) * SIZE, 100 + i) end
    -- It ends, and the next one finds room again.
    ring:word(C.CAPTURE_NEST)[0] = 0
    ring:happen(1)
    assert.equal(start - (whole + 1) * SIZE - LOSS, ring:get(C.CAPTURE_RESERVED))
    ring:expect(ring:get(C.CAPTURE_RESERVED) + LOSS, ring.time)
    assert.equal(11, ring:get(C.CAPTURE_TOLD))
  end)

  it('tell losses only by programs that interrupt no other one', function()
    local ring = new_ring(1)
    ring:word(C.CAPTURE_LOST)[0], ring:word(C.CAPTURE_NEST)[0] = 3, 1
    ring:happen(1)
    assert.same({ 0, 4, 0 },
      { ring:get(C.CAPTURE_RESERVED), ring:get(C.CAPTURE_LOST), ring:get(C.CAPTURE_TOLD) })
  end)
end)
