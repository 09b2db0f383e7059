-- SPDX-License-Identifier: GPL-2.0-only
local pages = require 'bindings.print.page'

describe('print.page', function()
  it('cuts lines to one less than the columns', function()
    assert.equal('abcd', pages.fit('abcdef', 5))
    assert.equal('abcd', pages.fit('abcd', 5))
    assert.equal('äöüß', pages.fit('äöüßé', 5))
    assert.equal('', pages.fit('abc', 1))
  end)

  it('does not count colors, and ends them', function()
    assert.equal('\27[48;5;52mab\27[mcd', pages.cut('\27[48;5;52mab\27[mcd', 5))
    assert.equal('\27[48;5;52mab\27[mcd\27[m', pages.cut('\27[48;5;52mab\27[mcde', 5))
    assert.equal('\27[31mabcd\27[m', pages.cut('\27[31mabcd\27[m', 5))
  end)

  it('escapes what is not to be a color', function()
    assert.equal('\\x1b[31', pages.fit('\27[31mred', 8))
  end)
end)
