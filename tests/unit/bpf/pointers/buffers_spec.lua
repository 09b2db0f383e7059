-- SPDX-License-Identifier: GPL-2.0-only
local buffers = require 'bpf.pointers.buffers'

describe('what an argument of a system call points to', function()
  it('is a string if the kernel only reads it', function()
    assert.is_true(buffers.is_string('openat', 'filename', 'const char *'))
    assert.is_true(buffers.is_string('mount', 'type', 'char *'))
  end)

  it('is no string if it is not known where it ends', function()
    assert.is_false(buffers.is_string('new_call', 'buf', 'char *'))
    assert.is_false(buffers.is_string('mount', 'data', 'void *'))
    assert.is_false(buffers.is_string('shmat', 'shmaddr', 'char *'))
    assert.is_false(buffers.is_string('mincore', 'vec', 'unsigned char *'))
  end)

  it('is a buffer if the call says where it ends', function()
    assert.equal('count', buffers.rule('write', 'buf').length)
    assert.equal(8, buffers.rule('ppoll', 'ufds').unit)
    assert.is_nil(buffers.rule('process_vm_readv', 'rvec'))
    assert.is_nil(buffers.rule('newstat', 'statbuf'))
  end)
end)
