-- SPDX-License-Identifier: GPL-2.0-only
--- Counts, sums, histograms, quantiles and statistics by key. Adding to them allocates no memory, and they print
--- themselves.
---
---   local waits = aggregate.new('quantiles', { 'comm' })
---   waits:add(ns, ev.comm)
---   waits:print(out)
local array = require 'lib.array'
local check = require 'bindings.base.check'
local countable = require 'bindings.base.countable'
local hist = require 'lib.hist'
local intern = require 'lib.intern'
local nearest = require 'lib.nearest'
local shades = require 'lib.shades'
local tables = require 'lib.table'
local text = require 'bindings.base.text'
local units = require 'lib.units'

local aggregate = {}

local MAX_PARTS = 4
local BAR = 52 -- width of a histogram's longest bar
local LABEL = '%-16s %8d ' -- of a bucket: its bounds and count
local MIN_BAR, PAST, DRAWN = 16, 240, 64 -- of a picture: bar, earlier intervals, histograms
local OTHER = '(other)' -- the entry of all keys beyond max_keys

--- add: source of the statement that adds v to the value of id i; values: number of arguments before the keys.
--- A histogram takes about 4 KiB, hence the lower limit.
local KINDS = {
  count = { max_keys = 65536, add = 'values[i] = values[i] + 1', values = 0 },
  sum = { max_keys = 65536, add = 'values[i] = values[i] + tonumber(v)', values = 1 },
  hist = { max_keys = 4096, add = 'values:add(i, v)', values = 1, hists = true },
  quantiles = { max_keys = 4096, add = 'values:add(i, v)', values = 1, hists = true },
  stats = { max_keys = 4096, add = 'values:add(i, v)', values = 1, hists = true },
}

--- An aggregation of one kind.
---@class Aggregate
---@field add fun(self: Aggregate, ...) takes the keys; all but counts take the value before them
---@field call fun(...) add() without self
local Aggregate = {}
Aggregate.__index = Aggregate

--- Returns the source of add and call with a fixed number of arguments: LuaJIT does not compile varargs.
local function add_source(kind, parts)
  local names = {}
  for i = 1, parts do names[i] = 'k' .. i end
  local key = table.concat(names, ', ')
  if kind.values == 1 then table.insert(names, 1, 'v') end
  local args = table.concat(names, ', ')
  table.insert(names, 1, '_')
  local numeric = kind.values == 1 and "if type(v) ~= 'number' and not is_wide(v) then refuse(v) end  " or ''
  local body = ('if extra ~= nil then surplus() end  %slocal i = id(%s)  %s'):format(numeric, key, kind.add)
  -- A forgotten argument would be the last key. One-liners (call) have as many keys as they have arguments.
  local complete = parts > 0 and ('if k%d == nil then missing() end  '):format(parts) or ''
  args = args == '' and 'extra' or args .. ', extra'
  return ([[
local id, values, refuse, surplus, missing, is_wide = ...
return function(%s, extra) %s%s end, function(%s) %s end]]):format(table.concat(names, ', '), complete, body, args,
    body)
end

--- Returns the columns after the keys. add_rows() fills the fields of these names.
local function value_columns(kind, value)
  if kind == 'count' or kind == 'sum' then return { { name = value or kind, metric = 'counter' } } end
  if kind == 'hist' then
    return { { name = 'low', metric = 'none' }, { name = 'high', metric = 'none' }, { name = 'count', metric = 'none' },
      { name = value or 'value', metric = 'histogram' } }
  end
  local is_stats = kind == 'stats'
  return {
    { name = 'count', width = 8, metric = 'counter', of_histogram = true },
    { name = 'total', width = 14, metric = 'counter', of_histogram = true },
    { name = value or 'value', metric = 'histogram' },
    { name = 'min', width = 10 },
    { name = 'p50', width = 10, show = not is_stats },
    { name = 'p95', width = 10, show = not is_stats },
    { name = 'p99', width = 10, show = not is_stats },
    { name = 'max', width = 10 },
    { name = 'avg', width = 12, format = '%.3f', data_only = not is_stats },
    { name = 'stddev', width = 12, format = '%.3f', data_only = not is_stats },
    { name = 'variance', width = 16, format = '%.3f', data_only = not is_stats },
  }
end

--- Creates an aggregation. Keys beyond `max_keys` share one entry, '(other)'.
---@param kind 'count'|'sum'|'hist'|'quantiles'|'stats'
---@param keys string[] names of the key columns, at most 4; keys are numbers, integer64s or strings
---@param settings? { name?: string, value?: string, max_keys?: integer, stacks?: table<string, boolean>,
--- session?: Session } name: name of the table in JSON and CSV; value: name of the column of the count or sum;
--- max_keys: default 65536, for all but counts and sums 4096; stacks: the keys that are `ev._stack`: they are printed
--- as stacks, and those of the same functions are one entry; session: required for stacks
---@return Aggregate
function aggregate.new(kind, keys, settings)
  settings = settings or {}
  check.settings(settings, { 'name', 'value', 'max_keys', 'stacks', 'session' }, 'aggregate.new')
  local how = KINDS[kind]
  if not how then
    error(("aggregate.new: there is no kind '%s'; it is one of %s"):format(tostring(kind),
      table.concat(nearest.keys(KINDS), ', ')), 2)
  end
  if type(keys) ~= 'table' then
    error(("aggregate.new takes a list of the names of keys, such as { 'pid' }, not a %s"):format(type(keys)), 2)
  end
  if #keys > MAX_PARTS then error(('an aggregation has at most %d keys'):format(MAX_PARTS), 2) end
  local columns = {}
  for i, name in ipairs(keys) do
    columns[i] = { name = name, metric = (settings.stacks or {})[name] and 'none' or 'label' }
  end
  for _, column in ipairs(value_columns(kind, settings.value)) do
    column.align = 'right'
    columns[#columns + 1] = column
  end
  local max_keys = settings.max_keys or how.max_keys
  local values = (how.hists and hist.set or array.new)(max_keys + 1)
  local self = setmetatable({
    _kind = kind,
    _hists = how.hists,
    _names = keys,
    _values = values, -- by id
    _keys = intern.new(#keys, max_keys),
    _spec = tables.new(settings.name or kind, columns),
    _value = columns[#keys + 1].name,
    _histogram = settings.value or 'value', -- field of the rows
    _stacks = settings.stacks or {},
    _session = settings.session,
    _past = {}, -- histograms of earlier reports, by title, for pictures
  }, Aggregate)
  local function refuse(v)
    error(('%s takes numbers, not %s'):format(kind, type(v) == 'cdata' and 'an array' or 'a ' .. type(v)), 3)
  end
  local function arguments()
    local names = table.concat(keys, ', ')
    return how.values == 1 and 'value' .. (#keys > 0 and ', ' or '') .. names or names
  end
  local function surplus() error(('%s takes (%s): there is an argument too many'):format(kind, arguments()), 3) end
  local function missing()
    error(("%s takes (%s): the key '%s' is missing or nil"):format(kind, arguments(), keys[#keys]), 3)
  end
  self.add, self.call = assert(loadstring(add_source(how, #keys), '=' .. kind))(self._keys.id, values, refuse, surplus,
    missing, check.is_wide)
  self._add = self.add
  countable.add_function(self.call, self)
  return self
end

--- Makes the events of a class count, in the kernel if possible. Returns the handler. Only valid in start().
---@param session Session
---@param event Event
---@param settings { key: (string|{ constant: string })[], value?: string, filter?: string, handler: fun(ev: Ev),
--- within?: table } C expressions, and a handler that does the same by add()
---@return fun(ev: Ev) handler
function Aggregate:count(session, event, settings)
  self._tally = self._tally or session.tally { keys = self._keys }
  local into = { into = self._values, width = 1, at = 0, value = settings.value }
  return self._tally:add(event, {
    key = settings.key, filter = settings.filter, handler = settings.handler, within = settings.within,
    sums = not self._hists and { into } or nil,
    hist = self._hists and into or nil,
  })
end

countable.add(Aggregate, {
  is_own = function(self) return self.add == self._add end,
  count = function(self, session, event, terms, settings)
    local values, key = KINDS[self._kind].values, {}
    if #terms ~= values + #self._names then return nil, 'it has the wrong number of arguments' end
    if values > 0 and not terms[1].value then return nil, 'it adds what is not a number' end
    if values > 0 and not terms[1].key and not self._hists then return nil, 'it adds up fractions' end
    for i = values + 1, #terms do
      if not terms[i].key then return nil, 'a key may be a fraction' end
      key[i - values] = terms[i].key
    end
    self:count(session, event, {
      key = key, value = values > 0 and terms[1].value or nil, filter = settings.filter, handler = settings.handler,
      within = settings.within,
    })
    return function() end
  end,
})

--- Removes all entries. The memory of histograms is reused.
function Aggregate:clear()
  if self._hists then
    self._values:clear()
  else
    for id = 0, self._keys:count() - 1 do self._values[id] = 0 end
    self._values[self._keys.max] = 0
  end
  self._keys:clear()
end

--- Returns the number or histogram of an id.
local function value_of(self, id)
  if self._hists then return self._values:get(id) end
  return self._values[id]
end

--- Returns the value that entries are sorted by.
local function weight(self, id)
  local value = value_of(self, id)
  if self._hists then return value:stats().count end
  return value == value and value or -math.huge
end

--- Returns the weight of the limit-th entry, below which entries are skipped. With 65536 keys this takes a tenth of
--- the time of sorting all entries.
local function min_weight(self, n, limit)
  if n <= limit then return -math.huge end
  local weights = {}
  for id = 0, n - 1 do weights[id + 1] = weight(self, id) end
  table.sort(weights)
  return weights[n - limit + 1]
end

local function by_weight_then_key(a, b)
  if a.weight ~= b.weight then return a.weight > b.weight end
  for i = 1, #a.key do
    local x, y = a.key[i], b.key[i]
    if x ~= y then
      local x_text, y_text = type(x) == 'string', type(y) == 'string'
      if x_text ~= y_text then return y_text end -- numbers before strings
      -- Signed and unsigned do not compare; those that are the same double have the same sign.
      if not x_text and tonumber(x) ~= tonumber(y) then x, y = tonumber(x), tonumber(y) end
      if x ~= y then return x < y end
    end
  end
  return false
end

--- Makes entries whose stacks are the same functions one, with the stack of the heaviest. Where in a function the
--- event happened, and from where its callers called, does not matter, as in perf report.
local function fold(self, list)
  local found, folded, names, kinds = {}, {}, {}, {}
  for _, entry in ipairs(list) do
    local parts = {}
    for i, name in ipairs(self._names) do
      local part = entry.key[i]
      if self._stacks[name] then
        local n = self._session.frame_names(part, names, kinds)
        part = table.concat(names, '\0', 1, n)
      end
      parts[i] = type(part) .. tostring(part)
    end
    local key = table.concat(parts, '\1')
    local same = found[key]
    if not same then
      found[key] = entry
      folded[#folded + 1] = entry
    elseif not self._hists then
      same.value = same.value + entry.value
      same.weight = same.value == same.value and same.value or -math.huge
    else
      if not same.sum then
        same.sum = hist.new()
        same.sum:merge(same.value)
        same.value = same.sum
      end
      same.sum:merge(entry.value)
      same.weight = same.weight + entry.weight
    end
  end
  table.sort(folded, by_weight_then_key)
  return folded
end

--- Returns the heaviest entries, heaviest first: { key = {...}, weight, value }. '(other)' is the last.
local function entries(self, limit)
  local n, list = self._keys:count(), {}
  local has_stacks = next(self._stacks) ~= nil
  local min = has_stacks and -math.huge or min_weight(self, n, limit)
  for id = 0, n - 1 do
    local w = weight(self, id)
    if w >= min then
      local key = {}
      for part = 1, #self._names do key[part] = self._keys:part(id, part) end
      list[#list + 1] = { key = key, weight = w, value = value_of(self, id) }
    end
  end
  table.sort(list, by_weight_then_key)
  if has_stacks then list = fold(self, list) end
  for i = #list, limit + 1, -1 do list[i] = nil end
  if self._keys:overflow() > 0 then
    local key = {}
    for part = 1, #self._names do key[part] = OTHER end
    list[#list + 1] = { key = key, value = value_of(self, self._keys.max) }
  end
  return list
end

--- Returns the bounds and the label of a histogram bucket.
local function bucket(exponent)
  if exponent == 'negative' then return nil, 0, '(..., 0)' end
  if exponent == 'zero' then return 0, 1, '[0]' end
  local label = exponent == 0 and '[1]' or ('[%s, %s)'):format(units.power2(exponent), units.power2(exponent + 1))
  return 2 ^ exponent, 2 ^ (exponent + 1), label
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
      title[#title + 1] = ('%s=%s'):format(name, type(part) == 'string' and part or units.number(part))
    end
  end
  return text.safe(#title == 0 and self._spec.name or table.concat(title, ' ')), lines
end

--- Returns the text of an entry with a stack: its values, then the stack.
local function stack_lines(self, entry, row)
  local values = {}
  for _, column in ipairs(self._spec.columns) do
    if row[column.name] and column.align == 'right' then
      values[#values + 1] = column.name == self._value and #values == 0 and units.short(row[column.name])
        or ('%s %s'):format(column.name, units.short(row[column.name]))
    end
  end
  local title, lines = heading(self, entry)
  table.insert(lines, 1, ('%s: %s'):format(title, table.concat(values, ', ')))
  return table.concat(lines, '\n') .. '\n'
end

local function hist_lines(self, entry)
  local max = 0
  local buckets = entry.value:log2()
  for _, b in ipairs(buckets) do max = math.max(max, b.count) end
  local title, lines = heading(self, entry)
  table.insert(lines, 1, title .. ':')
  for _, b in ipairs(buckets) do
    local _, _, label = bucket(b.exponent)
    local bar = ('@'):rep(math.floor(b.count * BAR / max))
    lines[#lines + 1] = (LABEL .. '|%-52s|'):format(label, b.count, bar)
  end
  return table.concat(lines, '\n') .. '\n\n'
end

--- Returns the exponents of all buckets of some histograms, from the lowest to the highest, and the largest count.
local function range_of(list)
  local low, high, max = math.huge, -math.huge, 0
  for _, counts in ipairs(list) do
    for exponent, count in pairs(counts) do
      low, high, max = math.min(low, exponent), math.max(high, exponent), math.max(max, count)
    end
  end
  return low, high, max
end

local ORDER = { negative = -2, zero = -1 } -- of buckets without an exponent
local NAMES = { [-2] = 'negative', [-1] = 'zero' }

--- Draws histograms for a terminal: each with those of the intervals before as a heat map, newest on the right.
local function picture(self, list)
  local now, titles, stacks = {}, {}, {}
  for i = 1, math.min(#list, DRAWN) do
    local counts = {}
    titles[i], stacks[i] = heading(self, list[i])
    for _, b in ipairs(list[i].value:log2()) do counts[ORDER[b.exponent] or b.exponent] = tonumber(b.count) end
    now[titles[i]] = counts
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
      local low, high, max = range_of(shown)
      local _, _, longest = range_of { now[title] }
      lines[#lines + 1] = title .. ':'
      for _, line in ipairs(stacks[i]) do lines[#lines + 1] = line end
      for exponent = low, high do
        local count, cells = now[title][exponent] or 0, {}
        for at = first, #past do cells[#cells + 1] = past[at][title] and past[at][title][exponent] or 0 end
        local _, _, label = bucket(NAMES[exponent] or exponent)
        local text_bar = ('@'):rep(math.floor(count * bar / longest))
        lines[#lines + 1] = LABEL:format(label, count) .. '|' .. text_bar .. (' '):rep(bar - #text_bar) .. '| '
          .. shades.line(cells, max)
      end
      lines[#lines + 1] = ''
    end
    return lines
  end
end

--- Appends the rows of an entry for out:table().
local function add_rows(self, rows, entry, out)
  local function new_row()
    local row = {}
    for i, name in ipairs(self._names) do
      local part = entry.key[i]
      local is_list = self._stacks[name] and part ~= OTHER and out:takes_rows()
      row[name] = is_list and self._session.stack_lines(part) or part
    end
    rows[#rows + 1] = row
    return row
  end
  if self._kind == 'hist' then
    for i, b in ipairs(entry.value:log2()) do
      local row = new_row()
      row.low, row.high = bucket(b.exponent)
      row.count = b.count
      if i == 1 then row[self._histogram] = entry.value end
    end
  elseif self._hists then
    local row, s, h = new_row(), entry.value:stats(), entry.value
    row.count, row.total, row.min, row.max = s.count, s.sum, s.min, s.max
    row.avg, row.stddev, row.variance = s.avg, s.stddev, s.variance
    row.p50, row.p95, row.p99 = h:quantile(0.50), h:quantile(0.95), h:quantile(0.99)
    row[self._histogram] = h
    if s.negative > 0 then out:warn(('%s: counted %d negative values as 0'):format(self._spec.name, s.negative)) end
  else
    new_row()[self._value] = entry.value
  end
end

--- Calls a function with each entry, largest first. Keys beyond max_keys are one entry, the last, with keys '(other)'.
---@param each fun(value: number|Hist, ...: any) the count or sum, or the histogram, and the keys
function Aggregate:each(each)
  for _, entry in ipairs(entries(self, math.huge)) do each(entry.value, unpack(entry.key, 1, #self._names)) end
end

--- Prints all entries, largest first. Prints nothing if there are none.
---@param out Output
---@param settings? { limit?: integer } limit: print at most this many entries
function Aggregate:print(out, settings)
  check.is(out, 'table', self._kind .. ':print takes out, the second argument of start')
  check.settings(settings, { 'limit' }, self._kind .. ':print')
  local list = entries(self, settings and settings.limit or math.huge)
  local rows = {}
  for _, entry in ipairs(list) do add_rows(self, rows, entry, out) end
  local lines = self._kind == 'hist' and hist_lines or next(self._stacks) and stack_lines
  out:table(self._spec, rows, nil, lines and function()
    local parts = {}
    for i, entry in ipairs(list) do parts[i] = lines(self, entry, rows[i]) end
    return table.concat(parts)
  end, self._kind == 'hist' and out.tty and picture(self, list) or nil)
end

return aggregate
