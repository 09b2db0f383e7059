-- SPDX-License-Identifier: GPL-2.0-only
-- Which file a sector belongs to.
local file_blocks = require 'lib.engines.disks.file_blocks'

local DISK, PARTITION = 8 * 2 ^ 20, 8 * 2 ^ 20 + 1 -- names that no machine has here
local PER_BLOCK = 8 -- sectors

local devices = { disk_of = { [PARTITION] = DISK }, name = function(_, dev) return 'none' .. dev % 2 ^ 20 end }

local files

local function at(sector)
  return files.names[files:at(DISK, sector)]
end

describe('files by block', function()
  before_each(function() files = file_blocks.new(devices, false) end)

  it('are those of the extents that were seen', function()
    files:put(PARTITION, 12, 1000, 10)
    files:put(PARTITION, 13, 1010, 1)
    assert.equal('inode 12 of 8:1', at(1000 * PER_BLOCK))
    assert.equal('inode 12 of 8:1', at(1010 * PER_BLOCK - 1))
    assert.equal('inode 13 of 8:1', at(1010 * PER_BLOCK))
    assert.falsy(at(1011 * PER_BLOCK))
    assert.falsy(at(1000 * PER_BLOCK - 1))
  end)

  it('can be larger than a part of the disk', function()
    files:put(PARTITION, 12, 500, 32768)
    assert.equal('inode 12 of 8:1', at(500 * PER_BLOCK))
    assert.equal('inode 12 of 8:1', at(33267 * PER_BLOCK))
    assert.falsy(at(33268 * PER_BLOCK))
  end)

  it('are the last ones that had the blocks', function()
    files:put(DISK, 12, 1000, 100)
    files:put(DISK, 13, 1050, 10)
    assert.equal('inode 13 of 8:0', at(1050 * PER_BLOCK))
    assert.equal('inode 12 of 8:0', at(1060 * PER_BLOCK))
    for i = 1, 300 do files:put(DISK, 20 + i, 1100 + i, 1) end -- more than are kept
    assert.equal('inode 320 of 8:0', at(1400 * PER_BLOCK))
    assert.equal('inode 65 of 8:0', at(1145 * PER_BLOCK))
    assert.falsy(at(1144 * PER_BLOCK))
  end)
end)
