-- SPDX-License-Identifier: GPL-2.0-only
--- The formats of --export: each is a file in scripts/lib/export/formats/, by whose name it is known.
local nearest = require 'bindings.base.nearest'
local plugins = require 'bindings.options.plugins'

local formats = {}

---@class ExportFormat
---@field name string as in --export NAME:FILE; set here
---@field suffixes string[] of files that have this format without a NAME; each may be followed by .gz
---@field new fun(target: ExportTarget): Exporter

--- Returns the names of all formats.
---@return string[]
function formats.names() return plugins.names 'export/formats' end

--- Loads a format.
---@param name string
---@return ExportFormat
function formats.get(name)
  local format = require(('lib.export.formats.%s'):format(name))
  format.name = name
  return format
end

--- Returns the format and the file that an option names.
---@param text string FILE or FORMAT:FILE
---@return ExportFormat? format nil: see message
---@return string path_or_message
function formats.parse(text)
  local names, word, rest = formats.names(), text:match '^(%a+):(.+)$'
  for _, name in ipairs(names) do
    if name == word then return formats.get(name), rest end
  end
  local best, length, suffixes = nil, 0, {}
  local plain = text:gsub('%.gz$', '')
  for _, name in ipairs(names) do
    local format = formats.get(name)
    for _, suffix in ipairs(format.suffixes) do
      suffixes[#suffixes + 1] = suffix
      local is_it = text:sub(-#suffix) == suffix or plain:sub(-#suffix) == suffix
      if is_it and #suffix > length then best, length = format, #suffix end
    end
  end
  if best then return best, text end
  if word and not rest:find '^/?/' then
    return nil, ("unknown export format '%s' (%s)%s"):format(word, table.concat(names, ', '),
      nearest.hint(word, names))
  end
  local suffix = text:match '[^/](%.%w+)$' or ''
  return nil, ("the format of '%s' is unknown: use FORMAT:FILE (%s), or a suffix such as %s%s"):format(text,
    table.concat(names, ', '), table.concat({ suffixes[1], suffixes[2] }, ' or '), nearest.hint(suffix, suffixes))
end

return formats
