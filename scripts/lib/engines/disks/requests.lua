-- SPDX-License-Identifier: GPL-2.0-only
--- Requests of disks, from when they are queued until they are complete, by disk, operation, task and file.
local block_devices = require 'lib.engines.disks.block_devices'
local failure = require 'bindings.base.failure'
local file_blocks = require 'lib.engines.disks.file_blocks'
local load = require 'lib.engines.disks.load'
local objects = require 'lib.objects'
local rows = require 'lib.engines.rows'
local tables = require 'lib.table'
local threads = require 'lib.threads'
local typed_events = require 'lib.engines.typed_events'
local unreported = require 'lib.unreported'

local requests = { LABELS = { 'device', 'op', 'task', 'file' } } -- what can make a row

local MAX_REQUESTS = 2 ^ 18
local NO_SECTOR = 2 ^ 53 -- and above: a request without data, such as a flush
local QUEUED, ISSUED = 1, 2
local READ, WRITE, DISCARD, FLUSH, OTHER, METADATA = 1, 2, 3, 4, 5, 8 -- METADATA: added to an operation
local OPS = { 'read', 'write', 'discard', 'flush', 'other' }
local SECTOR = 512
local MINORS = 2 ^ 20 -- of a device's number
local MERGED = 'block:block_rq_merge'
local COMPLETE, TYPED = 'block:block_rq_complete', 'tp_btf:block_rq_complete'
local NONE = 0 -- in place of what makes no row

--- Returns the operation that the letters of a request stand for.
local function op_of(rwbs)
  local op = rwbs:find 'R' and READ or rwbs:find 'D' and DISCARD or rwbs:find 'W' and WRITE
    or rwbs:find 'F' and FLUSH or OTHER
  return rwbs:find 'M' and op + METADATA or op
end

---@class DiskRequests
local Requests = {}
Requests.__index = Requests

--- Creates the requests of a run.
---@param opt table by, top, device
---@param out Output
---@param session Session
---@param request_of fun(ev: Ev): integer, integer, number, integer reads the device, sector and bytes of a request
---@return DiskRequests
function requests.new(opt, out, session, request_of)
  local shown = rows.shown(opt.by, requests.LABELS)
  local devices, time = block_devices.all(), tables.time_column
  return setmetatable({
    opt = opt, out = out, session = session, request_of = request_of, shown = shown, devices = devices,
    load = load.new(), ops = {},
    flying = objects.new(MAX_REQUESTS), missed = unreported.new(), known_from = -1,
    files = shown.file and file_blocks.new(devices, not opt.input) or nil,
    spec = tables.new('iostat', {
      { name = 'device', show = shown.device }, { name = 'op', show = shown.op }, { name = 'task', show = shown.task },
      { name = 'calls', title = 'requests', metric = 'counter', of_histogram = true },
      { name = 'bytes', metric = 'counter', unit = 'bytes', align = 'right' },
      { name = 'queue', format = '%.2f' }, { name = 'most' },
      { name = 'busy_percent', title = 'busy%', format = '%.1f' },
      time 'wait', time 'avg', time 'p99', time 'max', { name = 'latency_ns', metric = 'histogram' },
      { name = 'file', show = shown.file },
    }),
  }, Requests)
end

--- Returns the filter of the events; nil: there is no such device.
function Requests:filter()
  if not self.opt.device then return '' end
  local filter, where = self.devices:filter(self.opt.device:match '([^/]+)$')
  return filter or failure.usage("no block device '%s' %s", self.opt.device, where)
end

--- Returns the id of the row of a request that begins.
local function row_of(self, ev, dev, sector)
  local shown, rwbs = self.shown, ev.rwbs
  local op = self.ops[rwbs]
  if not op then
    op = op_of(rwbs)
    self.ops[rwbs] = op
  end
  local is_metadata = op >= METADATA
  return self.load.id(shown.device and dev or NONE, shown.op and op % METADATA or NONE, shown.task and ev._pid or NONE,
    self.files and (is_metadata and -1 or self.files:at(dev, sector)) or NONE)
end

--- Returns the handler of a stage at which a request may begin.
local function begin_handler(self, stage, ours)
  local flying, sums, disk_of, everyone = self.flying, self.load, self.devices.disk_of, not self.session.named_threads
  return function(ev)
    local sector, dev, now = ev.sector, ev.dev, ev._time
    if sector >= NO_SECTOR then return end
    dev = disk_of[dev] or dev
    local before = flying:take(dev, sector + 1)
    if before and before.time < self.known_from then before = nil end
    if before and before.kind < stage then
      local id, time = before.tid, before.time
      sums:issue(id, now - time)
      flying:put(dev, sector + 1, 0, time, id, 0, stage)
      return
    elseif before then -- the sector is used again, so the earlier request has completed
      sums:finish(before.tid, now)
      self.missed.completions = self.missed.completions + 1
    end
    if not (everyone or ours.has(ev._tid)) then return end
    local id = row_of(self, ev, dev, sector)
    sums:begin(id, now)
    flying:put(dev, sector + 1, 0, now, id, 0, stage)
  end
end

--- Returns the function that ends a request.
local function ender(self)
  local flying, sums, disk_of = self.flying, self.load, self.devices.disk_of
  return function(dev, sector, now, bytes)
    if sector >= NO_SECTOR then return end
    local request = flying:take(disk_of[dev] or dev, sector + 1)
    if request and request.time >= self.known_from then sums:finish(request.tid, now, bytes, now - request.time) end
  end
end

--- Returns the event of requests that are complete, and its handler. Programs see it also in interrupts of an idle CPU,
--- which some kernels hide from perf. Older kernels do not have the disk in the queue of a request.
local function completion(self)
  local opt, session, finish = self.opt, self.session, ender(self)
  if typed_events.has(opt, session, COMPLETE) and typed_events.has_member('request_queue', 'disk') then
    return session.event { TYPED }, function(ev)
      local major_of, minor_of, sector, bytes = self.request_of(ev)
      finish(major_of * MINORS + minor_of, sector, ev._time, bytes)
    end
  end
  return session.event { COMPLETE }, function(ev)
    finish(ev.dev, ev.sector, ev._time, ev.nr_sector * SECTOR)
  end
end

--- Returns the handlers of the requests.
---@return table handlers
function Requests:handlers()
  local session, filter, ours, handlers = self.session, self:filter(), threads.new(self.session, self.opt), {}
  local stages = {
    block_rq_insert = begin_handler(self, QUEUED, ours), block_rq_issue = begin_handler(self, ISSUED, ours),
  }
  for name, handler in pairs(stages) do
    local event = session.event { 'block:' .. name }
    if event then
      if filter ~= '' then event:set { filter = filter } end
      handlers[event] = handler
    end
  end
  local complete, handler = completion(self)
  handlers[complete] = handler
  local merged = session.supports(MERGED) and session.event { MERGED }
  if merged then
    handlers[merged] = function(ev) -- its bytes are those of another request
      local request = ev.sector < NO_SECTOR and self.flying:take(self.devices.disk_of[ev.dev] or ev.dev, ev.sector + 1)
      if request and request.time >= self.known_from then self.load:finish(request.tid, ev._time) end
    end
  end
  if self.files and not self.files:follow(handlers, session) then
    self.out:warn 'iostat: there are no events of ext4: files are not known'
  end
  function handlers.lost(gap)
    self.known_from = math.max(self.known_from, gap.to)
    self.load:forget(gap.to)
  end
  return ours.follow(handlers)
end

--- Returns the labels of a row.
local function labels(self, id)
  local keys = self.load.keys
  local dev, op, pid, file = keys:part(id, 1), keys:part(id, 2), keys:part(id, 3), keys:part(id, 4)
  if not dev then return { device = '(other)' } end
  return { device = self.devices:name(dev), op = OPS[op], task = rows.task(self.session, pid),
    file = file == -1 and '[metadata]' or self.files and self.files.names[file] or nil }
end

--- Says what the kernel did not report.
function Requests:warn()
  unreported.warn(self.missed, self.out, 'iostat', nil, nil, 'their requests are in the queue for too long')
end

--- Prints the load since the last report.
---@param time number
function Requests:print(time)
  local list = {}
  self.load:each(time, function(id, found, figures)
    local is_idle = not found or found:stats().count == 0
    if is_idle and figures.most == 0 then return end
    local row = labels(self, id)
    if is_idle then row.calls = 0 else tables.latency_row(row, found) end
    row.bytes, row.queue, row.most, row.busy_percent = figures.bytes, figures.queue, figures.most, figures.busy
    row.wait_ns = row.calls > 0 and figures.waited_ns / row.calls or nil
    row.id = id
    list[#list + 1] = row
  end)
  table.sort(list, function(a, b)
    if a.queue ~= b.queue then return a.queue > b.queue end
    return a.id < b.id
  end)
  rows.print(self.out, self.spec, list, self.opt.top)
  self.load:clear(time)
end

return requests
