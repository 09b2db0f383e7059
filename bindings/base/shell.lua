-- SPDX-License-Identifier: GPL-2.0-only
--- Words as a shell divides a line into them, and as it must be given them.
local shell = {}

--- Divides a line. An unclosed quote ends with the line.
---@param line string
---@return string[] words
---@return integer[] columns of the words' first characters
---@return integer? unclosed column of the quote that is not closed
---@return boolean touches the last word ends where the line ends
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

--- A word as the shell must see it.
---@param word string
---@return string
function shell.quote(word)
  if word:match '^[%w_:,./=@%%+-]+$' then return word end
  return "'" .. word:gsub("'", "'\\''") .. "'"
end

return shell
