-- SPDX-License-Identifier: GPL-2.0-only
--- All links between the pages of the documentation lead to a file, and to a heading if they name one. Every page is in
--- the index.
local pages = require 'docs.pages'

local known = {}

--- Returns the anchors of a page, and the number of its links.
local function anchors_of(page)
  if not known[page] then
    local anchor, list = pages.anchors(), {}
    for line, is_code in pages.lines(page) do
      local heading = not is_code and line:match '^#+ +(.*)'
      if heading then list['#' .. anchor(heading)] = true end
    end
    known[page] = list
  end
  return known[page]
end

local function exists(path) return os.execute(("test -e '%s'"):format(path)) == 0 end

--- Returns the links of a page that lead nowhere, and how many it has.
local function dead(page)
  local list, n = {}, 0
  for line, is_code in pages.lines(page) do
    pages.replace_links(is_code and '' or line, function(target)
      n = n + 1
      if target:find '^%a+:' then return end
      local path, anchor = pages.resolve(page, target)
      if not exists(path) or anchor ~= '' and not anchors_of(path)[anchor] then list[#list + 1] = target end
    end)
  end
  return list, n
end

describe('the pages', function()
  it('have no dead links', function()
    local all = 0
    for _, page in ipairs(pages.all()) do
      local list, n = dead(page)
      assert(#list == 0, ('%s: %s'):format(page, table.concat(list, ' ')))
      all = all + n
    end
    assert(all > 200, all)
  end)

  it('are all in the index', function()
    local linked = {}
    for _, index in ipairs { 'docs/README.md', 'docs/guide/README.md' } do
      for line in pages.lines(index) do
        pages.replace_links(line, function(target) linked[pages.resolve(index, target)] = true end)
      end
    end
    for _, page in ipairs(pages.all()) do
      assert(linked[page] or page == 'docs/README.md', page .. ' is not in docs/README.md')
    end
  end)

  it('have links, anchors and code as GitHub sees them', function()
    assert.equal(pages.resolve('docs/guide/vm.md', '../api.md#x'), 'docs/api.md')
    assert.equal(select(2, pages.resolve('docs/guide/vm.md', '../api.md#x')), '#x')
    assert.equal(pages.resolve('docs/api.md', '#x'), 'docs/api.md')
    assert.equal(pages.resolve('README.md', 'docs/a/../b.md'), 'docs/b.md')
    local anchor = pages.anchors()
    assert.equal(anchor 'The event: `ev`', 'the-event-ev')
    assert.equal(anchor 'A -- b_c', 'a----b_c')
    assert.equal(anchor 'The event: `ev`', 'the-event-ev-1')
    local function mark(target) return '<' .. target .. '>' end
    assert.equal(pages.replace_links('[a](b) `[c](d)` [`e`](f#g)', mark), '[a](<b>) `[c](d)` [`e`](<f#g>)')
  end)
end)
