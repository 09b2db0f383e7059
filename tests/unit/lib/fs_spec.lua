-- SPDX-License-Identifier: GPL-2.0-only
-- Links and inodes of files that the test makes.
local fs = require 'lib.fs'
local sys = require 'bindings.base.sys'

describe('a file', function()
  it('has the path to which a link leads', function()
    local path = os.tmpname()
    os.remove(path)
    assert(os.execute(('ln -s /no/such %s'):format(path)))
    finally(function() os.remove(path) end)
    assert.equal('/no/such', fs.link(path))
    assert.equal(nil, fs.link '/proc/self/status')
    assert.equal(nil, fs.link '/no/such')
  end)

  it('is found by its inode, if its file system has handles like those of ext4', function()
    local path = os.tmpname()
    finally(function() os.remove(path) end)
    local found = fs.of_inode('/tmp', assert(sys.stat(path)).inode % 2 ^ 32)
    local pipe = assert(io.popen 'stat -f -c %T /tmp; id -u')
    local may_find = pipe:read '*a' == 'ext2/ext3\n0\n'
    pipe:close()
    assert(found == path or not may_find and found == nil, found)
    assert.equal(nil, fs.of_inode('/no/such', 1))
    assert.equal(nil, fs.of_inode('/proc', 1))
  end)
end)
