-- SPDX-License-Identifier: GPL-2.0-only
--- Prints which part of a disk's requests begins where the one before it ended, and which part does not.
---
---   profscript examples/biopattern.lua -i 1s
return {
  summary = "Print how random a disk's requests are",
  everywhere = true, -- a request completes in whatever task runs then
  metrics = { row = { disk = 'label', count = 'counter', bytes = 'counter' } },
  start = function(_, out)
    local disks = {}
    local function report()
      for dev, disk in pairs(disks) do
        if disk.count > 0 then
          local major, minor = math.floor(dev / 2 ^ 20), dev % 2 ^ 20
          out:row { 'disk', ('%d:%d'):format(major, minor), 'random%', 100 * disk.random / disk.count,
            'sequential%', 100 - 100 * disk.random / disk.count, 'count', disk.count, 'bytes', disk.bytes }
        end
        disk.count, disk.random, disk.bytes = 0, 0, 0
      end
    end
    return {
      ['block:block_rq_complete'] = function(ev)
        if ev.nr_sector == 0 then return end -- a flush
        local disk = disks[ev.dev] or { count = 0, random = 0, bytes = 0 }
        disks[ev.dev] = disk
        disk.count, disk.bytes = disk.count + 1, disk.bytes + ev.nr_sector * 512
        if disk.next and disk.next ~= ev.sector then disk.random = disk.random + 1 end
        disk.next = ev.sector + ev.nr_sector
      end,
      interval = report,
      stop = report,
    }
  end,
}
