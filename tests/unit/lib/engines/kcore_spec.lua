-- SPDX-License-Identifier: GPL-2.0-only
-- A core file made by the test, with two segments, read as /proc/kcore is.
local kcore = require 'lib.engines.kcore'

--- A little-endian integer of n bytes.
local function int(value, size)
  local bytes = {}
  for i = 1, size do
    bytes[i] = string.char(tonumber(value % 256))
    value = value / 256
    if type(value) == 'number' then value = math.floor(value) end
  end
  return table.concat(bytes)
end

local function header(type, offset, from, size)
  return int(type, 4) .. int(0, 4) .. int(offset, 8) .. int(from, 8) .. int(0, 8) .. int(size, 8) .. int(size, 8)
    .. int(0, 8)
end

local function write(content)
  local path = os.tmpname()
  local file = assert(io.open(path, 'wb'))
  file:write(content)
  file:close()
  finally(function() os.remove(path) end)
  return path
end

local HEAD = '\127ELF\2\1' .. ('\0'):rep(26) .. int(64, 8) .. ('\0'):rep(14) .. int(56, 2) .. int(3, 2) .. int(0, 6)

describe('kcore', function()
  it('finds an address in its segment', function()
    local core = assert(kcore.open(write(HEAD .. header(4, 232, 0xffff000000000000ULL, 9) .. header(1, 232,
      0xffffffff81000000ULL, 8) .. header(1, 240, 0xffff888000001000ULL, 4) .. 'textdatarest')))
    assert.equal('text', core:read(0xffffffff81000000ULL, 4))
    assert.equal('ata', core:read(0xffffffff81000005ULL, 100)) -- the mapping ends
    assert.equal('rest', core:read(0xffff888000001000ULL, 4))
    for _, address in ipairs { 0xffffffff81000008ULL, 0xffff888000000fffULL, 0ULL, 0xffff000000000000ULL } do
      assert.is_nil(core:read(address, 1))
    end
    core:close()
  end)

  it('refuses other files', function()
    for _, content in ipairs { '', 'no core', HEAD:gsub('\2\1', '\1\1') } do
      local core, message = kcore.open(write(content))
      assert.is_nil(core)
      assert.matches('not a 64%-bit ELF file$', message)
    end
    assert.matches('cut off inside its program headers$', select(2, kcore.open(write(HEAD .. 'x'))))
    assert.matches('No such file', select(2, kcore.open '/nowhere/kcore'))
  end)

  it('makes integers', function()
    assert.equal(0x8070605040302010ULL, kcore.integer('\16\32\48\64\80\96\112\128', 1, 8))
    assert.equal(0x3020ULL, kcore.integer('\16\32\48', 2, 2))
  end)
end)
