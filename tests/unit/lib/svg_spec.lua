-- SPDX-License-Identifier: GPL-2.0-only
local svg = require 'lib.svg'

local function read(path)
  local file = assert(io.open(path, 'rb'))
  local content = file:read '*a'
  file:close()
  return content
end

describe('a picture file', function()
  local path, victim
  before_each(function()
    path, victim = os.tmpname(), os.tmpname()
    local file = assert(io.open(victim, 'w'))
    file:write 'precious'
    file:close()
    assert.equal(0, os.execute(("ln -s '%s' '%s.tmp'"):format(victim, path)))
  end)
  after_each(function()
    for _, name in ipairs { path, path .. '.tmp', victim } do os.remove(name) end
  end)

  it('is replaced, and no link at its temporary place is followed', function()
    svg.save(path, { '<svg>', '</svg>' })
    assert.equal('<svg></svg>', read(path))
    assert.equal('precious', read(victim))
    assert.is_nil(io.open(path .. '.tmp'))
  end)

  it('can be checked without following a link', function()
    svg.check(path)
    assert.equal('precious', read(victim))
    assert.is_nil(io.open(path .. '.tmp'))
  end)

  it('says why it cannot be written', function()
    assert.error_matches(function() svg.check '/nosuch/dir/x.svg' end,
      '^cannot write /nosuch/dir/x.svg.tmp: No such file or directory')
  end)
end)
