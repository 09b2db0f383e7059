-- SPDX-License-Identifier: GPL-2.0-only
--- Reads the pages of the documentation: their lines, links and anchors.
local pages = {}

--- Returns the paths of files, in the order of their names.
---@param folder string
---@param pattern? string
---@return string[]
function pages.list(folder, pattern)
  local list, pipe = {}, assert(io.popen(("ls -d %s/%s"):format(folder, pattern or '*')))
  for path in pipe:lines() do list[#list + 1] = path end
  pipe:close()
  return list
end

--- Returns the paths of all pages.
---@return string[]
function pages.all()
  local list = { 'README.md' }
  for _, folder in ipairs { 'docs', 'docs/guide' } do
    for _, path in ipairs(pages.list(folder, '*.md')) do list[#list + 1] = path end
  end
  return list
end

--- Iterates over the lines of a page; is_code: they are in a block of code.
---@param path string
---@return fun(): string?, boolean?
function pages.lines(path)
  local next_line, is_inside = assert(io.lines(path)), false
  return function()
    local line = next_line()
    if not line then return end
    local is_fence = line:find '^%s*```' ~= nil
    if is_fence then is_inside = not is_inside end
    return line, is_inside or is_fence or line:find '^    ' ~= nil
  end
end

--- Calls change(target) for each link of a line outside of `code`, and returns the line with its results.
---@param line string
---@param change fun(target: string): string?
---@return string
function pages.replace_links(line, change)
  local kept = {}
  line = line:gsub('`[^`]*`', function(code)
    kept[#kept + 1] = code
    return ('\1%d\2'):format(#kept)
  end)
  line = line:gsub('%]%(([^ )]+)%)', function(target)
    local changed = change(target)
    return changed and ('](%s)'):format(changed)
  end)
  return (line:gsub('\1(%d+)\2', function(n) return kept[tonumber(n)] end))
end

--- Returns a function that returns the anchor which GitHub gives to each next heading of a page: lower case, without
--- punctuation, with - for blanks, and -N for the Nth repetition.
---@return fun(heading: string): string
function pages.anchors()
  local seen = {}
  return function(heading)
    local name = heading:gsub('%[([^%]]*)%]%([^)]*%)', '%1'):lower():gsub('[^%w_ -]', ''):gsub(' ', '-')
    local n = seen[name] or 0
    seen[name] = n + 1
    return n > 0 and ('%s-%d'):format(name, n) or name
  end
end

--- Returns what a link of a page leads to: a path in the source tree, and an anchor with its #, or nothing.
---@param page string
---@param target string
---@return string path
---@return string anchor
function pages.resolve(page, target)
  local path, anchor = target:match '^([^#]*)(.*)$'
  if path == '' then return page, anchor end
  path = (page:match '(.*/)' or '') .. path
  local n
  repeat path, n = path:gsub('[^/]+/%.%./', '', 1) until n == 0
  return path, anchor
end

return pages
