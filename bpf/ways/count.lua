-- SPDX-License-Identifier: GPL-2.0-only
--- session.tally: counting that a script declares as data. The events are counted by BPF programs if that is possible,
--- else by a generated handler. Both fill the same keys, arrays and histograms of the script.
local facade = require 'bindings.base.facade'
local ffi = require 'ffi'
local intern = require 'bindings.base.intern'
local public_event = require 'bindings.view.public_event'

local tally = {}

local EXACT = 2 ^ 53 -- Lua's numbers below it are exact

--- What is counted of an event.
---@class TallySettings
---@field key? (string|{ constant: string })[] expressions; events without a value of them are ignored, see
--- Tally:ignored()
---@field thread? boolean the key is the thread; events in threads that have exited are ignored
---@field name? string expression: the name of a key is that of its first event
---@field sums? { into: Array, width: integer, at: integer, value?: string, add?: fun(into: Array, at: integer, n:
--- number) }[] `into[id * width + at]` becomes the number of events, or the sum of the expression `value`
---@field hist? { into: HistSet, negative?: HistSet, width: integer, at: integer, value: string } the histogram
--- `id * width + at` gets the values of an expression; `negative` the absolute values of those below 0, which
--- otherwise count as 0
---@field each? fun(ev: Ev, value: number) also called for each event with the value of `hist`
---@field handler? fun(ev: Ev) counts the same; default: a generated one
---@field filter? string with `handler`: a condition that it checks

--- Counts events, in the kernel if possible. The keys are up to date when `interval` and `stop` are called.
---
---   local calls = session.tally { keys = keys }
---   handlers[event] = calls:add(event, { key = { 'id' }, sums = { { into = counts, width = 1, at = 0 } } })
---@class Tally
---@field package _keys? Keys
---@field package _names table<integer, string|number>
---@field package _list TallyEvent[]
---@field package _stats ffi.cdata* double[2]: events counted, ignored
local Tally = {}
Tally.__index = Tally

local COUNTED, IGNORED = 0, 1

-- The generated handler ---------------------------------------------------------------------------

--- Returns the source of an expression's value, and whether it is text.
local function value_of(self, event, text, values)
  local expression = self._services.expression(event, text)
  if text == '_comm' or text == '_tid' or text == '_cpu' then return 'ev.' .. text, text == '_comm' end
  values[#values + 1] = expression.value
  local call = ('v%d(ev)'):format(#values)
  return expression.type == 'string' and call .. " or 'NULL'" or call, expression.type == 'string'
end

--- Adds a number that Lua's numbers do not hold to one of two histograms.
---@param value integer64
local function add_wide(hist, slot, value)
  if ffi.istype('int64_t', value) and value < 0LL and hist.negative then
    return hist.negative:add(slot, ffi.cast('uint64_t', -value))
  end
  hist.into:add(slot, value)
end

-- Adds a number to one of two histograms.
local ADD = ('if n > %.0f or n < -%.0f then add_wide(slot, exact(ev)) else'):format(EXACT - 1, EXACT - 1)
local SIGNED = 'if n < 0 then negative:add(slot, -n) else positive:add(slot, n) end end'

--- Returns the chunk of a handler's code, and its last arguments.
local function compiled(code, arrays, values)
  local names, all = { 'id_of', 'names', 'stats', 'positive', 'negative', 'each', 'exact', 'add_wide' }, {}
  for i, value in ipairs(arrays) do names[#names + 1], all[#all + 1] = 'into' .. i, value end
  for i, value in ipairs(values) do names[#names + 1], all[#all + 1] = 'v' .. i, value end
  return assert(loadstring(('local %s = ...\nreturn function(ev)\n  %s\nend'):format(table.concat(names, ', '),
    table.concat(code, '\n  ')), '=tally')), all
end

--- Returns a handler that counts events of a class.
local function generate(self, event, one, settings)
  local values, code, id = {}, {}, '0'
  local function add(...) code[#code + 1] = (...):format(select(2, ...)) end
  local ignore = 'stats[1] = stats[1] + 1 return'
  local parts = {}
  for i, text in ipairs(one.key) do
    local value, is_text = value_of(self, event, text, values)
    parts[i] = 'k' .. i
    add('local k%d = %s', i, value)
    if one.threads then
      add 'if k1 < 0 then return end'
    elseif not is_text then
      add('if k%d == nil then %s end', i, ignore)
    end
  end
  local hist = settings.hist
  if hist then
    values[#values + 1] = self._services.number(event, hist.value, 'num')
    add('local n = v%d(ev) if not n then %s end', #values, ignore)
  end
  if self._keys then
    add('local id = id_of(%s)', table.concat(parts, ', '))
    id = 'id'
  end
  add 'stats[0] = stats[0] + 1'
  local arrays = {}
  for i, sum in ipairs(settings.sums or {}) do
    arrays[i] = sum.into
    local number = '1'
    if sum.value then
      values[#values + 1] = self._services.number(event, sum.value)
      number = ('(v%d(ev) or 0)'):format(#values)
    end
    add('local at%d = %s * %d + %d into%d[at%d] = into%d[at%d] + %s', i, id, sum.width, sum.at, i, i, i, i, number)
  end
  if hist then
    add('local slot = %s * %d + %d %s %s', id, hist.width, hist.at, ADD,
      hist.negative and SIGNED or 'positive:add(slot, n) end')
    if settings.each then add 'each(ev, n)' end
  end
  if one.name then
    add('if not names[id] then names[id] = %s end', (value_of(self, event, one.name, values)))
  end
  local chunk, all = compiled(code, arrays, values)
  return chunk(self._keys and self._keys.id, self._names, self._stats, hist and hist.into, hist and hist.negative,
    settings.each, hist and self._services.expression(event, hist.value).value,
    hist and function(slot, value) add_wide(hist, slot, value) end, unpack(all))
end

--- Adds an event. Returns its handler.
---@package
---@param real Event
---@param settings TallySettings
---@param within? TallyProgram with `handler`: the program of which the counting is a part
---@return fun(ev: Ev) handler
function Tally:add_event(real, settings, within)
  local one = {
    event = real, key = settings.thread and { '_tid' } or settings.key or {}, threads = settings.thread,
    name = settings.name, sums = {}, hist = settings.hist and settings.hist.value, filter = settings.filter,
    signed = settings.hist and settings.hist.negative ~= nil, settings = settings,
    within = within, fields = within and within.fields or real.fields,
  }
  for _, sum in ipairs(settings.sums or {}) do one.sums[#one.sums + 1] = sum.value end
  self._list[#self._list + 1], self.events[#self.events + 1] = one, real
  if settings.each then self.reason = 'the script looks at each event' end
  local handler = settings.handler or generate(self, real, one, settings)
  self.handlers[real] = handler
  return handler
end

--- Adds an event. Returns its handler.
---@param event Event
---@param settings TallySettings
---@return fun(ev: Ev) handler
function Tally:add(event, settings) return self:add_event(public_event.one(event, 'tally:add'), settings) end

--- Returns the number of events so far.
---@return number
function Tally:counted() return self._stats[COUNTED] end

--- Returns the number of events without a key or value so far.
---@return number
function Tally:ignored() return self._stats[IGNORED] end

-- In the kernel -----------------------------------------------------------------------------------

tally.verb = 'count'
tally.name, tally.does, tally.lacks = 'count', 'counted', { 'reload', 'newest', 'each_event' }

--- Returns why programs cannot count the events; nil if they can.
---@param offer OfferFacts
---@return string?
function tally.refuses(_, offer) return offer.asks[1] end

Tally.way = 'count'
Tally.attributes = { comm = true, key = true, printkey = true, num = true, ['top-by'] = true, ['top-add'] = true,
  ['top-variance'] = true }

--- Returns the facts of the offer, see OfferFacts.
---@package
function Tally:facts() return { asks = { self.reason } } end

--- Loads the programs: see Offer in bpf/run/in_kernel.lua.
---@package
---@param kernel InKernel
function Tally:load(kernel)
  self._kernel = require('bpf.gen.tally').new(self._list, {
    nr_cpus = kernel.switch.nr_cpus, sides = kernel.switch.sides, max_keys = self._keys and self._keys.max or 1,
    env = self._services.expression_env,
  })
  for i, event in ipairs(self.events) do
    local within = self._list[i].within
    if within then within.add(self._kernel:body(i)) else kernel:probe(event, self._kernel:body(i)) end
  end
end

--- Adds a row of the kernel to the script's arrays and histograms.
---@param is_cell boolean it has no key, or is that of many keys
local function add_row(self, one, index, row, id, is_cell)
  local kernel, n = self._kernel, self._kernel:count(row)
  self._stats[COUNTED] = self._stats[COUNTED] + n
  local given = 0
  for _, sum in ipairs(one.settings.sums or {}) do
    local at = id * sum.width + sum.at
    local high, low = 0, n
    if sum.value then
      given = given + 1
      high, low = kernel:sum(row, given)
    end
    if sum.add then
      sum.add(sum.into, at, high)
      sum.add(sum.into, at, low)
    else
      sum.into[at] = sum.into[at] + (high + low)
    end
  end
  local hist = one.settings.hist
  local slot = hist and id * hist.width + hist.at
  if hist and is_cell then
    kernel:add_hist(row, index, hist.into, hist.negative, slot)
  elseif hist then
    kernel:add_stats(row, hist.into, slot)
  end
end

--- Returns the id of a key in the kernel.
local function id_of(self, one, cpu, bytes)
  local key = {}
  for i, part in ipairs(one.parts) do key[i] = part.at and part.read(bytes + part.at) or part.constant or cpu end
  return self._keys.id(unpack(key, 1, #one.parts))
end

--- Reads what was counted on a side.
---@package
---@param side integer
function Tally:turn(side)
  local kernel, first, counts = self._kernel, {}, {}
  local function add_keyed(index, cpu, row, bytes)
    local one = self._list[index]
    one.seen = (one.seen or 0) + kernel:count(row)
    one.in_rows = (one.in_rows or 0) + kernel:count(row)
    local id = id_of(self, one, cpu, bytes)
    add_row(self, one, index, row, id, false)
    return one, id
  end
  kernel:take_rows(side, function(index, cpu, row, bytes)
    local one, id = add_keyed(index, cpu, row, bytes)
    local time = one.name and kernel:time(row)
    if one.name and not (first[id] and first[id] <= time) then
      first[id], self._names[id] = time, kernel:name(row, index)
    end
  end)
  kernel:take_buckets(side, function(index, cpu, number, n, bytes)
    local one = self._list[index]
    local slot = id_of(self, one, cpu, bytes) * one.settings.hist.width + one.settings.hist.at
    one.in_buckets = (one.in_buckets or 0) + n
    counts[one] = counts[one] or {}
    counts[one][slot] = counts[one][slot] or {}
    counts[one][slot][number] = (counts[one][slot][number] or 0) + n
  end)
  for one, slots in pairs(counts) do
    for slot, numbers in pairs(slots) do kernel:add_buckets(numbers, one.settings.hist.into, slot) end
  end
  kernel:read_cells(side, function(index, cpu, row, ignored)
    local one = self._list[index]
    self._stats[IGNORED] = self._stats[IGNORED] + ignored
    local n = kernel:count(row)
    one.seen = (one.seen or 0) + n + ignored
    if n == 0 then return end
    local id = 0
    if one.hashed > 0 then
      id = self._keys.max
      intern.add_overflow(self._keys, n)
    elseif self._keys then
      id = id_of(self, one, cpu)
    end
    add_row(self, one, index, row, id, true)
  end, add_keyed)
end

--- The number of events of each class that programs counted.
---@package
---@return table<Event, number>
function Tally:by_event()
  local events = {}
  for _, one in ipairs(self._list) do events[one.event] = one.seen or 0 end
  return events
end

--- Whether programs count each event, also those without a key.
---@package
---@param event Event
---@return boolean
function Tally:sees_all(event)
  for _, one in ipairs(self._list) do
    if one.event == event and not (one.threads or one.filter or one.within) then return true end
  end
  return false
end

--- A program of which counting is a part.
---@class TallyProgram
---@field fields table<string, Field> of the event, and of the program
---@field add fun(body: fun(a: Asm, source: Source, places: ProbePlaces)) adds what the program has to do

--- Returns an empty tally of the host.
---@param services Services
---@param keys? Keys
---@param names? table<integer, string|number>
---@return Tally
function tally.of(services, keys, names)
  return setmetatable({ events = {}, handlers = {}, _services = services, _keys = keys, _names = names or {},
    _list = {}, _stats = ffi.new 'double[2]' }, Tally)
end

--- Returns the account of the histograms of keys, whose buckets are not in the rows: each event of a row is in one.
--- nil: there are none.
---@package
---@return Figures?
function Tally:figures()
  local rows, buckets, has_any = 0, 0, false
  for _, one in ipairs(self._list) do
    if one.settings.hist and one.hashed > 0 then
      rows, buckets, has_any = rows + (one.in_rows or 0), buckets + (one.in_buckets or 0), true
    end
  end
  return has_any and { name = 'values in histograms', way = self.way, fired = rows, lost = 0, read = buckets, per = 1,
    is_exact = true, by = 'programs', fate = 'they are in no bucket', rejected = {}, filters = {} } or nil
end

Tally.running = Tally.figures

local public = facade.class('tally', Tally, { 'add', 'counted', 'ignored' })

--- Returns an empty tally of a script.
---@param instance Instance
---@param settings { keys?: Keys, names?: table<integer, string|number> }
---@return Tally
function tally.new(instance, settings)
  local run = instance.run
  local self = tally.of(run.services, settings.keys, settings.names)
  if run.in_kernel and not instance.parent then run.in_kernel:offer(self) end
  return public(self)
end

return tally
