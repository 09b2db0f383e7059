-- SPDX-License-Identifier: GPL-2.0-only
local units = require 'lib.units'

describe('..', function()
  it('takes 64-bit integers', function()
    assert.equal('a18446744073709551615-1b5', 'a' .. 0xffffffffffffffffULL .. -1LL .. 'b' .. 5)
    assert.has_error(function() return 'a' .. require('ffi').new 'int[2]' end, "'..' does not take 'ctype<int [2]>'")
  end)
end)

describe('units.duration', function()
  it('reads every unit', function()
    local expected = {
      ['7'] = 7,
      ['10ns'] = 10,
      ['10us'] = 10e3,
      ['10µs'] = 10e3,
      ['10ms'] = 10e6,
      ['10s'] = 10e9,
      ['1min'] = 60e9,
      ['2h'] = 7200e9,
      ['1d'] = 86400e9,
      ['10MS'] = 10e6,
    }
    for text, ns in pairs(expected) do assert.equal(ns, units.duration(text), text) end
  end)

  it('reads fractions exactly', function()
    assert.equal(1500000, units.duration '1.5ms')
    assert.equal(100000, units.duration '.1ms')
    assert.equal(1234567891, units.duration '1.234567891s')
    assert.equal(90e9, units.duration '1.50min')
  end)

  it('names the invalid text', function()
    local bad = {
      [''] = "invalid duration '' (expected a number and a unit, e.g. 1.5ms)",
      ms = "invalid duration 'ms' (expected a number and a unit, e.g. 1.5ms)",
      ['-1ms'] = "invalid duration '-1ms' (expected a number and a unit, e.g. 1.5ms)",
      ['1.2.3s'] = "invalid duration '1.2.3s' (expected a number and a unit, e.g. 1.5ms)",
      ['1.s'] = "invalid duration '1.s' (expected a number and a unit, e.g. 1.5ms)",
      ['10 ms'] = "invalid duration '10 ms': unknown unit ' ms' (expected ns, us, ms, s, min, h or d)",
      ['10m'] = "invalid duration '10m': unknown unit 'm' (expected ns, us, ms, s, min, h or d)",
      ['1e3ms'] = "invalid duration '1e3ms': unknown unit 'e3ms' (expected ns, us, ms, s, min, h or d)",
      ['0.5ns'] = "invalid duration '0.5ns': finer than 1 ns",
      ['1.0001us'] = "invalid duration '1.0001us': finer than 1 ns",
      ['9999h'] = "invalid duration '9999h': longer than 104 days",
    }
    for text, message in pairs(bad) do
      local ns, why = units.duration(text)
      assert.is_nil(ns, text)
      assert.equal(message, why)
    end
  end)
end)

describe('units.size', function()
  it('reads powers of 1024', function()
    local expected = {
      ['4096'] = 4096,
      ['512B'] = 512,
      ['4K'] = 4096,
      ['4k'] = 4096,
      ['4KB'] = 4096,
      ['1MiB'] = 2 ^ 20,
      ['1.5G'] = 1.5 * 2 ^ 30,
      ['1T'] = 2 ^ 40,
    }
    for text, bytes in pairs(expected) do assert.equal(bytes, units.size(text), text) end
  end)

  it('names the invalid text', function()
    local bad = {
      [''] = "invalid size '' (expected e.g. 4096, 64K or 1MiB)",
      ['4X'] = "invalid size '4X' (expected e.g. 4096, 64K or 1MiB)",
      ['-4K'] = "invalid size '-4K' (expected e.g. 4096, 64K or 1MiB)",
      ['0.3K'] = "invalid size '0.3K': not a whole number of bytes",
      ['99999T'] = "invalid size '99999T': too large",
    }
    for text, message in pairs(bad) do
      local bytes, why = units.size(text)
      assert.is_nil(bytes, text)
      assert.equal(message, why)
    end
  end)
end)

describe('formatting', function()
  it('prints ns as us', function()
  end)

  it('keeps all digits of integers', function()
    assert.equal('9007199254740992', units.number(2 ^ 53))
    assert.equal('18446744073709551615', units.number(0xffffffffffffffffULL))
    assert.equal('-9223372036854775808', units.number(-0x8000000000000000LL))
    assert.equal('0', units.number(-0.0))
  end)

  it('prints fractions so that they read back', function()
    assert.equal('152685.382', units.number(152685.382))
    assert.equal(1 / 3, tonumber(units.number(1 / 3)))
  end)

  it('prints powers of two in short', function()
    local names = { [0] = '1', [9] = '512', [10] = '1K', [19] = '512K', [20] = '1M', [62] = '4E', [63] = '8E' }
    for exponent, name in pairs(names) do assert.equal(name, units.power2(exponent)) end
  end)

  it('prints wall time with microseconds, also across seconds', function()
    local base = 1795190086
    local function at(sec) return os.date('%Y-%m-%d %H:%M:%S', sec) end
    assert.equal(at(base) .. '.227953', units.wall(base, 227953999))
    assert.equal(at(base) .. '.000000', units.wall(base, 0))
    assert.equal(at(base + 3) .. '.000001', units.wall(base, 3000001500))
    assert.equal(at(base) .. '.999999', units.wall(base + 1, -1))
  end)
end)

describe('unsigned numbers', function()
  it('have up to 64 bits', function()
    assert.equal(0xffffffffffffffffULL, units.unsigned '0xffffffffffffffff')
    assert.equal(1234567890123456789ULL, units.unsigned '1234567890123456789')
    for _, text in ipairs { '', '-1', '0x', '1.5', '0x11112222333344445', 'x' } do
      assert.is_nil(units.unsigned(text), text)
    end
  end)
end)

describe('values for people', function()
  it('are decimal for times and binary for bytes', function()
    for ns, text in pairs { [0] = '0 ns', [999] = '999 ns', [1500] = '1.50 us', [64000] = '64 us',
      [1084239839] = '1.08 s',
      [-2500000] = '-2.50 ms', [3600e9] = '3600 s' } do
      assert.equal(text, units.time(ns))
    end
    for n, text in pairs { [0] = '0 B', [1023] = '1023 B', [65536] = '64 KiB', [1572864] = '1.50 MiB',
      [2 ^ 40] = '1 TiB' } do
      assert.equal(text, units.bytes(n))
    end
    assert.equal('16 EiB', units.bytes(0xffffffffffffffffULL))
  end)

  it('have three digits, also where rounding makes a larger unit', function()
    for ns, text in pairs { [999700] = '1 ms', [999499] = '999 us', [9996] = '10.0 us', [99960] = '100 us',
      [-999999] = '-1 ms', [0.25] = '0.25 ns', [512.4] = '512 ns' } do
      assert.equal(text, units.time(ns))
    end
    assert.equal('1 MiB', units.bytes(2 ^ 20 - 1))
  end)

  it('are known by the name of their unit', function()
    assert.equal('1.50 ms', units.text(1.5, 'ms'))
    assert.equal('64 KiB', units.text(64, 'kb'))
    assert.equal('0xffffffffffffffff', units.text(-1, 'address'))
    assert.equal('2 MiB/s', units.text(2 ^ 21, 'bytes/s'))
    assert.equal('1500/s', units.text(1500, 'count/s'))
    assert.equal('1500.5', units.text(1500.5))
    assert.equal(os.date('%Y-%m-%d %H:%M:%S', 1795190086) .. '.227953', units.text(1795190086.227953, 'time'))
    assert.is_nil(units.get 'parsec')
    assert.is_nil(units.get 'parsec/s')
  end)

  it('have the unit that a column or a field says', function()
    assert.same({ 'ns', 'wait' }, { units.of { name = 'wait_ns' } })
    assert.same({ 'bytes', '' }, { units.of { name = 'bytes' } })
    assert.same({ 'ms' }, { units.of { name = 'wait_ns', unit = 'ms' } })
    assert.equal('percent', units.of { name = 'hit', title = 'HIT%' })
    assert.is_nil(units.of { name = 'answers' })
    assert.equal('ns', units.of_field 'runtime')
    assert.equal('bytes', units.of_field 'bytes_alloc')
    assert.is_nil(units.of_field 'pid')
  end)
end)
