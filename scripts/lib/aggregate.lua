-- SPDX-License-Identifier: GPL-2.0-only
--- Counts, sums, averages, histograms, quantiles and more by key. Adding to them allocates no memory, and they print
--- themselves.
---
---   local waits = aggregate.new('quantiles', { 'comm' })
---   waits:add(ns, ev.comm)
---   waits:print(out)
local aggregate_text = require 'lib.aggregate_text'
local array = require 'lib.array'
local check = require 'bindings.base.check'
local countable = require 'bindings.base.countable'
local hist = require 'lib.hist'
local intern = require 'lib.intern'
local nearest = require 'lib.nearest'
local tables = require 'lib.table'
local units = require 'lib.units'
local wide = require 'bindings.base.wide'

local aggregate = {}

local OTHER = aggregate_text.OTHER
local MAX_PARTS = 4
local EXACT = 2 ^ 53 -- integers beyond are not numbers of Lua
local WITHOUT_UNIT = { count = true, variance = true } -- columns

local abs = math.abs

local function add(a, b) return a + b end

local function add_average(a, b) return { count = a.count + b.count, total = a.total + b.total } end

--- Adds a number to a sum, which is kept as a number and what that lacks.
local function add_wide(values, at, n)
  local before = values[at]
  local sum = before + n
  values[at] = sum
  if abs(sum) < EXACT then return end
  local part = sum - before -- of n; what is left of both is exact (Knuth's TwoSum)
  values[at + 1] = values[at + 1] + (before - (sum - part)) + (n - part)
end

local ADD_WIDE = [[local n = tonumber(v)
    add_wide(values, at, n)
    if type(v) ~= 'number' then values[at + 1] = values[at + 1] + lacks(v, n) end]]

local function merge_hists(a, b)
  local sum = hist.new()
  sum:merge(a)
  sum:merge(b)
  return sum
end

local function merge_linear(a, b)
  local sum = {}
  for _, counts in ipairs { a, b } do
    for i, n in pairs(counts) do sum[i] = (sum[i] or 0) + n end
  end
  return sum
end

--- Returns the source of keeping the least or greatest value, beside the number of values. A 64-bit integer is kept as
--- a number and what that lacks.
local function extreme(op)
  return ([[local at, n, rest = 3 * i, tonumber(v), 0
    if is_wide(v) then rest = lacks(v, n) end
    if values[at] == 0 or n OP values[at + 1] or n == values[at + 1] and rest OP values[at + 2] then
      values[at + 1], values[at + 2] = n, rest
    end
    values[at] = values[at] + 1]]):gsub('OP', op)
end

local function least(a, b) return wide.is_less(b, a) and b or a end

local function greatest(a, b) return wide.is_less(a, b) and b or a end

--- add: source of the statement that adds v to the value of id i; values: number of arguments before the keys; width:
--- numbers by id; total: which of them is the sum; merge: makes two values one. A histogram takes about 4 KiB, hence
--- the lower limit. The bucket of a linear histogram is a part of its key.
local KINDS = {
  count = { max_keys = 65536, add = 'values[i] = values[i] + 1', values = 0, merge = add },
  sum = { max_keys = 65536, add = 'local at = 2 * i ' .. ADD_WIDE, values = 1, width = 2, total = 0, merge = add },
  avg = { max_keys = 65536, values = 1, width = 3, total = 1, merge = add_average, add = [[local at = 3 * i + 1
    values[at - 1] = values[at - 1] + 1 ]] .. ADD_WIDE },
  min = { max_keys = 65536, values = 1, width = 3, is_extreme = true, merge = least, add = extreme '<' },
  max = { max_keys = 65536, values = 1, width = 3, is_extreme = true, merge = greatest, add = extreme '>' },
  hist = { max_keys = 4096, add = 'values:add(i, v)', values = 1, hists = true, buckets = true, merge = merge_hists },
  lhist = { max_keys = 65536, add = 'values[i] = values[i] + 1', values = 1, linear = true, buckets = true,
    merge = merge_linear },
  quantiles = { max_keys = 4096, add = 'values:add(i, v)', values = 1, hists = true, merge = merge_hists },
  stats = { max_keys = 4096, add = 'values:add(i, v)', values = 1, hists = true, merge = merge_hists },
}

--- An aggregation of one kind.
---@class Aggregate
---@field add fun(self: Aggregate, ...) takes the keys; all but counts take the value before them
---@field call fun(...) add() without self
---@field is_followed? boolean another table is printed after it: a blank line ends its histograms
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
  local bucket = kind.linear and [[local n = tonumber(v)
    local bucket = n < low and -1 or n >= high and last or floor((n - low) / step)  ]] or ''
  if kind.linear then key = key == '' and 'bucket' or key .. ', bucket' end
  local numeric = kind.values == 1 and "if type(v) ~= 'number' and not is_wide(v) then refuse(v) end  " or ''
  local body = ('if extra ~= nil then surplus() end  %s%slocal i = id(%s)  %s'):format(numeric, bucket, key, kind.add)
  -- A forgotten argument would be the last key. One-liners (call) have as many keys as they have arguments.
  local complete = parts > 0 and ('if k%d == nil then missing() end  '):format(parts) or ''
  args = args == '' and 'extra' or args .. ', extra'
  return ([[
local id, values, refuse, surplus, missing, is_wide, lacks, add_wide, low, high, step, last = ...
local floor = math.floor
return function(%s, extra) %s%s end, function(%s) %s end]]):format(table.concat(names, ', '), complete, body, args,
    body)
end

--- Returns the columns after the keys. add_rows() fills the fields of these names.
local function value_columns(kind, value)
  if kind == 'count' or kind == 'sum' then return { { name = value or kind, metric = 'counter' } } end
  if kind == 'min' or kind == 'max' then return { { name = value or kind } } end
  if kind == 'avg' then
    return { { name = 'count', width = 8, metric = 'counter' }, { name = 'total', width = 14, metric = 'counter' },
      { name = value or 'avg', width = 10, format = '%.3f' } }
  end
  if KINDS[kind].buckets then
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

--- Returns the functions that raise an error in the script's line: for a value that is no number, for an argument too
--- many, and for one that is missing.
local function failures(kind, how, keys)
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
  return refuse, surplus, missing
end

--- Creates an aggregation. Keys beyond `max_keys` share one entry, '(other)'.
---@param kind 'count'|'sum'|'avg'|'min'|'max'|'hist'|'lhist'|'quantiles'|'stats'
---@param keys string[] names of the key columns, at most 4; keys are numbers, integer64s or strings
---@param settings? { name?: string, value?: string, max_keys?: integer, stacks?: table<string, boolean>,
--- session?: Session, addresses?: table<string, boolean|fun(n: any): any>, low?: number, high?: number, step?: number,
--- unit?: string } name: name of the table in JSON and CSV; value: name of the column of the count or sum;
--- max_keys: default 65536, 4096 with quantiles; stacks: the keys that are `ev._stack`: they are printed as stacks, and
--- those of the same functions are one entry; session: required for stacks; addresses: the keys, or the column of the
--- value, that are printed in hexadecimal, or as a function returns them; low, high, step: required for lhist: its
--- buckets are those below low, [low, low + step), ..., and from high; unit: of the values, such as 'ns', which text
--- has as '1.08 s' or '64 KiB'
---@return Aggregate
function aggregate.new(kind, keys, settings)
  settings = settings or {}
  check.settings(settings, { 'name', 'value', 'max_keys', 'stacks', 'session', 'addresses', 'low', 'high', 'step',
    'unit' }, 'aggregate.new')
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
  local unit = units.get(settings.unit)
  if settings.unit and not unit then
    error(("aggregate.new: there is no unit '%s'; it is one of %s"):format(tostring(settings.unit),
      table.concat(units.names(), ', ')), 2)
  end
  for _, column in ipairs(value_columns(kind, settings.value)) do
    column.align = 'right'
    if unit and not WITHOUT_UNIT[column.name] then column.unit, column.format = settings.unit, nil end
    columns[#columns + 1] = column
  end
  local max_keys = settings.max_keys or how.max_keys
  local values = how.hists and hist.set(max_keys + 1) or array.new((max_keys + 1) * (how.width or 1))
  local low, high, step = settings.low, settings.high, settings.step
  if how.linear and not (tonumber(low) and tonumber(high) and tonumber(step) and step > 0 and high > low) then
    error('lhist takes three numbers: where its buckets begin, where they end, and their width', 2)
  end
  local self = setmetatable({
    _kind = kind,
    _hists = how.hists,
    _names = keys,
    _values = values, -- by id
    _keys = intern.new(#keys + (how.linear and 1 or 0), max_keys),
    _low = low, _high = high, _step = step, _last = how.linear and math.ceil((high - low) / step) or nil,
    _spec = tables.new(settings.name or kind, columns, { is_ordered = true }), -- print() sorts
    _value = columns[#keys + 1].name,
    _show = unit and unit.show,
    _histogram = settings.value or 'value', -- field of the rows
    _stacks = settings.stacks or {}, _addresses = settings.addresses or {},
    _session = settings.session,
    is_followed = false,
    _past = {}, -- histograms of earlier reports, by title, for pictures
  }, Aggregate)
  local refuse, surplus, missing = failures(kind, how, keys)
  self.add, self.call = assert(loadstring(add_source(how, #keys), '=' .. kind))(self._keys.id, values, refuse, surplus,
    missing, check.is_wide, wide.lacks, add_wide, low, high, step, self._last)
  self._add = self.add
  countable.add_function(self.call, self)
  return self
end

--- Returns what a tally counts of an event with a key and a value, both C expressions.
local function counted(self, key, value)
  local width, total = KINDS[self._kind].width or 1, KINDS[self._kind].total
  local into = { into = self._values, width = width, at = total or 0, value = value, add = total and add_wide }
  return { keys = self._keys, key = key, hist = self._hists and into or nil, sums = not self._hists
    and { into, self._kind == 'avg' and { into = self._values, width = width, at = 0 } or nil } or nil }
end

--- Makes the events of a class count, in the kernel if possible. Returns the handler. Only valid in start().
---@param session Session
---@param event Event
---@param settings { key: (string|{ constant: string })[], value?: string, filter?: string, handler: fun(ev: Ev) }
--- C expressions, and a handler that does the same by add()
---@return fun(ev: Ev) handler
function Aggregate:count(session, event, settings)
  if KINDS[self._kind].is_extreme then return settings.handler end -- programs add up
  self._tally = self._tally or session.tally { keys = self._keys }
  local one = counted(self, settings.key, settings.value)
  one.filter, one.handler = settings.filter, settings.handler
  return self._tally:add(event, one)
end

--- Returns the C expression of the bucket of a value; nil if Lua must compute it.
local function bucket_of(self, term)
  local low, high, step = self._low, self._high, self._step
  if low % 1 ~= 0 or high % 1 ~= 0 or step % 1 ~= 0 or term.type == 'u64' and low < 0 then return end
  local value = term.type == 'u64' and term.value or '(s64)' .. term.value
  return ('(%s < %.0f ? -1 : %s >= %.0f ? %d : (%s - %.0f) / %.0f)'):format(value, low, value, high, self._last, value,
    low, step):gsub('%- %-', '+ ')
end

countable.add(Aggregate, {
  is_own = function(self) return self.add == self._add end,
  count = function(self, terms)
    local how, key = KINDS[self._kind], {}
    local values = how.values
    if #terms ~= values + #self._names then return nil, 'it has the wrong number of arguments' end
    if values > 0 and not terms[1].value then return nil, 'it adds what is not a number' end
    if values > 0 and not terms[1].key and not self._hists then return nil, 'it adds up fractions' end
    if how.is_extreme then return nil, 'it keeps the least or greatest value' end
    for i = values + 1, #terms do
      if not terms[i].key then return nil, 'a key may be a fraction' end
      key[i - values] = terms[i].key
    end
    if how.linear then
      key[#key + 1] = bucket_of(self, terms[1])
      if #key == #self._names then return nil, 'only Lua can compute its buckets' end
    end
    return counted(self, key, values > 0 and not how.linear and terms[1].value or nil)
  end,
})

--- Removes all entries. The memory of histograms is reused.
function Aggregate:clear()
  if self._hists then
    self._values:clear()
  else
    local width = KINDS[self._kind].width or 1
    for i = 0, self._keys:count() * width - 1 do self._values[i] = 0 end
    for i = 0, width - 1 do self._values[self._keys.max * width + i] = 0 end
  end
  self._keys:clear()
end

--- Returns the value of an id: a number, an average, or a histogram.
local function value_of(self, id)
  if self._hists then return self._values:get(id) end
  local kind, values = KINDS[self._kind], self._values
  if not kind.width then return values[id] end
  local at = kind.width * id + (kind.total or 1)
  local whole = wide.whole(values[at], values[at + 1])
  return self._kind == 'avg' and { count = values[at - 1], total = whole } or whole
end

--- Returns what entries of a value are sorted by.
local function weight_of(self, value)
  if self._hists then return value:stats().count end
  if type(value) == 'table' then value = tonumber(value.total) / value.count end
  return value == value and tonumber(value) or -math.huge
end

local function weight(self, id) return weight_of(self, value_of(self, id)) end

--- Returns the weight of the limit-th entry, below which entries are skipped. With 65536 keys this takes a tenth of
--- the time of sorting all entries.
local function min_weight(self, n, limit)
  if n <= limit then return -math.huge end
  local weights = {}
  for id = 0, n - 1 do weights[id + 1] = weight(self, id) end
  table.sort(weights)
  return weights[n - limit + 1]
end

--- Returns whether the key of an entry is before that of another, by its parts from the first to the last.
local function by_key(a, b, first)
  for i = first or 1, #a.key do
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

local function by_weight_then_key(a, b)
  if a.weight ~= b.weight then return a.weight > b.weight end
  return by_key(a, b)
end

--- Makes the entries of the buckets of linear histograms one by their other keys.
local function join_buckets(list)
  local found, joined = {}, {}
  for _, entry in ipairs(list) do
    local bucket = table.remove(entry.key)
    local parts = {}
    for i, part in ipairs(entry.key) do parts[i] = type(part) .. tostring(part) end
    local key = table.concat(parts, '\1')
    local same = found[key]
    if not same then
      same = { key = entry.key, weight = 0, value = {} }
      found[key], joined[#joined + 1] = same, same
    end
    same.value[bucket], same.weight = entry.value, same.weight + entry.value
  end
  return joined
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
    else
      same.value = KINDS[self._kind].merge(same.value, entry.value)
      same.weight = self._kind == 'lhist' and same.weight + entry.weight or weight_of(self, same.value)
    end
  end
  return folded
end

--- Returns the number in a column of an entry's value.
local function column_of(self, value, name)
  if self._kind == 'avg' then return value[name] or tonumber(value.total) / value.count end
  local has_buckets = KINDS[self._kind].buckets
  if has_buckets or not self._hists then return has_buckets and weight_of(self, value) or value end
  local stats, percent = value:stats(), name:match '^p(%d+)$'
  if percent then return value:quantile(percent / 100) end
  return name == 'total' and stats.sum or stats[name] or value
end

--- Returns a function that says which of two entries is the first.
local function order(self, sort)
  if not sort or sort == 'value' then return by_weight_then_key end
  if sort == 'key' then return by_key end
  for i, name in ipairs(self._names) do
    if name == sort then return function(a, b) return by_key(a, b, i) end end
  end
  return function(a, b)
    local x, y = column_of(self, a.value, sort), column_of(self, b.value, sort)
    x, y = x == x and tonumber(x) or -math.huge, y == y and tonumber(y) or -math.huge
    if x ~= y then return x > y end
    return by_key(a, b)
  end
end

--- Returns the first entries, heaviest first or in the wanted order: { key = {...}, weight, value }. '(other)' is the
--- last.
local function entries(self, limit, sort)
  local n, list, linear = self._keys:count(), {}, KINDS[self._kind].linear
  local has_stacks = next(self._stacks) ~= nil
  local min = (has_stacks or linear or sort) and -math.huge or min_weight(self, n, limit)
  for id = 0, n - 1 do
    local w = weight(self, id)
    if w >= min then
      local key = {}
      for part = 1, #self._names + (linear and 1 or 0) do key[part] = self._keys:part(id, part) end
      list[#list + 1] = { key = key, weight = w, value = value_of(self, id) }
    end
  end
  if linear then list = join_buckets(list) end
  if has_stacks then
    table.sort(list, by_weight_then_key)
    list = fold(self, list)
  end
  table.sort(list, order(self, sort))
  for i = #list, limit + 1, -1 do list[i] = nil end
  if self._keys:overflow() > 0 then
    local key, value = {}, value_of(self, self._keys.max)
    for part = 1, #self._names do key[part] = OTHER end
    list[#list + 1] = { key = key, value = linear and { [self._last + 1] = value } or value }
  end
  return list
end

--- Appends the rows of an entry for out:table().
local function add_rows(self, rows, entry, out)
  local function new_row()
    local row = {}
    for i, name in ipairs(self._names) do
      local part = entry.key[i]
      local is_list = self._stacks[name] and part ~= OTHER and out:takes_rows()
      row[name] = is_list and self._session.stack_lines(part) or aggregate_text.shown(self, name, part)
    end
    rows[#rows + 1] = row
    return row
  end
  if KINDS[self._kind].buckets then
    local counts = aggregate_text.counts(entry.value)
    local low, high = aggregate_text.range { counts }
    for i = low, high do
      if self._hists or counts[i] then
        local row = new_row()
        row.low, row.high = aggregate_text.bucket(self, i)
        row.count = counts[i] or 0
        if i == low and self._hists then row[self._histogram] = entry.value end
      end
    end
  else
    local row = new_row()
    local sum = self._kind == 'avg' and entry.value.total or self._kind == 'sum' and entry.value or 0
    if type(sum) == 'number' and math.abs(sum) >= EXACT and not self._is_rounded then
      self._is_rounded = true
      out:warn(('%s: sums of more than 64 bits are rounded'):format(self._spec.name))
    end
    for i = #self._names + 1, #self._spec.columns do
      local name = self._spec.columns[i].name
      local value = column_of(self, entry.value, name)
      row[name] = aggregate_text.shown(self, name, value)
    end
    if not self._hists then return end
    row[self._histogram] = entry.value
    local negative = entry.value:stats().negative
    if negative > 0 then out:warn(('%s: counted %d negative values as 0'):format(self._spec.name, negative)) end
  end
end

--- Returns the names of the columns that entries can be sorted by.
---@return string[]
function Aggregate:column_names()
  local names = {}
  for _, column in ipairs(self._spec.columns) do
    if column.name ~= 'low' and column.name ~= 'high' and column.metric ~= 'histogram' then
      names[#names + 1] = column.name
    end
  end
  return names
end

--- Returns whether entries can be sorted by a column.
---@param name string
---@return boolean
function Aggregate:has_column(name)
  for _, known in ipairs(self:column_names()) do
    if known == name then return true end
  end
  return name == 'key' or name == 'value'
end

--- Calls a function with each entry, largest first. Keys beyond max_keys are one entry, the last, with keys '(other)'.
---@param each fun(value: number|integer64|Hist, ...: any) the count or sum, or the histogram, and the keys
function Aggregate:each(each)
  for _, entry in ipairs(entries(self, math.huge)) do each(entry.value, unpack(entry.key, 1, #self._names)) end
end

--- Prints all entries, largest first. Prints nothing if there are none.
---@param out Output
---@param settings? { limit?: integer, sort?: string } limit: print at most this many entries; sort: 'value' (default),
--- 'key', or the name of a column: keys in ascending order, values in descending order
function Aggregate:print(out, settings)
  check.is(out, 'table', self._kind .. ':print takes out, the second argument of start')
  check.settings(settings, { 'limit', 'sort' }, self._kind .. ':print')
  local sort = settings and settings.sort
  if sort and not self:has_column(sort) then
    error(("%s:print: there is no column '%s' to sort by"):format(self._kind, sort), 2)
  end
  if not sort and out.sort and self:has_column(out.sort) then sort = out.sort end
  local list = entries(self, settings and settings.limit or math.huge, sort)
  local rows = {}
  for _, entry in ipairs(list) do add_rows(self, rows, entry, out) end
  local is_drawn = KINDS[self._kind].buckets
  local lines = is_drawn and aggregate_text.histogram or next(self._stacks) and aggregate_text.stack
  out:table(self._spec, rows, nil, lines and function()
    local parts = {}
    for i, entry in ipairs(list) do parts[i] = lines(self, entry, rows[i]) end
    return table.concat(parts, is_drawn and '\n' or '') .. (is_drawn and self.is_followed and '\n' or '')
  end, is_drawn and out.tty and not (out.report_page and out.report_page.draws) and aggregate_text.picture(self, list)
    or nil)
end

check.members(Aggregate, 'an aggregation', { 'add', 'call' })

return aggregate
