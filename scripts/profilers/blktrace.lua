-- SPDX-License-Identifier: GPL-2.0-only
--- Latency of block requests between consecutive stages.
local block_devices = require 'lib.engines.disks.block_devices'
local block_requests = require 'lib.engines.disks.block_requests'
local tables = require 'lib.table'

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
    variance = tables.variance_option,
    call_graph = { help = 'record the stacks of the events that --than prints' },
    user_callchain = {},
    kernel_callchain = {},
  },

  start = function(opt, out, session)
    local devices, filter, name = block_devices.all(), '', nil
    if opt.device then
      local where
      name = opt.device:match '([^/]+)$'
      filter, where = devices:filter(name)
      if not filter then return nil, ("no block device '%s' %s"):format(opt.device, where) end
    end
    return block_requests.run({ devices = devices, filter = filter, only = name }, opt, out, session)
  end,
}
