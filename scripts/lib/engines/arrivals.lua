-- SPDX-License-Identifier: GPL-2.0-only
--- How many events the kernel counted, and how many arrived (event-lost). On CPUs, each sample carries the count so
--- far. Events of threads are counted a second time, by counters of their own. A recording has no counts.
local array = require 'lib.array'
local intern = require 'lib.intern'
local threads = require 'lib.threads'

local arrivals = {}

local MAX_ROWS = 4096
local RESTART = 1000 -- a count that drops by more than this has restarted, because its CPU was offline

--- Returns selectors of the same events, to count them.
local function selectors(list, common_filter)
  local found = {}
  for i, event in ipairs(list) do
    local filter, cpus = event.filter or common_filter, event.attrs.cpus
    filter = filter and ('"%s"'):format(filter:gsub('["\\]', '\\%0')) or ''
    found[i] = ('%s/%s/%s'):format(event.name, filter, cpus and ('cpus=%s/'):format(cpus) or '')
  end
  return found
end

--- Returns why a live event cannot be counted.
local function problem_of(event)
  local problem = event.freq and '%s is sampled at a frequency: its missing samples cannot be counted'
    or event.name:find '^sched:sched_stat_' and '%s counts ns, not occurrences'
  return problem and problem:format(event.name)
end

---@class Arrivals
---@field title string of the CPU or thread
---@field is_counted boolean the kernel counted the events
---@field is_late_counted boolean what happens after the last event is not counted
local Arrivals = {}
Arrivals.__index = Arrivals

---@param list Event[]
---@param opt table perins, and the common options
---@param session Session
---@return Arrivals? self nil: see message
---@return string? message
function arrivals.new(list, opt, session)
  local is_live, is_thread = not opt.input, session.per_thread
  for _, event in ipairs(is_live and list or {}) do
    local problem = problem_of(event)
    if problem then return nil, problem end
  end
  local has_own = is_live and not is_thread and not opt.cgroups and not session.is_source
  local size = (MAX_ROWS + 1) * #list
  return setmetatable({
    title = is_thread and '[THREAD]' or '[CPU]', is_counted = is_live, is_late_counted = not has_own,
    _list = list, _perins = opt.perins, _is_thread = is_thread, _session = session, _has_own = has_own,
    _counts = is_live and not has_own and session.count(selectors(list, opt.filter)) or nil,
    _keys = intern.new(1, MAX_ROWS), _delivered = array.new(size), _counted = array.new(size),
    -- For each thread, the traced thread that it descends from, with which it is counted.
    _root = opt.perins and is_thread and array.new(threads.MAX) or nil,
  }, Arrivals)
end

--- Returns a function that counts an event of the list as it arrives.
---@param i integer its place in the list
---@return fun(ev: Ev)
function Arrivals:counter(i)
  local width, is_thread, keys, root = #self._list, self._is_thread, self._keys, self._root
  local delivered, counted, latest = self._delivered, self._counted, array.new(MAX_ROWS + 1)
  local own_count = self._has_own and self._session.own_count(self._list[i])
  return function(ev)
    local id
    if is_thread then id = root and keys.id(root[math.max(ev._tid, 0)]) or 0 else id = keys.id(ev._cpu) end
    local at = id * width + i - 1
    delivered[at] = delivered[at] + 1
    if own_count then
      local value, before = own_count(ev), latest[id]
      if value > before or value < before - RESTART then
        counted[at] = counted[at] + (before > 0 and value > before and value - before or 1)
        latest[id] = value
      end
    end
  end
end

--- Adds the handlers with which new threads are counted.
---@param handlers table
function Arrivals:follow(handlers)
  local root = self._root
  if not root then return end
  function handlers.targets(tids)
    for _, tid in ipairs(tids) do root[tid] = tid end
  end
  function handlers.fork(ev) root[ev._tid] = root[math.max(ev._parent, 0)] end
end

--- Returns the CPUs or threads of the table, each with its row of the counts or the id of its key.
local function instances(self)
  local found, counts, keys = {}, self._counts, self._keys
  if counts then
    for row = 1, counts:rows() do found[row] = { name = counts:id(row), row = row } end
    return found
  end
  for id = 0, keys:count() - 1 do found[id + 1] = { name = keys:part(id, 1), id = id } end
  table.sort(found, function(a, b) return a.name < b.name end)
  return found
end

--- Returns what was counted of an event on a CPU or in a thread; nil if it is not counted there.
local function count_of(self, one, i, at)
  if self._counts then return self._counts:get(one.row, i) end
  return self._has_own and self._counted[at] or self._delivered[at]
end

--- Returns what was counted and what arrived since the last call: a row for each event, with perins also by CPU or
--- thread.
---@return table[]
function Arrivals:take()
  local rows, sums, list, delivered = {}, {}, self._list, self._delivered
  for i, event in ipairs(list) do
    sums[i] = { event = event.alias, counted = 0, delivered = 0, missing = 0 }
    rows[i] = not self._perins and sums[i] or nil
  end
  for _, one in ipairs(instances(self)) do
    for i, event in ipairs(list) do
      local id = one.id or (self._root or not self._is_thread) and self._keys.id(one.name) or 0
      local at = id * #list + i - 1
      local n, row = count_of(self, one, i, at), sums[i]
      if n then
        if self._perins then
          row = { instance = one.name, event = event.alias, counted = 0, delivered = 0 }
          rows[#rows + 1] = row
        end
        row.counted, row.delivered = row.counted + n, row.delivered + delivered[at]
        delivered[at], self._counted[at] = 0, 0
      end
    end
  end
  return rows
end

return arrivals
