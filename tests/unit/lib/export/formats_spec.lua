-- SPDX-License-Identifier: GPL-2.0-only
-- Formats of --export by suffix and by name.
local formats = require 'lib.export.formats'

local function parsed(text)
  local format, path = formats.parse(text)
  return format and format.name, path
end

describe('the format of an export', function()
  it('is that of the longest suffix', function()
    for text, name in pairs {
      ['a.pftrace'] = 'perfetto', ['a.perfetto-trace.gz'] = 'perfetto', ['a.json'] = 'chrome', ['a.json.gz'] = 'chrome',
      ['x/a.b.speedscope.json'] = 'speedscope', ['a.profile.json.gz'] = 'firefox', ['a.pb.gz'] = 'pprof',
      ['a.pprof'] = 'pprof', ['a.folded'] = 'folded', ['C:a.collapsed'] = 'folded',
    } do
      assert.equal(name, (parsed(text)))
      assert.equal(text, select(2, parsed(text)))
    end
  end)

  it('is the name in front of the file', function()
    assert.same({ 'pprof', 'a.json' }, { parsed 'pprof:a.json' })
    assert.same({ 'chrome', '/dev/stdout' }, { parsed 'chrome:/dev/stdout' })
  end)

  it('is asked for if it is unknown', function()
    assert.truthy(select(2, formats.parse 'perfeto:a'):find("did you mean 'perfetto'", 1, true))
    assert.truthy(select(2, formats.parse 'a.jsn'):find("did you mean '.json'", 1, true))
    assert.truthy(select(2, formats.parse 'a'):find('unknown', 1, true))
  end)

  it('is a file, whose suffixes no other one has', function()
    local owners, names = {}, formats.names()
    assert.same({ 'chrome', 'firefox', 'folded', 'html', 'perfetto', 'pprof', 'speedscope' }, names)
    for _, name in ipairs(names) do
      local format = formats.get(name)
      assert.is_function(format.new)
      for _, suffix in ipairs(format.suffixes) do
        assert.falsy(owners[suffix])
        owners[suffix] = name
      end
    end
  end)
end)
