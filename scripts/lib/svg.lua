-- SPDX-License-Identifier: GPL-2.0-only
--- Picture files: escaping, pages and atomic writes. A picture is one self-contained SVG or HTML file, which works with
--- and without JavaScript.
local sys = require 'bindings.base.sys'
local text = require 'bindings.base.text'

local svg = {}

local ENTITIES = { ['&'] = '&amp;', ['<'] = '&lt;', ['>'] = '&gt;', ['"'] = '&quot;', ["'"] = '&#39;' }

--- Escapes any bytes for XML and HTML text and attributes.
---@param s string
---@return string
function svg.escape(s)
  s = text.safe(s):gsub('[&<>"\']', ENTITIES)
  return (s:gsub('\239\191[\190\191]', '?')) -- U+FFFE and U+FFFF are invalid in XML
end

--- Returns the kind of picture of a file name.
---@param path string
---@return 'svg'|'html'|nil kind nil: not a picture
function svg.kind(path)
  local suffix = path:match '%.(%w+)$'
  return (suffix == 'svg' or suffix == 'html') and suffix or nil
end

--- Returns the text of a file in scripts/lib/web/. They are loaded when one is needed: the search for names in what a
--- script can reach (bpf/handlers/mentions.lua) would read all of them at each start.
---@param name string
---@return string
---@package
function svg.file(name) return require('lib.web.files')[name] end

--- Creates the file that will replace another one. What is not a regular file, such as a symbolic link or a pipe, is
--- written itself.
---@param path string
---@return file* file
---@return string? temporary its path
local function create(path)
  local temporary = sys.is_replaceable(path) and path .. '.tmp' or nil
  if temporary then os.remove(temporary) end -- of a run that was killed
  local file, message
  if temporary then file, message = io.open(temporary, 'wx') else file, message = sys.create(path) end
  if not file then error(('cannot write %s'):format(message), 0) end
  return file, temporary
end

--- Raises an error if a file cannot be written. Call this at the start of a run.
---@param path string
function svg.check(path)
  if not sys.is_replaceable(path) then
    local why = sys.why_not_writable(path) -- the target of a link may not exist yet
    if why then error(('cannot write %s: %s'):format(path, why), 0) end
    return
  end
  local file, temporary = create(path)
  file:close()
  os.remove(temporary)
end

--- Replaces a file atomically.
---@param path string
---@param parts string[] parts of the content
function svg.save(path, parts)
  local file, temporary = create(path)
  local message
  local ok = true
  for _, part in ipairs(parts) do
    if ok then ok, message = file:write(part) end
  end
  local closed, why = file:close()
  if ok and closed and temporary then ok, message = os.rename(temporary, path) end
  if not (ok and closed) then
    if temporary then os.remove(temporary) end
    error(('cannot write %s: %s'):format(path, message or why), 0)
  end
end

--- Returns the style sheet of an <svg> element.
---@param css string
---@return string
---@package
function svg.style(css) return ('<style>\n%s</style>\n'):format(css) end

--- Returns a script of an <svg> element.
---@param js string
---@return string
---@package
function svg.script(js) return ('<script type="text/ecmascript"><![CDATA[\n%s]]></script>\n'):format(js) end

--- Writes an SVG to FILE.svg or FILE.html.
---@param path string
---@param title string
---@param elements string[] parts of the <svg> element
---@param below? string[] HTML to show below the picture of FILE.html
function svg.write(path, title, elements, below)
  local parts, after = {}, nil
  if svg.kind(path) == 'html' then
    parts[1], after = svg.file('picture.html'):match '^(.*)<!%-%- the picture %-%->\n(.*)$'
    parts[1] = parts[1]:gsub('(<title>)[^<]*', function(element) return element .. svg.escape(title) end, 1)
  else
    parts[1] = '<?xml version="1.0" encoding="UTF-8" standalone="no"?>\n'
  end
  for _, list in ipairs { elements, svg.kind(path) == 'html' and below or {} } do
    for _, part in ipairs(list) do
      parts[#parts + 1] = part
    end
  end
  parts[#parts + 1] = after
  svg.save(path, parts)
end

return svg
