-- SPDX-License-Identifier: GPL-2.0-only
-- Errors in event selectors, filters and expressions: one line with the error and its column, then the text with a
-- caret below that column.

local nearest = require 'bindings.base.nearest'

local diagnostic = {}

---@class Diagnostic
---@field what string kind of text: 'event', 'filter', 'expression'
---@field text string the whole text, as typed
---@field column integer byte in the text, from 1
---@field message string
---@field hint string|nil how to fix it

local MAX_QUOTED = 60 -- characters of the text in the first line
local MAX_MESSAGE = 160 -- characters; messages quote words of the text
local WINDOW = 72 -- characters of the text above the caret

---@return Diagnostic
function diagnostic.new(what, text, column, message, hint)
  return { what = what, text = text, column = column, message = message, hint = hint }
end

local function printable(text)
  return (text:gsub('%c', function(char) return ('\\x%02x'):format(char:byte()) end))
end

local function cut(text, max)
  text = printable(text)
  return #text > max and text:sub(1, max - 3) .. '...' or text
end

-- Returns the columns that a text takes on a terminal. UTF-8 continuation bytes take none.
local function width(text)
  return select(2, text:gsub('[^\128-\191]', ''))
end

--- Formats the error as one line, without the caret.
---@param err Diagnostic
---@return string
function diagnostic.line(err)
  local text, message = cut(err.text, MAX_QUOTED), cut(err.message, MAX_MESSAGE)
  local line = ("bad %s '%s': %s at column %d"):format(err.what, text, message, err.column)
  return err.hint and line .. '; ' .. err.hint or line
end

--- Formats the error as one line, followed by the text around it and a caret.
---@param err Diagnostic
---@return string three lines without a final newline
function diagnostic.caret(err)
  local first = math.max(1, err.column - math.floor(WINDOW * 2 / 3))
  local before = printable(err.text:sub(first, err.column - 1))
  local after = printable(err.text:sub(err.column, first + WINDOW - 1))
  return ('%s\n  %s%s\n  %s^'):format(diagnostic.line(err), before, after, (' '):rep(width(before)))
end

--- Returns the error for an unknown name.
---@param kind string 'variable', 'field'
---@param name string
---@param names string[] the valid names; sorted in place
---@return Diagnostic
function diagnostic.unknown(what, text, column, kind, name, names)
  table.sort(names)
  local message = ("unknown %s '%s'"):format(kind, name)
  return diagnostic.new(what, text, column, message, diagnostic.suggest(name, names))
end

--- Returns the hint for an unknown word, nil if no name is near.
---@param word string
---@param names string[]
---@return string|nil
function diagnostic.suggest(word, names)
  local name = nearest.find(word, names)
  return name and ("did you mean '%s'?"):format(name) or nil
end

return diagnostic
