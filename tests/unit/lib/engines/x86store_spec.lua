-- SPDX-License-Identifier: GPL-2.0-only
-- Instructions whose operands no test can produce on this machine; live/profilers/breakpoint_test.sh runs others.
local x86store = require 'lib.engines.x86store'

local AT = 0x1000ULL

--- The result for code given in hexadecimal, with some registers; the others are 0.
local function decode(code, registers, length, ahead)
  local function bytes(hex)
    return (hex:gsub('(%x%x) ?', function(digits) return string.char(tonumber(digits, 16)) end))
  end
  local all = { RIP = 0x400000ULL, RFLAGS = 0ULL }
  for name in ('RAX RBX RCX RDX RSI RDI RBP RSP R8 R9 R10 R11 R12 R13 R14 R15'):gmatch '%S+' do all[name] = 0ULL end
  for name, value in pairs(registers) do all[name] = value end
  return x86store.decode(bytes(code), bytes(ahead or ''), all, AT, length or 8)
end

local function value(code, registers, old, length)
  local found = decode(code, registers, length)
  local known = x86store.value(found, AT, length or 8, old)
  return known and ('%x'):format(known)
end

describe('x86store', function()
  it('knows addresses in segments by their alignment', function()
    local found = decode('65 48 89 05 00 0c 00 00', { RIP = 0x400ULL, RAX = 5ULL }) -- %gs:0xc00(%rip) = %gs:0x1000
    assert.equal('mov %rax,%gs:0xc00(%rip)', found.name)
    assert.equal(AT, found.address)
    assert.is_nil(decode('65 48 89 05 00 0c 00 00', { RIP = 0x480ULL, RAX = 5ULL }))
  end)

  it('takes a meaningless prefix for the end of the instruction before', function()
    for _, prefix in ipairs { 'f0', 'f3', '66 48' } do
      local found = decode(prefix .. ' 89 07', { RDI = AT })
      assert.equal(prefix == '66 48' and 'mov %rax,(%rdi)' or 'mov %eax,(%rdi)', found.name)
    end
    assert.equal('mov %al,(%rdi)', decode('48 88 07', { RDI = AT }).name)
  end)

  it('finds nothing that writes elsewhere, reads, or is not there', function()
    assert.is_nil(decode('48 89 07', { RDI = AT + 8 }))
    assert.is_nil(decode('48 89 07', { RDI = AT - 8 }))
    assert.is_nil(decode('48 8b 07', { RDI = AT }))
    assert.is_nil(decode('39 07', { RDI = AT })) -- cmp
    assert.is_nil(decode('89 c7', { RDI = AT })) -- to a register
    assert.is_nil(decode('', {}))
    assert.is_nil(decode('07', {}))
  end)

  it('accepts any bytes', function()
    math.randomseed(1)
    for _ = 1, 20000 do
      local bytes = {}
      for i = 1, 15 do bytes[i] = ('%02x'):format(math.random(0, 255)) end
      local found = decode(table.concat(bytes, ' '), { RDI = AT, RAX = AT, RSP = AT, RDX = AT })
      if found then x86store.value(found, AT, 8, 7ULL) end
    end
  end)

  it('truncates and joins overlapping ranges', function()
    assert.equal('5566', value('48 89 07', { RDI = AT - 2, RAX = 0x1122334455667788ULL }, nil, 2))
    assert.equal('aabbccdd11223344', value('48 89 07', { RDI = AT - 4, RAX = 0x1122334455667788ULL },
      0xaabbccdd00000000ULL))
    assert.is_nil(value('48 89 07', { RDI = AT - 4 }, nil))
    assert.equal('11ff', value('fe 0f', { RDI = AT }, 0x1100ULL, 2)) -- decb
    assert.equal('ff', value('48 ff 0f', { RDI = AT }, 0ULL, 1)) -- low bits of decq
    assert.is_nil(value('48 d1 2f', { RDI = AT }, 0ULL, 1)) -- those of shrq come from above
  end)

  it('knows the value that a failed comparison leaves', function()
    assert.equal('7', value('f0 48 0f b1 17', { RDI = AT, RAX = 7ULL, RDX = 9ULL }, nil))
    assert.equal('9', value('f0 48 0f b1 17', { RDI = AT, RAX = 7ULL, RDX = 9ULL, RFLAGS = 0x40ULL }, nil))
  end)

  it('finds a repeated instruction ahead', function()
    assert.equal('rep stos %rax,%es:(%rdi)', decode('90 90', { RDI = AT + 8 }, 8, 'f3 48 ab 90').name)
    assert.is_nil(decode('90 90', { RDI = AT + 8 }, 8, '48 ab 90'))
  end)
end)
