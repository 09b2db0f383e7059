-- SPDX-License-Identifier: GPL-2.0-only
--- The load of disks over time: requests, bytes, latency and the length of the queue, by device, task or file.
local reports = require 'lib.reports'
local requests = require 'lib.engines.disks.requests'

local function request_of(ev)
  return ev.rq.q.disk.major, ev.rq.q.disk.first_minor, ev.rq.__sector, ev.nr_bytes
end

return {
  summary = 'Load of disks over time: requests, bytes, queue and latency, by device, task or file',
  description = [[
Prints a row for each disk and interval. queue is the average number of requests
that wait or are at the device, most the largest, and busy% the part of the time in
which there was one. wait is the average time before a request is given to the device,
avg, p99 and max are times until it is complete.

--by names what makes a row: device, op (read, write, discard, flush), task, which is
whoever queues the request, and file. Files are those of ext4 on a disk or a partition,
not of LVM or a RAID: the file system says where the blocks of a file are when it
looks that up. A request for blocks of several files counts for the first of them. The
journal and other blocks without a file have no name, [metadata] is what the request
calls so.]],
  examples = {
    { 'profscript iostat', 'all disks, every second' },
    { 'profscript iostat --by task,op,file -i 5s', 'who fills the queue, and for which files' },
    { 'profscript iostat -d /dev/vda --by op', 'reads, writes and discards of one disk' },
  },
  unsupported = { 'event' },
  optional = { ['block:block_rq_insert'] = 'requests begin when they are given to the device' },
  everywhere = true, -- a request is completed in an interrupt
  options = reports.options {
    by = { type = 'string', default = 'device', argument = 'LIST', values = requests.LABELS,
      help = 'what makes a row: device, op, task, file' },
    device = { type = 'string', short = 'd', argument = 'DEVICE', help = 'trace only this disk or partition' },
    top = { type = 'integer', default = 20, min = 1, help = 'rows to print in each interval' },
  },

  start = function(opt, out, session)
    local found = requests.new(opt, out, session, request_of)
    local handlers = reports.handlers(opt, session, function(time) found:print(time) end, found:handlers())
    local last = handlers.stop
    function handlers.stop(time)
      last(time)
      found:warn()
    end
    return handlers
  end,
}
