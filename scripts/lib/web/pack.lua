-- SPDX-License-Identifier: GPL-2.0-only
--- Makes the files of pages and pictures into a Lua module that returns their texts by name. A page gets the style
--- sheets and scripts that it refers to, so it is one file for browsers. The program contains the module as
--- lib.web.files:
---   luajit scripts/lib/web/pack.lua scripts/lib/web/*.html ... >build/web.lua
local texts, names = {}, {}

for i, path in ipairs(arg) do
  local file = assert(io.open(path))
  names[i] = path:match '[^/]*$'
  texts[names[i]] = file:read '*a'
  file:close()
end

local function inlined(element)
  return function(name) return ('<%s>\n%s</%s>'):format(element, assert(texts[name], name), element) end
end

io.write 'return {\n'
for _, name in ipairs(names) do
  local text = texts[name]
  if name:find '%.html$' then
    text = text:gsub('<link rel="stylesheet" href="([^"]+)">', inlined 'style')
      :gsub('<script src="([^"]+)"></script>', inlined 'script')
  end
  io.write(('  [%q] = %q,\n'):format(name, text))
end
io.write '}\n'
