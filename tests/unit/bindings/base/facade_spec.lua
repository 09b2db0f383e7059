-- SPDX-License-Identifier: GPL-2.0-only
local facade = require 'bindings.base.facade'

describe('a facade', function()
  local Count = {}
  function Count:add(n) self.n = self.n + n return self.n end
  function Count:reset() self.n = 0 end
  local public = facade.class('count', Count, { 'add' })

  it('has the public methods and fields of its object, and no others', function()
    local object = setmetatable({ n = 1 }, { __index = Count })
    local count = public(object, { title = 'CPU' })
    assert.equal(6, count:add(5))
    assert.equal(6, object.n)
    assert.equal('CPU', count.title)
    assert.is_nil(count.n)
    assert.is_nil(count.reset)
    assert.is_false(getmetatable(count))
    assert.equal(object, facade.object(count))
  end)

  it('is what its methods take', function()
    local count = public { n = 1 }
    for _, other in ipairs { 5, {}, { n = 1 }, facade.class('other', Count, { 'add' }) { n = 1 } } do
      assert.has_error(function() count.add(other, 1) end)
    end
    local ok, message = pcall(function() count.add(nil, 1) end)
    assert.is_false(ok)
    assert.truthy(message:find('count:add is a method: call it with a colon, not with nil', 1, true))
    assert.is_nil(facade.object(nil))
    assert.is_nil(facade.object {})
  end)
end)
