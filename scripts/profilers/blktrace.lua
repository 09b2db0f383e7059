-- SPDX-License-Identifier: GPL-2.0-only
--- Latency of block requests between consecutive stages.
local block_devices = require 'lib.engines.block_devices'
local block_requests = require 'lib.engines.block_requests'
local tables = require 'lib.table'

local STAGES = block_requests.STAGES
local SLOW = { 'time', 'device', 'start', 'stop', 'ns' }

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
  }))
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
    local devices, filter, only = block_devices.all(), '', nil
    if opt.device then
      local where
      only = opt.device:match '([^/]+)$'
      filter, where = devices:filter(only)
      if not filter then return nil, ("no block device '%s' %s"):format(opt.device, where) end
    end
    return block_requests.run {
      filter = filter, devices = devices, than = opt.than, opt = opt, out = out, session = session,
      print = printer(out, opt, only),
      slow = opt.than and slow_printer(out) or nil,
    }
  end,
}
