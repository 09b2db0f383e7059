-- SPDX-License-Identifier: GPL-2.0-only
local ffi = require 'ffi'
local asm = require 'bpf.gen.asm'

--- Instructions as "code registers off imm" in hexadecimal, as the kernel's documentation numbers them.
local function dump(a)
  local list, n = a:finish()
  local out = {}
  for i = 0, n - 1 do
    local one = list[i]
    out[#out + 1] = ('%02x %02x %d %d'):format(one.code, one.registers, one.off, one.imm)
  end
  return out
end

local function program(body)
  local a = asm.new()
  body(a)
  a:exit()
  return dump(a)
end

describe('the assembler', function()
  it('has the size of an instruction', function() assert.equal(8, ffi.sizeof 'struct bpf_insn') end)

  it('encodes instructions', function()
    for text, body in pairs {
      ['61 21 16 0'] = function(a) a:load(4, 1, 2, 16) end,
      ['71 60 -1 0'] = function(a) a:load(1, 0, 6, -1) end,
      ['7b 1a -8 0'] = function(a) a:store(8, 10, -8, 1) end,
      ['6a 0a -2 7'] = function(a) a:store_value(2, 10, -2, 7) end,
      ['db 21 8 0'] = function(a) a:atomic_add(8, 1, 8, 2) end,
      ['b7 03 0 -5'] = function(a) a:value(3, -5) end,
      ['07 01 0 5'] = function(a) a:alu('add', 1, 5) end,
      ['2f 21 0 0'] = function(a) a:alu_r('mul', 1, 2) end,
      ['54 01 0 255'] = function(a) a:alu32('and', 1, 255) end,
      ['cc 21 0 0'] = function(a) a:alu32_r('arsh', 1, 2) end,
      ['87 02 0 0'] = function(a) a:alu('neg', 2, 0) end,
      ['dc 00 0 16'] = function(a) a:to_big_endian(0, 16) end,
      ['85 00 0 14'] = function(a) a:call 'get_current_pid_tgid' end,
    } do
      assert.equal(text, program(body)[1])
    end
  end)

  it('encodes constants of 64 bits, maps and their values in two instructions', function()
    assert.same({ '18 01 0 1985229328', '00 00 0 -19088744', '95 00 0 0' },
      program(function(a) a:value(1, 0xfedcba9876543210ULL) end))
    assert.same({ '18 00 0 -2147483648', '00 00 0 0', '95 00 0 0' }, program(function(a) a:value(0, 2 ^ 31) end))
    assert.same({ '18 12 0 7', '00 00 0 0', '95 00 0 0' }, program(function(a) a:map(2, { fd = 7 }) end))
    assert.same({ '18 22 0 7', '00 00 0 24', '95 00 0 0' }, program(function(a) a:map_value(2, { fd = 7 }, 24) end))
  end)

  it('has parts with labels and places of their own', function()
    local places = {}
    local lines = program(function(a)
      local outer = a:take(8)
      for i = 1, 2 do
        a:within(function()
          places[i] = a:take(16)
          a:jump('==', i, 0, 'done')
          a:jump('==', i, 1, 'again')
          a:alu('mov', 0, i)
          a:label 'again'
          a:give(places[i], 16)
        end)
      end
      a:give(outer, 8)
    end)
    assert.same({ '15 01 2 0', '15 01 1 1', 'b7 00 0 1', '15 02 2 0', '15 02 1 1', 'b7 00 0 2', '95 00 0 0' }, lines)
    assert.same({ -24, -24 }, places)
  end)

  it('resolves labels in both directions', function()
    local lines = program(function(a)
      a:label 'again'
      a:jump('s<', 1, -3, 'end')
      a:jump32_r('!=', 1, 2, 'again')
      a:label 'end'
    end)
    assert.same({ 'c5 01 1 -3', '5e 21 -2 0', '95 00 0 0' }, lines)
  end)

  it('leaves out what cannot be reached', function()
    local lines = program(function(a)
      a:go 'end'
      a:value(1, 2 ^ 40)
      a:label 'end'
      a:value(0, 2 ^ 40)
    end)
    assert.same({ '05 00 0 0', '18 00 0 0', '00 00 0 256', '95 00 0 0' }, lines)
  end)

  it('checks the limits', function()
    local function refused(body)
      local _, why = asm.attempt(function() return program(body) end)
      return why
    end
    assert.equal('it needs more than the 512 bytes of a BPF stack', refused(function(a)
      for _ = 1, 65 do a:take(8) end
    end))
    assert.equal('it needs a jump over more than 32767 instructions', refused(function(a)
      a:jump('==', 1, 0, 'end')
      for _ = 1, 32768 do a:alu('add', 1, 1) end
      a:label 'end'
    end))
    for _, body in ipairs {
      function(a) a:alu('add', 1, 2 ^ 31) end, function(a) a:alu('add', 11, 0) end,
      function(a) a:load(8, 0, 1, 32768) end,
      function(a) a:alu32('lsh', 1, 32) end, function(a) a:alu('div', 1, 0) end, function(a) a:go 'nowhere' end,
    } do
      assert.has_error(function() program(body) end)
    end
  end)

  it('uses places on the stack again', function()
    local a = asm.new()
    local first, second = a:take(16), a:take(5)
    assert.same({ -16, -24 }, { first, second })
    a:give(first, 16)
    assert.equal(-16, a:take(13))
    assert.equal(-32, a:take(1))
  end)
end)
