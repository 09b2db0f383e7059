-- SPDX-License-Identifier: GPL-2.0-only
--- Times of block requests between consecutive stages (blktrace). A matcher pairs each event of a request with the one
--- before it. Requests of some threads, and slow ones, are tracked by their sector.
local hist = require 'lib.hist'
local intern = require 'lib.intern'
local objects = require 'lib.objects'
local pairs_ = require 'lib.pairs'
local tables = require 'lib.table'
local threads = require 'lib.threads'
local unreported = require 'lib.unreported'

local block_requests = {}

-- In order. A tracked request stores the number of its stage.
local STAGES = { 'block_getrq', 'block_rq_insert', 'block_rq_issue', 'block_rq_complete' }

local ISSUED, LAST = 3, #STAGES
local MAX_REQUESTS = 2 ^ 20
local MAX_ROWS = 4096
local MAX_DEVICES = 4096
local MAX_KINDS = LAST * LAST -- of pairs
local NO_SECTOR = 2 ^ 53 -- and above: a request without data, such as a flush, has sector -1 as u64
local IN_FLIGHT = 1e9 -- ns; requests issued later than that before the end may still be at the device

local SLOW = { 'time', 'device', 'start', 'stop', 'ns' }

---@class BlockSelection
---@field devices BlockDevices
---@field filter string of the events, or ''
---@field only? string name of the device that is selected

--- Returns a row of the table.
local function row_of(device, from, to, stages)
  return tables.latency_row({ device = device, start = STAGES[from], stop = STAGES[to], order = to * 8 + from }, stages)
end

--- Returns the rows that are printed where there are none.
local function zeros(device)
  local rows = {}
  for to = 2, #STAGES do
    local row = { device = device, start = STAGES[to - 1], stop = STAGES[to], order = to, calls = 0, than = 0 }
    for _, name in ipairs { 'total', 'min', 'p50', 'p95', 'p99', 'max' } do row[name .. '_ns'] = 0 end
    rows[to - 1] = row
  end
  return rows
end

--- Returns a function that prints the rows; without any, those of `only` or all devices, with zeros.
local function printer(out, opt, only)
  local spec = tables.new('blktrace', tables.latency_columns(opt.than ~= nil, {
    { name = 'device', align = 'left' },
    { name = 'start', width = 17, align = 'right' },
    { name = 'stop', title = 'end', width = 17, align = 'left', sep = ' => ' },
  }, opt.variance))
  return function(rows)
    if #rows == 0 and out.format == 'text' then rows = zeros(only or 'all') end
    table.sort(rows, function(a, b)
      if a.device ~= b.device then return a.device < b.device end
      return a.order < b.order
    end)
    out:table(spec, rows)
  end
end

--- Returns a function that prints a stage that took too long, with the event that ends it.
local function slow_printer(out)
  tables.record('blktrace', SLOW)
  return function(ev, device, from, to, ns)
    local start, stop = STAGES[from], STAGES[to]
    if out.format == 'text' then
      out:stamp(ev._time, (' blktrace: %s %s => %s %.3f us'):format(device, start, stop, ns / 1e3))
    else
      local time = out:seconds(ev._time)
      out:record('blktrace', { time = time, device = device, start = start, stop = stop, ns = ns }, SLOW)
    end
    out:print_event(ev)
  end
end

local function warn_dropped(out, n)
  if n > 0 then out:warn(('blktrace: dropped %d stages: events were lost in between'):format(n)) end
end

local function warn_missed(missed, out)
  unreported.warn(missed, out, 'blktrace', nil, nil, 'their requests are in no row, or still wait for the device')
end

--- Returns a matcher whose rows are devices and kinds of pairs, its events, and the stage of each: a recording may lack
--- the first two.
local function new_matcher(settings, keys, hists)
  -- The sector of a request, and the disk that it is on, as one number.
  local disk = 'dev'
  for dev, of in pairs(settings.devices.disk_of) do
    if dev ~= of then disk = ('dev == %d ? %d : %s'):format(dev, of, disk) end
  end
  local key = ('(unsigned long)(%s) * 0x9e3779b97f4a7c15 + sector'):format(disk)
  local selects = settings.filter
  local filter = ('%ssector < %.0f'):format(selects ~= '' and ('(%s) && '):format(selects) or '', NO_SECTOR)
  local events, stage_of = {}, {}
  for stage, name in ipairs(STAGES) do
    local event = settings.session.event { 'block:' .. name }
    if event then
      events[#events + 1], stage_of[#stage_of + 1] = event, stage
      event:set { filter = filter, key = key, role = stage == LAST and '2' or '3' }
    end
  end
  return pairs_.new {
    stages = { events }, cycle = true, value = 'dev',
    rows = { by = { 'value' }, ids = keys, hists = hists, kinds = #events * #events },
  }, events, stage_of
end

--- Returns both histograms as one.
local function merged(a, b)
  if not (a and b) then return a or b end
  local both = hist.new()
  both:merge(a)
  both:merge(b)
  return both
end

--- Returns the histograms of a matcher by disk and kind of pair.
local function by_disk(devices, keys, hists, kinds)
  local found = {}
  for id = 0, keys:count() - (keys:overflow() > 0 and 0 or 1) do
    local dev = id < keys:count() and keys:part(id, 1)
    local name = dev and devices:name(devices.disk_of[dev] or dev) or '(other)'
    found[name] = found[name] or {}
    for kind = 0, kinds - 1 do
      found[name][kind] = merged(found[name][kind], hists:get((dev and id or MAX_DEVICES) * kinds + kind))
    end
  end
  return found
end

--- Returns the handlers for the times of all requests.
local function of_all(settings)
  local keys, hists, out = intern.new(1, MAX_DEVICES), hist.set((MAX_DEVICES + 1) * MAX_KINDS), settings.out
  local matcher, events, stage_of = new_matcher(settings, keys, hists)
  local n_events = #events
  local missed, completed, dropped = unreported.new(), false, 0
  --- Prints the times so far. Returns the number of completions that are missing among them.
  local function print_times()
    local rows, incomplete = {}, 0
    for device, of in pairs(by_disk(settings.devices, keys, hists, n_events * n_events)) do
      for kind, stages in pairs(of) do
        local from, to = stage_of[math.floor(kind / n_events) + 1], stage_of[kind % n_events + 1]
        local n = stages:stats().count
        if to == LAST and n > 0 then completed = true end
        if to > 1 and n > 0 then
          rows[#rows + 1] = row_of(device, from, to, stages)
        elseif from == ISSUED then -- the sector is used again, so the earlier request has completed
          incomplete = incomplete + n
        end
      end
    end
    settings.print(rows)
    return incomplete
  end
  local function report()
    missed.completions = missed.completions + print_times()
    hists:clear()
    keys:clear()
    local n = matcher:stats().dropped
    warn_dropped(out, n - dropped)
    dropped = n
  end
  return { matcher, draw = print_times, interval = report, stop = function()
    matcher:finish()
    report()
    missed.completions = missed.completions + matcher:overdue(events[n_events - 1], completed and IN_FLIGHT or -1)
    warn_missed(missed, out)
  end }
end

--- The requests of some threads, or all of which slow ones are shown.
local function new_tracker(settings)
  return {
    requests = objects.new(MAX_REQUESTS), keys = intern.new(3, MAX_ROWS), hists = hist.set(MAX_ROWS + 1, settings.than),
    known_from = 0, dropped = 0, missed = unreported.new(), last_time = 0, completed = false,
  }
end

--- Returns the handler of a stage of tracked requests.
local function stage_handler(tracker, settings, stage, ours)
  local requests, keys, hists, disk_of = tracker.requests, tracker.keys, tracker.hists, settings.devices.disk_of
  local everyone, than = not settings.session.named_threads, settings.than or math.huge

  --- Counts the time since the stage before, whose event is not too old to be known.
  local function count(ev, dev, from, since)
    if since < tracker.known_from then
      tracker.dropped = tracker.dropped + 1
      return
    end
    local ns = ev._time - since
    hists:add(keys.id(dev, from, stage), ns)
    if ns > than then settings.slow(ev, settings.devices:name(dev), from, stage, ns) end
  end
  return function(ev)
    local sector = ev.sector
    if sector >= NO_SECTOR then return end
    local dev = disk_of[ev.dev] or ev.dev
    local before
    if stage < LAST and everyone then
      before = requests:swap(dev, sector + 1, 0, ev._time, 0, 0, stage)
    else
      before = requests:take(dev, sector + 1)
    end
    tracker.last_time = ev._time
    if stage == LAST then tracker.completed = true end
    if before and stage > 1 then
      count(ev, dev, before.kind, before.time)
    elseif before and before.kind == ISSUED and before.time >= tracker.known_from then
      -- The sector is used again, so the earlier request has completed.
      tracker.missed.completions = tracker.missed.completions + 1
    end
    if stage < LAST and not everyone and (before and stage > 1 or ours.has(ev._tid)) then
      requests:put(dev, sector + 1, 0, ev._time, 0, 0, stage)
    end
  end
end

--- Returns the handlers for the times of tracked requests.
local function of_tracked(settings)
  local tracker, out = new_tracker(settings), settings.out
  local keys, hists, missed = tracker.keys, tracker.hists, tracker.missed
  local ours, handlers = threads.new(settings.session, settings.opt), {}
  for stage, name in ipairs(STAGES) do
    handlers[('block:%s/%s/'):format(name, settings.filter)] = stage_handler(tracker, settings, stage, ours)
  end
  function handlers.draw()
    local rows = {}
    for id = 0, keys:count() - 1 do
      rows[id + 1] = row_of(settings.devices:name(keys:part(id, 1)), keys:part(id, 2), keys:part(id, 3), hists:get(id))
    end
    settings.print(rows)
  end
  local function report()
    handlers.draw()
    hists:clear()
    keys:clear()
    warn_dropped(out, tracker.dropped)
    tracker.dropped = 0
  end
  handlers.interval = report
  function handlers.stop()
    report()
    local before = tracker.completed and tracker.last_time - IN_FLIGHT or math.huge
    tracker.requests:each(function(request)
      if request.kind == ISSUED and request.time >= tracker.known_from and request.time < before then
        missed.completions = missed.completions + 1
      end
    end)
    warn_missed(missed, out)
  end
  function handlers.lost(gap) tracker.known_from = math.max(tracker.known_from, gap.to) end
  return ours.follow(handlers)
end

--- Returns the handlers of the profiler.
---@param selection BlockSelection
---@param opt table than, variance, and the common options
---@param out Output
---@param session Session
---@return table handlers
function block_requests.run(selection, opt, out, session)
  local settings = { devices = selection.devices, filter = selection.filter, than = opt.than, opt = opt, out = out,
    session = session, print = printer(out, opt, selection.only) }
  if opt.than then settings.slow = slow_printer(out) end
  return (opt.than or session.named_threads) and of_tracked(settings) or of_all(settings)
end

return block_requests
