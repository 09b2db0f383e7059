-- SPDX-License-Identifier: GPL-2.0-only
--- Latency of block requests between consecutive stages.
local fs = require 'lib.fs'
local hist = require 'lib.hist'
local intern = require 'lib.intern'
local objects = require 'lib.objects'
local pairs_ = require 'lib.pairs'
local tables = require 'lib.table'
local threads = require 'lib.threads'
local unreported = require 'lib.unreported'

local MAX_REQUESTS = 2 ^ 20
local MAX_ROWS = 4096
local MAX_DEVICES = 4096
local BLOCK = '/sys/class/block'
local NO_SECTOR = 2 ^ 53 -- and above: a request without data, such as a flush, has sector -1 as u64

-- In order. A tracked request stores the number of its stage.
local STAGES = { 'block_getrq', 'block_rq_insert', 'block_rq_issue', 'block_rq_complete' }
local ISSUED, LAST = 3, #STAGES
local IN_FLIGHT = 1e9 -- ns; requests issued later than that before the end may still be at the device

local function read(name, file)
  local text = fs.read(('%s/%s/%s'):format(BLOCK, name, file))
  return text and text:match '%S+'
end

--- Returns the kernel's number of a device, as in the events' field dev.
local function number(name)
  local major, minor = (read(name, 'dev') or ''):match '^(%d+):(%d+)$'
  return major and major * 2 ^ 20 + minor
end

--- Returns the names of the devices by number, and the disk of each device: of a partition the disk it is on.
local function devices()
  local names, disk_of = {}, {}
  for _, name in ipairs(fs.list(BLOCK) or {}) do
    local dev = number(name)
    if dev then
      names[dev], disk_of[dev] = name, dev
      if read(name, 'partition') then
        for _, disk in ipairs(fs.list(BLOCK) or {}) do
          if disk ~= name and fs.exists(('%s/%s/%s'):format(BLOCK, disk, name)) then disk_of[dev] = number(disk) end
        end
      end
    end
  end
  return names, disk_of
end

--- Returns a row of the table.
local function row_of(device, from, to, stages)
  return tables.latency_row({ device = device, start = STAGES[from], stop = STAGES[to], order = to * 8 + from }, stages)
end

--- Returns a function that prints the rows; without any, those of `only` or all devices, with zeros.
local function printer(out, opt, only)
  local spec = tables.new('blktrace', tables.latency_columns(opt.than ~= nil, {
    { name = 'device', align = 'left' },
    { name = 'start', width = 17, align = 'right' },
    { name = 'stop', title = 'end', width = 17, align = 'left', sep = ' => ' },
  }))
  return function(rows)
    if #rows == 0 and out.format == 'text' then
      for to = 2, LAST do
        local row = { device = only or 'all', start = STAGES[to - 1], stop = STAGES[to], order = to }
        row.calls, row.than = 0, 0
        for _, name in ipairs { 'total', 'min', 'p50', 'p95', 'p99', 'max' } do row[name .. '_ns'] = 0 end
        rows[to - 1] = row
      end
    end
    table.sort(rows, function(a, b)
      if a.device ~= b.device then return a.device < b.device end
      return a.order < b.order
    end)
    out:table(spec, rows)
  end
end

local function warn_dropped(out, n)
  if n > 0 then out:warn(('blktrace: dropped %d stages: events were lost in between'):format(n)) end
end

local function warn_missed(missed, out)
  unreported.warn(missed, out, 'blktrace', nil, nil, 'their requests are in no row, or still wait for the device')
end

--- Returns the handlers for the times of all requests. Each event of a request makes a pair with the one before it.
---@param selects string filter of the device, or ''
local function all_requests(selects, names, disk_of, out, session, print_rows)
  -- The sector of a request, and the disk that it is on, as one number.
  local disk = 'dev'
  for dev, of in pairs(disk_of) do
    if dev ~= of then disk = ('dev == %d ? %d : %s'):format(dev, of, disk) end
  end
  local key = ('(unsigned long)(%s) * 0x9e3779b97f4a7c15 + sector'):format(disk)
  local filter = ('%ssector < %.0f'):format(selects ~= '' and ('(%s) && '):format(selects) or '', NO_SECTOR)
  local events, stage_of = {}, {}
  for stage, name in ipairs(STAGES) do
    local event = session.event { 'block:' .. name }
    if event then
      events[#events + 1], stage_of[#stage_of + 1] = event, stage
      event:set { filter = filter, key = key, role = stage == LAST and '2' or '3' }
    end
  end
  local kinds = #events * #events
  local keys, hists = intern.new(1, MAX_DEVICES), hist.set((MAX_DEVICES + 1) * kinds)
  local matcher = pairs_.new {
    stages = { events }, cycle = true, value = 'dev',
    rows = { by = { 'value' }, ids = keys, hists = hists, kinds = kinds },
  }
  local missed, completed, dropped = unreported.new(), false, 0

  --- Returns the histograms by disk and kind of pair.
  local function by_disk()
    local found = {}
    for id = 0, keys:count() - (keys:overflow() > 0 and 0 or 1) do
      local dev = id < keys:count() and keys:part(id, 1)
      local name = dev and (names[disk_of[dev] or dev] or tostring(dev)) or '(other)'
      found[name] = found[name] or {}
      for kind = 0, kinds - 1 do
        local one, before = hists:get((dev and id or MAX_DEVICES) * kinds + kind), found[name][kind]
        if one and before then
          local both = hist.new()
          both:merge(before)
          both:merge(one)
          one = both
        end
        found[name][kind] = one or before
      end
    end
    return found
  end
  local function report()
    local rows = {}
    for device, of in pairs(by_disk()) do
      for kind, stages in pairs(of) do
        local from, to = stage_of[math.floor(kind / #events) + 1], stage_of[kind % #events + 1]
        local n = stages:stats().count
        if to == LAST and n > 0 then completed = true end
        if to > 1 and n > 0 then
          rows[#rows + 1] = row_of(device, from, to, stages)
        elseif from == ISSUED then -- the sector is used again, so the earlier request has completed
          missed.completions = missed.completions + n
        end
      end
    end
    print_rows(rows)
    hists:clear()
    keys:clear()
    local n = matcher:stats().dropped
    warn_dropped(out, n - dropped)
    dropped = n
  end
  return { matcher, interval = report, stop = function()
    matcher:finish()
    report()
    missed.completions = missed.completions + matcher:overdue(events[#events - 1], completed and IN_FLIGHT or -1)
    warn_missed(missed, out)
  end }
end

return {
  summary = 'Latency of block requests between stages',
  description = [[
The stages of a block request are:

  block_getrq        the request is allocated
  block_rq_insert    it is queued in the I/O scheduler
  block_rq_issue     it is issued to the driver
  block_rq_complete  the device has completed it

Each row is the latency between two consecutive stages. Without an I/O
scheduler, requests go straight from block_getrq to block_rq_issue.

With -p, -t or a workload, counts the requests that these threads submit. What
they write without O_DIRECT or a sync is submitted later by the kernel's own
threads.]],
  examples = {
    { 'profscript blktrace -i 1000', 'all disks, every second' },
    { 'profscript blktrace -d /dev/vda --than 10ms', 'slow requests of one disk' },
  },
  unsupported = { 'event' },
  optional = {
    ['block:block_getrq'] = 'requests begin with their next stage',
    ['block:block_rq_insert'] = 'requests go from block_getrq to block_rq_issue',
  },
  everywhere = true, -- a request may be issued by any thread, and is completed in an interrupt
  options = {
    device = { type = 'string', short = 'd', argument = 'DEVICE', help = 'trace only this disk or partition' },
    than = { type = 'duration', help = 'print stages longer than T with the event that ends them, and count them' },
    call_graph = { help = 'record the stacks of the events that --than prints' },
    user_callchain = {},
    kernel_callchain = {},
  },

  start = function(opt, out, session)
    local names, disk_of = devices()
    local selects, only = '', nil
    if opt.device then
      local name = opt.device:match '([^/]+)$'
      only = name
      local dev = name and number(name)
      if not dev then return nil, ("no block device '%s' in %s"):format(opt.device, BLOCK) end
      selects = ('dev == %d'):format(dev)
      if disk_of[dev] ~= dev then
        local first, size = tonumber(read(name, 'start')), tonumber(read(name, 'size'))
        selects = ('(dev == %d || dev == %d) && sector >= %d && sector < %d'):format(dev, disk_of[dev], first,
          first + size)
      end
    end
    local print_rows = printer(out, opt, only)
    if not (opt.than or session.named_threads) then
      return all_requests(selects, names, disk_of, out, session, print_rows)
    end

    local requests = objects.new(MAX_REQUESTS)
    local keys, hists = intern.new(3, MAX_ROWS), hist.set(MAX_ROWS + 1, opt.than)
    local known_from, than, dropped = 0, opt.than or math.huge, 0
    local everyone, ours = not session.named_threads, threads.new(session, opt)
    local missed, last_time, completed = unreported.new(), 0, false

    local order = { 'time', 'device', 'start', 'stop', 'ns' }
    if opt.than then tables.record('blktrace', order) end
    local function print_slow(ev, dev, from, to, ns)
      local device = names[dev] or tostring(dev)
      if out.format == 'text' then
        out:stamp(ev._time, (' blktrace: %s %s => %s %.3f us'):format(device, STAGES[from], STAGES[to], ns / 1e3))
      else
        local time = out:seconds(ev._time)
        out:record('blktrace', { time = time, device = device, start = STAGES[from], stop = STAGES[to], ns = ns },
          order)
      end
      out:print_event(ev)
    end

    local handlers = {}
    for stage, name in ipairs(STAGES) do
      handlers[('block:%s/%s/'):format(name, selects)] = function(ev)
        local sector = ev.sector
        if sector >= NO_SECTOR then return end
        local dev = disk_of[ev.dev] or ev.dev
        local before
        if stage < LAST and everyone then
          before = requests:swap(dev, sector + 1, 0, ev._time, 0, 0, stage)
        else
          before = requests:take(dev, sector + 1)
        end
        last_time = ev._time
        if stage == LAST then completed = true end
        if before and stage == 1 then
          -- The sector is used again, so the earlier request has completed.
          if before.kind == ISSUED and before.time >= known_from then missed.completions = missed.completions + 1 end
        elseif before then
          if before.time >= known_from then
            local ns = ev._time - before.time
            hists:add(keys.id(dev, before.kind, stage), ns)
            if ns > than then print_slow(ev, dev, before.kind, stage, ns) end
          else
            dropped = dropped + 1
          end
        end
        if stage < LAST and not everyone and (before and stage > 1 or ours.has(ev._tid)) then
          requests:put(dev, sector + 1, 0, ev._time, 0, 0, stage)
        end
      end
    end

    local function report()
      local rows = {}
      for id = 0, keys:count() - 1 do
        local dev, from, to = keys:part(id, 1), keys:part(id, 2), keys:part(id, 3)
        rows[id + 1] = row_of(names[dev] or tostring(dev), from, to, hists:get(id))
      end
      print_rows(rows)
      hists:clear()
      keys:clear()
      warn_dropped(out, dropped)
      dropped = 0
    end
    handlers.interval = report
    function handlers.stop()
      report()
      local before = completed and last_time - IN_FLIGHT or math.huge
      requests:each(function(request)
        if request.kind == ISSUED and request.time >= known_from and request.time < before then
          missed.completions = missed.completions + 1
        end
      end)
      warn_missed(missed, out)
    end
    handlers.lost = function(gap) known_from = math.max(known_from, gap.to) end
    return ours.follow(handlers)
  end,
}
