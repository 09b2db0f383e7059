-- SPDX-License-Identifier: GPL-2.0-only
local addresses = require 'lib.engines.net.addresses'

describe('addresses', function()
  local function bytes(...)
    local list = {}
    for i = 1, select('#', ...) do list[i - 1] = (select(i, ...)) end
    return list
  end
  local ids = addresses.new()
  local v4 = ids.v4(bytes(127, 0, 0, 1))

  it('gives an IPv4 address one id, however it is written', function()
    assert.equal(v4, ids.v6(bytes(0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 255, 255, 127, 0, 0, 1)))
    assert.equal(v4, ids.of_socket(2, 0x0100007f, 1, 2, 3, 4))
    assert.same({ v4, 443 }, { ids.sockaddr(bytes(2, 0, 1, 0xbb, 127, 0, 0, 1)) })
    assert.not_equal(v4, ids.v4(bytes(127, 0, 0, 2)))
  end)

  it('writes addresses and ports as people do', function()
    local v6 = ids.sockaddr(bytes(10, 0, 0, 80, 0, 0, 0, 0, 0xfe, 0x80, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1))
    assert.equal('127.0.0.1', ids.text(v4))
    assert.equal('::1', ids.text(ids.of_socket(10, 0x0100007f, 0, 0, 0, 0x01000000)))
    assert.equal(443, addresses.port(0xbb01))
    assert.equal('127.0.0.1:80', ids.with_port(v4, 80))
    assert.equal('fe80::1', ids.text(v6))
    assert.equal('[fe80::1]:443', ids.with_port(v6, 443))
    assert.is_nil(ids.text(-1))
    assert.is_nil(ids.with_port(99, 80))
  end)
end)
