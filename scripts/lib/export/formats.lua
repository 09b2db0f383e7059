-- SPDX-License-Identifier: GPL-2.0-only
--- The formats of --export. Each is a module of its own, scripts/lib/export/NAME.lua, which is loaded when it is used.
local nearest = require 'bindings.base.nearest'

local formats = {}

---@class ExportFormat
---@field name string as in --export NAME:FILE
---@field suffixes string[] of files that have this format without a NAME; each may be followed by .gz

---@type ExportFormat[]
formats.list = {
  { name = 'perfetto', suffixes = { '.pftrace', '.perfetto-trace' } },
  { name = 'chrome', suffixes = { '.json' } },
  { name = 'folded', suffixes = { '.folded', '.collapsed' } },
  { name = 'speedscope', suffixes = { '.speedscope.json' } },
  { name = 'pprof', suffixes = { '.pb.gz', '.pprof' } },
  { name = 'firefox', suffixes = { '.profile.json' } },
  { name = 'html', suffixes = { '.html' } },
}

local function names()
  local list = {}
  for i, format in ipairs(formats.list) do list[i] = format.name end
  return list
end

--- Returns the format and the file that an option names.
---@param text string FILE or FORMAT:FILE
---@return ExportFormat? format nil: see message
---@return string path_or_message
function formats.parse(text)
  local word, rest = text:match '^(%a+):(.+)$'
  for _, format in ipairs(formats.list) do
    if format.name == word then return format, rest end
  end
  local best, length, suffixes = nil, 0, {}
  local plain = text:gsub('%.gz$', '')
  for _, format in ipairs(formats.list) do
    for _, suffix in ipairs(format.suffixes) do
      suffixes[#suffixes + 1] = suffix
      local is_it = text:sub(-#suffix) == suffix or plain:sub(-#suffix) == suffix
      if is_it and #suffix > length then best, length = format, #suffix end
    end
  end
  if best then return best, text end
  if word and not rest:find '^/?/' then
    return nil, ("unknown export format '%s' (%s)%s"):format(word, table.concat(names(), ', '),
      nearest.hint(word, names()))
  end
  local suffix = text:match '[^/](%.%w+)$' or ''
  return nil, ("the format of '%s' is unknown: use FORMAT:FILE (%s), or a suffix such as %s%s"):format(text,
    table.concat(names(), ', '), table.concat({ suffixes[1], suffixes[3] }, ' or '), nearest.hint(suffix, suffixes))
end

return formats
