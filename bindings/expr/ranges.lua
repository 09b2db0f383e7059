-- SPDX-License-Identifier: GPL-2.0-only
--- Shortens lists of numbers in filters, such as the threads of a large process, because the kernel limits filters to
--- 4095 bytes: `pid==7 || pid==8 || pid==9` becomes `pid>=7 && pid<=9`.
local fold = {}

--- Returns the field and the numbers of a chain `field==N || field==N ...`; nil for any other filter.
---@param text string
---@return string? field
---@return integer[]? numbers
local function numbers_of(text)
  local field, numbers = nil, {}
  for term in (text .. '||'):gmatch '(.-)||' do
    local name, number = term:match '^[%s(]*([%a_][%w_]*)%s*==%s*(%d+)[%s)]*$'
    if not name or (field and name ~= field) then return end
    field = name
    numbers[#numbers + 1] = tonumber(number)
  end
  return field, numbers
end

--- Returns the same filter with consecutive numbers as ranges; nil if it is not such a list or would not become
--- shorter.
---@param text string
---@return string?
function fold.ranges(text)
  local field, numbers = numbers_of(text)
  if not field then return end
  table.sort(numbers)
  local terms, at = {}, 1
  while at <= #numbers do
    local last = at
    while numbers[last + 1] and numbers[last + 1] - numbers[last] <= 1 do
      last = last + 1
    end
    local from, to = numbers[at], numbers[last]
    terms[#terms + 1] = from == to and ('%s==%d'):format(field, from)
      or ('(%s>=%d&&%s<=%d)'):format(field, from, field, to)
    at = last + 1
  end
  local folded = table.concat(terms, '||')
  return #folded < #text and folded or nil
end

return fold
