-- SPDX-License-Identifier: GPL-2.0-only
--- Latency of block requests between consecutive stages.
local array = require 'lib.array'
local fs = require 'lib.fs'
local hist = require 'lib.hist'
local intern = require 'lib.intern'
local objects = require 'lib.objects'
local tables = require 'lib.table'
local threads = require 'lib.threads'
local unreported = require 'lib.unreported'

local MAX_REQUESTS = 2 ^ 20
local MAX_ROWS = 4096
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
    local filter, only = '', nil
    if opt.device then
      local name = opt.device:match '([^/]+)$'
      only = name
      local dev = name and number(name)
      if not dev then return nil, ("no block device '%s' in %s"):format(opt.device, BLOCK) end
      filter = ('/dev == %d/'):format(dev)
      if disk_of[dev] ~= dev then
        local first, size = tonumber(read(name, 'start')), tonumber(read(name, 'size'))
        filter = ('/(dev == %d || dev == %d) && sector >= %d && sector < %d/'):format(dev, disk_of[dev], first,
          first + size)
      end
    end

    local requests = objects.new(MAX_REQUESTS)
    local keys, hists, over = intern.new(3, MAX_ROWS), hist.set(MAX_ROWS + 1), array.new(MAX_ROWS + 1)
    local known_from, than, dropped = 0, opt.than or math.huge, 0
    local everyone, ours = not session.named_threads, threads.new(session, opt)
    local missed, last_time, completed = unreported.new(), 0, false

    local function print_slow(ev, dev, from, to, ns)
      local device = names[dev] or tostring(dev)
      if out.format == 'text' then
        out:stamp(ev._time, (' blktrace: %s %s => %s %.3f us'):format(device, STAGES[from], STAGES[to], ns / 1e3))
      else
        local time = out:seconds(ev._time)
        out:record('blktrace', { time = time, device = device, start = STAGES[from], stop = STAGES[to], ns = ns },
          { 'time', 'device', 'start', 'stop', 'ns' })
      end
      out:print_event(ev)
    end

    local handlers = {}
    for stage, name in ipairs(STAGES) do
      handlers['block:' .. name .. filter] = function(ev)
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
            local id = keys.id(dev, before.kind, stage)
            hists:add(id, ns)
            if ns > than then
              over[id] = over[id] + 1
              print_slow(ev, dev, before.kind, stage, ns)
            end
          else
            dropped = dropped + 1
          end
        end
        if stage < LAST and not everyone and (before and stage > 1 or ours.has(ev._tid)) then
          requests:put(dev, sector + 1, 0, ev._time, 0, 0, stage)
        end
      end
    end

    local columns = {
      { name = 'device', align = 'left' },
      { name = 'start', width = 17, align = 'right' },
      { name = 'stop', title = 'end', width = 17, align = 'left', sep = ' => ' },
    }
    for _, column in ipairs(tables.latency_columns(opt.than ~= nil)) do columns[#columns + 1] = column end
    local spec = tables.new('blktrace', columns)
    local function report()
      local rows = {}
      for id = 0, keys:count() - 1 do
        local dev, from, to = keys:part(id, 1), keys:part(id, 2), keys:part(id, 3)
        local row = { device = names[dev] or tostring(dev), start = STAGES[from], stop = STAGES[to] }
        row.order = to * 8 + from
        rows[id + 1] = tables.latency_row(row, hists:get(id))
        row.than, over[id] = over[id], 0
      end
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
      hists:clear()
      keys:clear()
      if dropped > 0 then out:warn(('blktrace: dropped %d stages: events were lost in between'):format(dropped)) end
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
      unreported.warn(missed, out, 'blktrace', nil, nil, 'their requests are in no row, or still wait for the device')
    end
    handlers.lost = function(gap) known_from = math.max(known_from, gap.to) end
    return ours.follow(handlers)
  end,
}
