-- SPDX-License-Identifier: GPL-2.0-only
local ffi = require 'ffi'
local names = require 'lib.names'

describe('names', function()
  it('of errors are those of errno(1) and the C library', function()
    assert.equal('ENOENT', names.errno(-2))
    assert.equal('ETIMEDOUT', names.errno(110LL))
    assert.equal('ERESTARTSYS', names.errno(-512))
    assert.equal('4095', names.errno(-4095))
    local pipe = assert(io.popen 'python3 -c "import errno\nfor n, s in errno.errorcode.items(): print(n, s)"')
    local same = { EDEADLOCK = 'EDEADLK', EWOULDBLOCK = 'EAGAIN', ENOTSUP = 'EOPNOTSUPP' }
    for line in pipe:lines() do
      local number, name = line:match '^(%d+) (%w+)$'
      local ours = names.errno(tonumber(number))
      if ours ~= number then assert.equal(same[name] or name, ours) end
    end
    pipe:close()
  end)

  it('of flags, signals, states and capabilities', function()
    assert.equal('O_WRONLY|O_CREAT|O_TRUNC', names.open_flags(0x241))
    assert.equal('O_RDONLY', names.open_flags(0))
    assert.equal('O_RDWR|O_SYNC|O_CLOEXEC', names.open_flags(tonumber('2', 8) + 0x101000 + 0x80000))
    assert.equal('O_RDONLY|0x40000000', names.open_flags(0x40000000))
    assert.equal('b|a|0x8', names.flags(0xb, { { 2, 'b' }, { 1, 'a' }, { 4, 'c' } }))
    assert.equal('0', names.flags(0, { { 1, 'a' } }))
    assert.equal('SIGKILL', names.signal(9))
    assert.equal('64', names.signal(64))
    assert.equal('LISTEN', names.tcp_state(10))
    assert.equal('info lost', names.signal_result(4))
    assert.equal('5', names.signal_result(5))
    assert.equal('SYS_ADMIN', names.capability(21))
    assert.equal('CHECKPOINT_RESTORE', names.capability(40))
  end)

  it('of IP addresses', function()
    local function ip(...) return names.ip(ffi.metatype('struct { uint8_t at[' .. select('#', ...) .. ']; }', {
      __index = function(s, i) return s.at[i] end,
      __len = function(s) return ffi.sizeof(s) end,
    })({ { ... } })) end
    assert.equal('10.0.0.255', ip(10, 0, 0, 255))
    assert.equal('::1', ip(0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1))
    assert.equal('::', ip(0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0))
    assert.equal('fe80::1:0:0:2', ip(0xfe, 0x80, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 2))
    assert.equal('::ffff:10.1.2.3', ip(0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 255, 255, 10, 1, 2, 3))
    assert.equal('1:0:2:3:4:5:6:7', ip(0, 1, 0, 0, 0, 2, 0, 3, 0, 4, 0, 5, 0, 6, 0, 7))
  end)

  it('refuses what has no name', function()
    assert.matches('names.errno takes a number, not nil', select(2, pcall(names.errno)))
    assert.equal('127.0.0.1', names.ip '\127\0\0\1')
    assert.equal('::1', names.ip(('\0'):rep(15) .. '\1'))
    assert.matches('names.ip takes a field of 4 or 16 bytes', select(2, pcall(names.ip, 5)))
  end)
end)
