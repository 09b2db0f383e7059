-- SPDX-License-Identifier: GPL-2.0-only
--- Prints the signals that processes send.
---
---   profscript examples/killsnoop.lua
local names = require 'lib.names'

return {
  summary = 'Print the signals that processes send',
  start = function(_, out)
    return {
      ['signal:signal_generate/code <= 0/'] = function(ev) -- codes above 0 are the kernel's own
        out:row { 'pid', ev._pid, 'comm', ev._comm, 'signal', names.signal(ev.sig), 'to', ev.pid, 'to_comm', ev.comm,
          'result', names.signal_result(ev.result) }
      end,
    }
  end,
}
