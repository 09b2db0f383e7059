-- SPDX-License-Identifier: GPL-2.0-only
--- The details of outliers (bpf/ways/outlier.lua): programs write all events that details may show into rings
--- that they overwrite, and nobody reads them. When an outlier has come and the time after it is over, the window of
--- time around it is copied from the rings (runtime/live/capture_window.h).
---
--- The history holds what was copied, from the start of the earliest outlier that was printed last to the end of the
--- latest. A window that begins in there is continued with newer events, each of which is copied once. Any other window
--- is copied anew.
local ffi = require 'ffi'
local asm = require 'bpf.gen.asm'
local capture = require 'bpf.gen.capture'
local cpu_list = require 'bindings.base.cpu_list'
local facade = require 'bindings.base.facade'
local failure = require 'bindings.base.failure'
local histories = require 'bindings.pairs.history'
local kept_events = require 'bindings.pairs.kept_events'
local pair_keys = require 'bindings.pairs.keys'
local program = require 'bpf.gen.program'
local route = require 'bpf.plan.route'
local sys = require 'bindings.base.sys'
local views = require 'bindings.view.views'

local C = ffi.C
local FRAME = asm.FRAME
--- Events outside the stages of pairs: an offer of outliers keeps them for details.
local windows = { name = 'keep', verb = 'keep', does = 'kept', lacks = {} }

local DEFAULT_SIZE, LEAST_SIZE = 64 * 2 ^ 20, 2 ^ 20 -- bytes of all rings, and of one of them
local PAGE = 4096

-- The history ---------------------------------------------------------------------------------------

--- The events of windows. The first and the second event of a pair come before those around them.
---@class WindowHistory : History
local WindowHistory = setmetatable({}, { __index = histories.class })
WindowHistory.__index = WindowHistory

local function kept(self, e)
  local copy = e ~= nil and C.timeline_keep(self.timeline, e) or nil
  if copy == nil then
    self.unkept = self.unkept + 1
    return
  end
  return copy
end

--- Returns a copy of the first event of a pair, which must be released; nil if there is no room.
function WindowHistory:first(p) return kept(self, histories.class.first(self, p)) end

--- Does the same for the second event.
function WindowHistory:copy(ev) return kept(self, views.event(ev, 'details:show')) end

--- Returns the index of an event of which there is another copy; if it is missing, that of the first event that is not
--- older.
---@param e ffi.cdata* struct event *
---@return integer index
---@return boolean found
function WindowHistory:index(e)
  local first = self:find(e.time)
  local i, at = first, C.history_at(self._history, first)
  while at ~= nil and at.time == e.time do
    if at.class == e.class and at.cpu == e.cpu and at.tid == e.tid then return i, true end
    i = i + 1
    at = C.history_at(self._history, i)
  end
  return first, false
end

--- Copies the events between two times from the rings, but for those that are here already.
---@param from number ns
---@param to number ns
function WindowHistory:fetch(from, to)
  from = math.max(from, 0) -- before the run, there was nothing
  local again = from < self.from or from > self.to
  if not again and to <= self.to then return end
  self:forget(again and math.huge or from)
  local info = self._info
  local code = C.capture_window_read(self._window, self._base + from, self._base + to, again and 1 or 0, info)
  if code ~= 0 then failure.raise('out of memory for the records of the rings') end
  self.from, self.to, self.lost = from, to, tonumber(info.lost)
  local n
  repeat
    n = C.capture_window_next(self._window, self._base, self._list, C.BATCH_MAX)
    C.history_add(self._history, self._list, n, self.copies)
  until n == 0
  if info.whole_from > 0 then self._whole_from = tonumber(ffi.cast('int64_t', info.whole_from - self._base)) end
end

--- Updates missing_until.
function WindowHistory:check()
  local evicted = histories.class.check(self)
  self.missing_until = math.max(self.missing_until, self._whole_from - 1)
  return evicted
end

---@param rings Rings
---@param bytes ffi.cdata* uint8_t *, the mapped rings
---@param list Event[]
---@param base integer64 ns: the session's
local function new_history(rings, bytes, list, base)
  local self = histories.new(kept_events.timeline(), list, C.BATCH_MAX, kept_events.BYTES)
  self.from, self.to, self.unkept, self.lost, self._whole_from = math.huge, -math.huge, 0, 0, -math.huge
  self._base, self._info, self._list = base, ffi.new 'struct window_info', ffi.new('struct event[?]', C.BATCH_MAX)
  self._window = ffi.gc(C.capture_window_new(bytes, rings.nr_cpus, rings.size), C.capture_window_free)
  return setmetatable(self, WindowHistory)
end

-- The programs --------------------------------------------------------------------------------------

---@class Windows
---@field others Event[] events outside the stages
local Windows = {}
Windows.__index = Windows

--- Returns the pages of each ring.
local function pages_of(run)
  if not run.default_pages then return run.opt.mmap_pages end
  local n, pages = #cpu_list.numbers(run.opt.cpus or sys.read '/sys/devices/system/cpu/online'), 1
  while pages * PAGE < LEAST_SIZE or pages * 2 * PAGE * n <= DEFAULT_SIZE do pages = pages * 2 end
  return pages
end

--- Makes the rings.
---@param config PairsConfig
---@param kernel InKernel
---@return Windows
function windows.new(config, kernel)
  local self = setmetatable({
    others = config.others or {}, _config = config, _details = facade.object(config.details), _list = {},
    _run = kernel.run,
  }, Windows)
  local seen = {}
  local function add(list)
    for _, event in ipairs(list) do
      if not seen[event] then table.insert(self._list, event) end
      seen[event] = true
    end
  end
  for _, stage in ipairs(config.stages) do add(stage) end
  add(self.others)
  self._rings = capture.rings(pages_of(kernel.run), 100, true)
  self._counts = program.mapped(8 * self._rings.nr_cpus, 'window_counts')
  return self
end

--- Returns a function that generates the code which writes an event to the ring of its CPU. Then places.time holds its
--- time.
---@param event Event
---@param is_counted boolean nothing else counts the event
---@return fun(a: Asm, source: Source, places: ProbePlaces)
function Windows:writer(event, is_counted)
  local rings = self._rings
  return function(a, source, places)
    if is_counted then
      a:load(8, 1, FRAME, places.cpu)
      a:jump('>=', 1, rings.nr_cpus, 'done') -- never, but the verifier wants to know that
      a:alu('lsh', 1, 3)
      a:map_value(2, self._counts, 0)
      a:alu_r('add', 2, 1)
      a:alu('mov', 1, 1)
      a:atomic_add(8, 2, 0, 1)
    end
    local key, ring = a:take(8), a:take(8)
    a:load(8, 1, FRAME, places.cpu)
    a:store(8, FRAME, key, 1)
    a:map(1, rings.map)
    a:address(2, FRAME, key)
    a:call 'map_lookup_elem'
    a:jump('==', 0, 0, 'done')
    a:store(8, FRAME, ring, 0)
    places.time = a:take(8)
    a:within(function()
      capture.write(a, source, { cpu = places.cpu, side = ring, time = places.time }, {
        event = event.name, list = event.list, id = event.class, rings = rings, now = true,
        type = tonumber(event.request.attr.config),
      })
    end)
    a:give(key, 8)
    a:give(ring, 8)
  end
end

--- Says what is done with the events.
function Windows:settle()
  for _, event in ipairs(self._list) do
    route.write(event.route, { kept = ('the newest %d KiB of each CPU, for details'):format(self._rings.size / 1024),
      has_unsure_flags = not capture.is_exact(event.name) })
  end
end

--- Called when the session has started.
function Windows:open()
  local run, rings = self._run, self._rings
  program.map(rings.map, rings.nr_cpus * (C.CAPTURE_DATA + rings.size + C.CAPTURE_MARGIN))
  self._base = C.session_exact_time(run.session, 0)
  self._history = new_history(rings, rings.map.bytes, self._list, self._base)
  self._warned = { incomplete = 0, lost = 0 }
  self._details:open(self._history, pair_keys.reader(self._config, self._list,
    C.session_per_thread(run.session) ~= 0 and 'tid' or 'cpu', run.services.expression_env))
end

--- Prints the details that are complete. Called between batches.
---@param is_last? boolean no more events come
function Windows:poll(is_last)
  local details, now = self._details, is_last and math.huge or sys.now(tonumber(self._base))
  local wait = details:advance(now) and capture.EARLY or math.huge -- programs wake us for others after that time
  wait = math.min(wait, (details:due() or math.huge) - now)
  if wait < math.huge then C.session_wake_after(self._run.session, math.max(wait, 1)) end
end

--- Warns about what was missing since the last call.
function Windows:warn()
  local run, rings, warned = self._run, self._rings, self._warned
  local incomplete, lost = self._details.incomplete, self._history.lost
  if incomplete > warned.incomplete then
    run.out:warn(('%s: events are missing from %d details, which need more than the newest %d KiB of a CPU; use larger'
      .. ' rings (-m %d)'):format(run.name, incomplete - warned.incomplete, rings.size / 1024, 2 * rings.size / PAGE))
  end
  if lost > warned.lost then
    run.out:warn(('%s: %d events of details were lost'):format(run.name, lost - warned.lost))
  end
  warned.incomplete, warned.lost = incomplete, lost
end

--- Returns the number of events outside the stages.
---@return integer
function Windows:count()
  local counts, sum = ffi.cast('uint64_t *', self._counts.bytes), 0ULL
  for cpu = 0, self._rings.nr_cpus - 1 do sum = sum + counts[cpu] end
  return tonumber(sum)
end

--- Returns how many events are in the rings, and how many could not be written; nil: some are overwritten, or there is
--- no memory to look.
---@return integer? n
---@return number? lost
local function all_kept(self)
  local rings, info, n = self._rings, ffi.new 'struct window_info', 0
  local window = ffi.gc(C.capture_window_new(rings.map.bytes, rings.nr_cpus, rings.size), C.capture_window_free)
  if window == nil or C.capture_window_read(window, 0, 2 ^ 62, 1, info) ~= 0 or info.whole_from > 0 then return end
  local list = ffi.new('struct event[?]', C.BATCH_MAX)
  repeat
    local found = C.capture_window_next(window, self._base, list, C.BATCH_MAX)
    n = n + found
  until found == 0
  return n, tonumber(info.lost)
end

--- Returns the account of the rings, when no program runs any more: all events that programs have counted are there.
--- nil: some are overwritten.
---@param counted number
---@return Figures?
function Windows:figures(counted)
  local n, lost = nil, nil
  if self._history then n, lost = all_kept(self) end
  return n and windows.account(counted, n, lost, self._rings.nr_cpus) or nil
end

--- Returns the account of events for details.
---@param counted number by programs
---@param found number that were found in the rings
---@param lost number
---@param margin integer programs that were running when they were ended
---@return Figures
function windows.account(counted, found, lost, margin)
  return { name = 'events kept for details', way = windows.name, fired = counted, lost = lost, read = found, per = 1,
    margin = margin, is_exact = true, by = 'programs', fate = 'they are not in the rings', rejected = {}, filters = {} }
end

--- Returns the number of outliers that were not shown for lack of memory.
---@return integer
function Windows:unkept() return self._history and self._history.unkept or 0 end

return windows
