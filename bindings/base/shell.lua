-- SPDX-License-Identifier: GPL-2.0-only
--- Shell words: splitting and quoting.
local shell = {}

--- Splits a line into words as a shell does. The end of the line closes an open quote.
---@param line string
---@return string[] words
---@return integer[] columns of the words' first characters
---@return integer? unclosed column of an unclosed quote
---@return boolean touches whether the last word ends at the end of the line
function shell.split(line)
  local words, columns = {}, {}
  local word, begin, quote, quoted_at
  local i = 1
  while i <= #line do
    local char = line:sub(i, i)
    if not begin and not char:find '%s' then begin = i end
    if quote then
      if char == quote then quote = nil else word = word .. char end
    elseif char == "'" or char == '"' then
      quote, quoted_at, word = char, i, word or ''
    elseif char:find '%s' then
      if word then words[#words + 1], columns[#columns + 1] = word, begin end
      word, begin = nil, nil
    else
      if char == '\\' then i = i + 1 end
      word = (word or '') .. line:sub(i, i)
    end
    i = i + 1
  end
  if word then words[#words + 1], columns[#columns + 1] = word, begin end
  return words, columns, quote and quoted_at, word ~= nil
end

--- Quotes a word for the shell if necessary.
---@param word string
---@return string
function shell.quote(word)
  if word:match '^[%w_:,./=@%%+-]+$' then return word end
  return "'" .. word:gsub("'", "'\\''") .. "'"
end

return shell
