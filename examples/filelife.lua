-- SPDX-License-Identifier: GPL-2.0-only
--- Prints files that are created and removed during the run, with their age.
---
---   profscript examples/filelife.lua -- make
local join = require 'lib.join'

local CREATE = 64 -- O_CREAT

return {
  summary = 'Print the age of files that are removed',
  start = function(_, out)
    local creating, created = join.new(), {} -- created: by name, as the programs write it
    local function removed(ev)
      local file = ev:string 'pathname'
      local from = created[file]
      if ev.ret < 0 or not from then return end
      created[file] = nil
      out:row { 'pid', ev._pid, 'comm', ev._comm, 'age_ms', (ev._time - from) / 1e6, 'file', file }
    end
    return {
      lost = creating.lost,
      ['syscalls:sys_enter_openat'] = function(ev)
        if bit.band(ev.flags, CREATE) ~= 0 then creating:start(ev._tid, ev._time) end
      end,
      ['syscalls:sys_exit_openat'] = function(ev)
        local is_create = creating:finish(ev._tid, ev._time)
        if is_create and ev.ret >= 0 then created[ev:string 'filename'] = ev._time end
      end,
      ['syscalls:sys_exit_unlink,syscalls:sys_exit_unlinkat'] = removed,
    }
  end,
}
