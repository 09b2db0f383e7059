-- SPDX-License-Identifier: GPL-2.0-only
--- Prepares the pages for mkdocs, which makes the static, searchable site of `make site` from them:
---   luajit docs/site.lua build
--- writes build/site.yml and build/site.md/. The pages stay as GitHub shows them; what mkdocs needs besides is added
--- to the copies: the anchors of headings, a blank line before each list, and pages for the files that links name. The
--- navigation is that of docs/README.md: its sections, and the pages in the lists below them.
local pages = require 'docs.pages'

local OUT = assert(arg[1], 'usage: site.lua FOLDER')
local OVERVIEW = 'overview.md' -- README.md of the source tree

local function write(path, text)
  os.execute(("mkdir -p '%s'"):format(path:match '(.*)/'))
  local file = assert(io.open(path, 'w'))
  file:write(text)
  file:close()
end

--- Returns the place in the site of a path in the source tree.
local function place_of(path)
  if path == 'README.md' then return OVERVIEW end
  return path:match '^docs/(.*)' or 'files/' .. path:gsub('%.%w+$', '') .. '.md'
end

--- Returns a path as seen from a page of the site.
local function relative(from, to)
  local up = select(2, from:gsub('/', ''))
  return ('../'):rep(up) .. to
end

local shown = {} -- files and folders that are no pages, by path

--- Returns the target of a link of a page.
local function target_of(page, target)
  if target:find '^%a+:' or target:find '^#' then return target end
  local path, anchor = pages.resolve(page, target)
  if not path:find '%.md$' and not path:find '%.svg$' then shown[path] = true end
  return relative(place_of(page), place_of(path)) .. anchor
end

--- Returns a page as mkdocs needs it.
local function converted(page)
  local lines, anchor, before = {}, pages.anchors(), ''
  for line, is_code in pages.lines(page) do
    if not is_code then
      local heading = line:match '^#+ +(.*)'
      if heading then line = ('%s {#%s}'):format(line, anchor(heading)) end
      line = line:gsub('^  %- ', '    - ') -- an inner list
      if line:find '^[-*] ' and before ~= '' and not before:find '^[-*] ' and not before:find '^ ' then
        lines[#lines + 1] = ''
      end
      line = pages.replace_links(line, function(target) return target_of(page, target) end)
    end
    lines[#lines + 1], before = line, line
  end
  return table.concat(lines, '\n') .. '\n'
end

--- Returns the sections of docs/README.md, with the titles and paths of their pages. The pages of an index follow it.
local function sections()
  local list, listed = {}, {}
  local function add(index)
    for line, is_code in pages.lines(index) do
      local heading = not is_code and line:match '^## (.*)'
      if heading then list[#list + 1] = { title = heading } end
      local title, target = line:match '[-|] %[([^%]]*)%]%(([^)#]*%.md)%)'
      local path = title and #list > 0 and pages.resolve(index, target)
      if path and not listed[path] then
        listed[path] = true
        table.insert(list[#list], { title = title, path = path })
        if path:find 'README%.md$' then add(path) end
      end
    end
  end
  add 'docs/README.md'
  return list
end

local function quoted(text) return "'" .. text:gsub("'", "''") .. "'" end

local function yaml()
  local lines = { 'site_name: profscript', 'docs_dir: site.md', 'site_dir: site', 'use_directory_urls: false',
    'theme: { name: mkdocs, highlightjs: false }', 'plugins: [ search ]',
    'markdown_extensions: [ attr_list, tables, fenced_code, sane_lists ]', 'nav:', '- Documentation: README.md',
    '- Overview: ' .. OVERVIEW }
  for _, section in ipairs(sections()) do
    lines[#lines + 1] = ('- %s:'):format(quoted(section.title))
    for _, page in ipairs(section) do
      lines[#lines + 1] = ('  - %s: %s'):format(quoted(page.title), place_of(page.path))
    end
  end
  return table.concat(lines, '\n') .. '\n'
end

--- Writes a page about a file, or about the files in a folder.
local function write_file(path)
  local file = io.open(path)
  local text = file and file:read '*a'
  local lines = { '# ' .. path, '' }
  if text then
    lines[#lines + 1] = ('```\n%s```'):format(text)
  else
    for _, inside in ipairs(pages.list(path)) do
      lines[#lines + 1] = ('- [%s](%s)'):format(inside, relative(place_of(path), place_of(inside)))
      write_file(inside)
    end
  end
  write(OUT .. '/site.md/' .. place_of(path), table.concat(lines, '\n') .. '\n')
end

for _, page in ipairs(pages.all()) do write(OUT .. '/site.md/' .. place_of(page), converted(page)) end
for path in pairs(shown) do write_file(path) end
os.execute(("mkdir -p '%s/site.md/images' && cp docs/images/* '%s/site.md/images/'"):format(OUT, OUT))
write(OUT .. '/site.yml', yaml())
