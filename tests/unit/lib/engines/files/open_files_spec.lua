-- SPDX-License-Identifier: GPL-2.0-only
-- Which file a descriptor is, after what processes do to it.
local fs = require 'lib.fs'
local open_files = require 'lib.engines.files.open_files'

local CWD = -100
local A, B = 10, 20 -- processes

local files

local function path(pid, fd) return (files:path(files:at(pid, fd))) end

describe('files of a recording', function()
  before_each(function() files = open_files.new(false, false) end)

  it('have the path by which they were opened', function()
    files:open(A, 3, '/etc/passwd', CWD)
    assert.equal('/etc/passwd', path(A, 3))
    assert.equal('(fd 3)', path(B, 3))
    assert.equal('(unknown)', (files:path(files:open(A, -2, nil, CWD))))
    assert.equal('/no', (files:path(files:open(A, -2, '/no', CWD))))
    assert.equal('/etc/passwd', path(A, 3))
  end)

  it('are named from the working directory, or a folder that is open', function()
    files:open(A, 3, 'name', CWD)
    assert.equal('name', path(A, 3))
    files:chdir(A, '/var')
    files:open(A, 3, 'name', CWD)
    assert.equal('/var/name', path(A, 3))
    files:open(A, 4, '/usr/lib', CWD)
    files:open(A, 5, './x', 4)
    assert.equal('/usr/lib/x', path(A, 5))
    files:chdir(A, nil, 4)
    files:fork(B, A)
    files:open(B, 6, 'y', CWD)
    assert.equal('/usr/lib/y', path(B, 6))
  end)

  it('are copied, inherited and closed', function()
    files:open(A, 3, '/a', CWD, true)
    files:dup(A, 3, 1)
    files:open(A, 4, '/b', CWD)
    files:fork(B, A)
    files:close(A, 3)
    assert.equal('(fd 3)', path(A, 3))
    assert.equal('/a', path(A, 1))
    assert.equal('/a', path(B, 3))
    files:exec(B)
    assert.equal('(fd 3)', path(B, 3))
    assert.equal('/a', path(B, 1))
    files:close_range(B, 4, 2 ^ 32 - 1)
    assert.equal('(fd 4)', path(B, 4))
    assert.equal('/a', path(B, 1))
    files:close_range(A, 1, 1, true)
    assert.equal('/a', path(A, 1))
    files:exec(A)
    assert.equal('(fd 1)', path(A, 1))
    files:exit(A)
    assert.equal('(fd 4)', path(A, 4))
  end)

  it('are not sockets, unless they are asked for', function()
    files:put(A, 3, 'socket')
    assert.equal(open_files.NONE, files:at(A, 3))
    files = open_files.new(false, true)
    files:put(A, 3, 'socket')
    assert.equal('socket', path(A, 3))
  end)
end)

describe('files of this process', function()
  it('that were open before are found, and their file system', function()
    files = open_files.new(true, false)
    local file = assert(io.open '/proc/self/status')
    local pid, fd = assert(tonumber(fs.link '/proc/self')), nil
    files:look_up(pid)
    for _, name in ipairs(assert(fs.list '/proc/self/fd')) do
      if (fs.link('/proc/self/fd/' .. name) or ''):find '/status$' then fd = tonumber(name) end
    end
    local found, mount = files:path(files:at(pid, assert(fd)))
    file:close()
    assert.equal(('/proc/%d/status'):format(pid), found)
    assert.equal('/proc', mount)
  end)
end)
