-- SPDX-License-Identifier: GPL-2.0-only
-- Errors in texts that users type (event selectors, filters, expressions): one clear line that says
-- what and where, then the text with a caret below the place.

local nearest = require 'bindings.base.nearest'

local diagnostic = {}

---@class Diagnostic
---@field what string what the text is: 'event', 'filter', 'expression'
---@field text string the whole text, as typed
---@field column integer byte of the text the error is at, from 1
---@field message string
---@field hint string|nil what to do instead

local MAX_QUOTED = 60 -- characters of the text in the first line
local MAX_MESSAGE = 160 -- characters: messages quote words of the text
local WINDOW = 72 -- characters of the text above the caret

---@return Diagnostic
function diagnostic.new(what, text, column, message, hint)
  return { what = what, text = text, column = column, message = message, hint = hint }
end

local function printable(text)
  return (text:gsub('%c', function(char) return ('\\x%02x'):format(char:byte()) end))
end

local function cut(text, most)
  text = printable(text)
  return #text > most and text:sub(1, most - 3) .. '...' or text
end

-- Characters a terminal shows for printable text: UTF-8 continuation bytes take no column.
local function width(text)
  return select(2, text:gsub('[^\128-\191]', ''))
end

--- The error as one line, without the caret.
---@param err Diagnostic
---@return string
function diagnostic.line(err)
  local text, message = cut(err.text, MAX_QUOTED), cut(err.message, MAX_MESSAGE)
  local line = ("bad %s '%s': %s at column %d"):format(err.what, text, message, err.column)
  return err.hint and line .. '; ' .. err.hint or line
end

--- The error as one line, the text around it, and a caret line.
---@param err Diagnostic
---@return string three lines, without a final newline
function diagnostic.caret(err)
  local first = math.max(1, err.column - math.floor(WINDOW * 2 / 3))
  local before = printable(err.text:sub(first, err.column - 1))
  local after = printable(err.text:sub(err.column, first + WINDOW - 1))
  return ('%s\n  %s%s\n  %s^'):format(diagnostic.line(err), before, after, (' '):rep(width(before)))
end

--- The error for a name that does not exist.
---@param kind string what the name should be: 'variable', 'field'
---@param name string
---@param names string[] those that exist; they get sorted
---@return Diagnostic
function diagnostic.unknown(what, text, column, kind, name, names)
  table.sort(names)
  local message = ("unknown %s '%s'"):format(kind, name)
  return diagnostic.new(what, text, column, message, diagnostic.suggest(name, names))
end

--- The hint for an unknown word, nil where no name is near.
---@param word string
---@param names string[]
---@return string|nil
function diagnostic.suggest(word, names)
  local name = nearest.find(word, names)
  return name and ("did you mean '%s'?"):format(name) or nil
end

return diagnostic
