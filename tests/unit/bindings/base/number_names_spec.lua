-- SPDX-License-Identifier: GPL-2.0-only
-- System calls by machine.
local names = require 'bindings.base.number_names'

describe('names of system calls', function()
  it('depend on the machine', function()
    assert.equal('read', names.syscall(0, 'x86_64'))
    assert.equal('io_setup', names.syscall(0, 'aarch64'))
    assert.equal('read', names.syscall(63, 'aarch64'))
    assert.equal('uname', names.syscall(63, 'x86_64'))
    assert.equal('read', names.syscall(3, 'i686'))
    assert.equal('read', names.syscall(3, 'armv7l'))
  end)
  it('are those of this machine by default', function()
    local machine = io.popen('uname -m'):read '*l'
    for nr = 0, 400 do
      assert.equal(names.syscall(nr, machine), names.syscall(nr))
    end
  end)
  it('are numbers if there is no name', function()
    assert.equal('x32:getpid', names.syscall(2 ^ 30 + 39, 'x86_64'))
    assert.equal('x32:execve', names.syscall(2 ^ 30 + 520, 'x86_64'))
    assert.equal('1073741863', names.syscall(2 ^ 30 + 39, 'aarch64'))
    assert.equal('99999', names.syscall(99999, 'x86_64'))
    assert.equal('i386:getpid', names.syscall(2 ^ 29 + 20, 'x86_64'))
    assert.equal('i386:10000', names.syscall(2 ^ 29 + 10000, 'x86_64'))
    assert.equal('536870932', names.syscall(2 ^ 29 + 20, 'aarch64'))
    assert.equal('-1', names.syscall(-1, 'x86_64'))
    assert.equal('3', names.syscall(3, 'pdp11'))
  end)
end)
