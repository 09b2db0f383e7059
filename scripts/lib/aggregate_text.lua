-- SPDX-License-Identifier: GPL-2.0-only
--- Aggregations as text: histograms with bars, those of a terminal with their past, and entries with stacks.
local addresses = require 'bindings.print.addresses'
local shades = require 'lib.shades'
local text = require 'bindings.base.text'
local units = require 'lib.units'

local aggregate_text = {}

aggregate_text.OTHER = '(other)' -- the entry of all keys beyond max_keys

local OTHER = aggregate_text.OTHER
local BAR = 52 -- width of a histogram's longest bar
local LABEL, LABEL_WITH_UNITS = '%-16s %8d ', '%-20s %8d ' -- of a bucket: its bounds and count
local MIN_BAR, PAST, DRAWN = 16, 240, 64 -- of a picture: bar, earlier intervals, histograms
local ORDER = { negative = -2, zero = -1 } -- of buckets without an exponent
local GAP = '...' -- stands for empty buckets between others

--- Returns the numbers in the buckets of an entry, by bucket.
function aggregate_text.counts(value)
  if type(value) == 'table' then return value end
  local counts = {}
  for _, b in ipairs(value:log2()) do counts[ORDER[b.exponent] or b.exponent] = tonumber(b.count) end
  return counts
end

--- Returns the bounds and the label of a histogram bucket.
function aggregate_text.bucket(self, i)
  local power = self._show and function(n) return self._show(2 ^ n) end or units.power2
  local show = self._show or units.short
  if self._step then
    if i == -1 then return nil, self._low, ('(..., %s)'):format(show(self._low)) end
    if i == self._last then return self._high, nil, ('[%s, ...)'):format(show(self._high)) end
    if i > self._last then return nil, nil, OTHER end
    local low = self._low + i * self._step
    local high = math.min(low + self._step, self._high)
    return low, high, ('[%s, %s)'):format(show(low), show(high))
  end
  if i == -2 then return nil, 0, '(..., 0)' end
  if i == -1 then return 0, 1, '[0]' end
  local label = i == 0 and '[1]' or ('[%s, %s)'):format(power(i), power(i + 1))
  return 2 ^ i, 2 ^ (i + 1), label
end

--- Returns the least and the greatest bucket of some histograms, and the largest count.
function aggregate_text.range(list)
  local low, high, max = math.huge, -math.huge, 0
  for _, counts in ipairs(list) do
    for i, count in pairs(counts) do
      if count > 0 then low, high, max = math.min(low, i), math.max(high, i), math.max(max, count) end
    end
  end
  return low, high, max
end

--- Appends the line of each bucket of some histograms that are drawn as one, without empty ones.
local function draw(lines, list, line)
  local low, high = aggregate_text.range(list)
  local before = low
  for i = low, high do
    local is_empty = true
    for _, counts in ipairs(list) do is_empty = is_empty and (counts[i] or 0) == 0 end
    if not is_empty then
      if i > before + 1 then lines[#lines + 1] = GAP end
      lines[#lines + 1] = line(i)
      before = i
    end
  end
end

--- Returns a part of a key, or a value, as it is printed.
function aggregate_text.shown(self, name, part)
  local how = self._addresses[name]
  if how == true then return addresses.text(part) end
  return how and type(part) ~= 'string' and how(part) or part
end

--- Returns the title of a histogram or stack entry, made of its keys, and the indented lines of its stacks.
local function heading(self, entry)
  local title, lines = {}, {}
  for i, name in ipairs(self._names) do
    local part = entry.key[i]
    if self._stacks[name] then
      for _, line in ipairs(part == OTHER and { part } or self._session.stack_lines(part)) do
        lines[#lines + 1] = '    ' .. line
      end
    else
      part = aggregate_text.shown(self, name, part)
      title[#title + 1] = ('%s=%s'):format(name, type(part) == 'string' and part or units.number(part))
    end
  end
  return text.safe(#title == 0 and self._spec.name or table.concat(title, ' ')), lines
end

local function cell(column, row) return units.text(row[column.name], column.unit) end

--- Returns the text of an entry with a stack: its values, then the stack.
function aggregate_text.stack(self, entry, row)
  local values = {}
  for _, column in ipairs(self._spec.columns) do
    if row[column.name] and column.align == 'right' then
      values[#values + 1] = column.name == self._value and #values == 0 and cell(column, row)
        or ('%s %s'):format(column.name, cell(column, row))
    end
  end
  local title, lines = heading(self, entry)
  table.insert(lines, 1, ('%s: %s'):format(title, table.concat(values, ', ')))
  return table.concat(lines, '\n') .. '\n'
end

--- Returns the text of a bucket's bounds and count.
local function label_text(self, label, count)
  return (self._show and LABEL_WITH_UNITS or LABEL):format(label, count)
end

--- Returns the text of a histogram.
function aggregate_text.histogram(self, entry)
  local counts = aggregate_text.counts(entry.value)
  local _, _, max = aggregate_text.range { counts }
  local title, lines = heading(self, entry)
  table.insert(lines, 1, title .. ':')
  draw(lines, { counts }, function(i)
    local count, _, _, label = counts[i] or 0, aggregate_text.bucket(self, i)
    return ('%s|%-52s|'):format(label_text(self, label, count), ('@'):rep(math.floor(count * BAR / max)))
  end)
  return table.concat(lines, '\n') .. '\n'
end

--- Draws histograms for a terminal: each with those of the intervals before as a heat map, newest on the right.
function aggregate_text.picture(self, list)
  local now, titles, stacks = {}, {}, {}
  for i = 1, math.min(#list, DRAWN) do
    titles[i], stacks[i] = heading(self, list[i])
    now[titles[i]] = aggregate_text.counts(list[i].value)
  end
  local past = self._past
  past[#past + 1] = now
  if #past > PAST then table.remove(past, 1) end
  return function(columns)
    local lines = {}
    local bar = math.max(MIN_BAR, math.min(BAR, math.floor((columns - 29) / 2)))
    local width = math.max(1, columns - 29 - bar) -- of the heat map
    local first = math.max(1, #past - width + 1)
    for i, title in ipairs(titles) do
      local shown = {}
      for at = first, #past do shown[#shown + 1] = past[at][title] end
      local _, _, max = aggregate_text.range(shown)
      local _, _, longest = aggregate_text.range { now[title] }
      lines[#lines + 1] = title .. ':'
      for _, line in ipairs(stacks[i]) do lines[#lines + 1] = line end
      draw(lines, shown, function(at)
        local count, cells = now[title][at] or 0, {}
        for time = first, #past do cells[#cells + 1] = past[time][title] and past[time][title][at] or 0 end
        local _, _, label = aggregate_text.bucket(self, at)
        local text_bar = ('@'):rep(math.floor(count * bar / longest))
        return ('%s|%s%s| %s'):format(label_text(self, label, count), text_bar, (' '):rep(bar - #text_bar),
          shades.line(cells, max))
      end)
      lines[#lines + 1] = ''
    end
    return lines
  end
end

return aggregate_text
