-- SPDX-License-Identifier: GPL-2.0-only
--- Makes the files of pages and pictures into a Lua module that returns their texts by name. A page gets the style
--- sheets and scripts that it refers to, so it is one file for browsers. The program contains the module as
--- lib.web.files. The files d3-*.js, modules of Debian's node-d3, become d3.js:
---   luajit scripts/lib/web/pack.lua scripts/lib/web/*.html ... >build/web.lua
local texts, names = {}, {}

for _, path in ipairs(arg) do
  local file = assert(io.open(path), path .. ' is missing: run `sudo make deps`')
  local name, content = path:match '[^/]*$', file:read '*a'
  file:close()
  if name:find '^d3%-.*%.js$' then
    texts['d3.js'] = (texts['d3.js'] or '') .. content
  else
    names[#names + 1], texts[name] = name, content
  end
end

local inside = {} -- pages: not needed on their own

local function inlined(element)
  return function(name)
    inside[name] = true
    return ('<%s>\n%s</%s>'):format(element, assert(texts[name], name), element)
  end
end

for _, name in ipairs(names) do
  if name:find '%.html$' then
    texts[name] = texts[name]:gsub('<link rel="stylesheet" href="([^"]+)">', inlined 'style')
      :gsub('<script src="([^"]+)"></script>', inlined 'script')
  end
end
io.write 'return {\n'
for _, name in ipairs(names) do
  if not inside[name] then io.write(('  [%q] = %q,\n'):format(name, texts[name])) end
end
io.write '}\n'
