-- SPDX-License-Identifier: GPL-2.0-only
--- Prints the addresses to which programs bind sockets, with results.
---
---   profscript examples/bindsnoop.lua
local names = require 'lib.names'

local INET, INET6 = 2, 10

--- Returns a socket address as text.
local function text_of(address)
  local family = #address > 7 and address:byte(1)
  local port = family and address:byte(3) * 256 + address:byte(4)
  if family == INET then return ('%s:%d'):format(names.ip(address:sub(5, 8)), port) end
  if family == INET6 then return ('[%s]:%d'):format(names.ip(address:sub(9, 24)), port) end
end

return {
  summary = 'Print the addresses to which programs bind sockets',
  start = function(_, out)
    return { ['syscalls:sys_exit_bind'] = function(ev)
      local address = text_of(ev:string 'umyaddr')
      if not address then return end -- not one of the internet
      out:row { 'pid', ev._pid, 'comm', ev._comm, 'result', ev.ret < 0 and names.errno(ev.ret) or 'ok',
        'address', address }
    end }
  end,
}
