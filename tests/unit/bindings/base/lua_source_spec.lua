-- SPDX-License-Identifier: GPL-2.0-only
-- Whose a function is.
local lua_source = require 'bindings.base.lua_source'

it('functions of the host are those of bindings/ and bpf/', function()
  for _, fn in ipairs { lua_source.next, require 'bpf.ways.count'.new, require 'bpf.plan.planner'.plan } do
    assert.is_true(lua_source.is_host(debug.getinfo(fn, 'S').source))
  end
  for _, source in ipairs { '@scripts/lib/counter.lua', '@/x/bindings/a.lua', '@bpf.lua', '=(command)' } do
    assert.is_false(lua_source.is_host(source))
  end
end)
