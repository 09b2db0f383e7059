-- SPDX-License-Identifier: GPL-2.0-only
--- What sockets send and receive: by the tracepoints sock:sock_*_length, or by typed events, which also have the ends
--- of connections that were open before the run.
local btf = require 'bindings.bpf.btf'

local transfers = {}

local TCP = 6

--- Returns the local ports at which sockets of this network namespace listen.
local function listening_ports()
  local ports = {}
  for _, name in ipairs { 'tcp', 'tcp6' } do
    local file = io.open('/proc/net/' .. name)
    for line in file and file:lines() or function() end do
      local port = line:match '^ *%d+: %x+:(%x+) %x+:%x+ 0A '
      if port then ports[tonumber(port, 16)] = true end
    end
    if file then file:close() end
  end
  return ports
end

--- Returns whether events can have structures of the kernel. They are not in recordings, and not sent.
---@param opt table
---@return boolean
function transfers.can_be_typed(opt)
  return not (opt.input or opt.record or opt.push or opt.capture == 'perf') and btf.kernel() ~= nil
end

--- What only the script can read of events, so that programs capture it.
---@class TransferReaders
---@field set_ends fun(ev: Ev, live: Connections, at: integer) calls live:set_before()
---@field peer_of fun(ev: Ev): integer64? returns the first 8 bytes of the address that an accept() has returned

--- Adds the handlers of what is sent, received and accepted.
---@param handlers table
---@param session Session
---@param opt table
---@param live Connections
---@param readers TransferReaders
function transfers.follow(handlers, session, opt, live, readers)
  if not transfers.can_be_typed(opt) then
    handlers[('sock:sock_send_length/protocol == %d && ret > 0/'):format(TCP)] = function(ev) live:sent(ev) end
    -- Without what MSG_PEEK only looks at.
    handlers[('sock:sock_recv_length/protocol == %d && ret > 0 && !(flags & 2)/'):format(TCP)] = function(ev)
      live:received(ev)
    end
    return
  end
  local set_ends, peer_of = readers.set_ends, readers.peer_of
  live.listens = listening_ports()
  for _, call in ipairs { 'accept', 'accept4' } do
    local name = 'syscalls:sys_exit_' .. call
    -- Programs that select by control group read no memory of the task.
    if session.supports(name) and not (opt.cgroups or opt.container) then
      handlers[name .. '/ret >= 0/'] = function(ev) live:accepted(ev, peer_of(ev)) end
    end
  end
  handlers[('tp_btf:sock_send_length/sk->sk_protocol == %d && ret > 0/'):format(TCP)] = function(ev)
    local at = live:sent(ev)
    if at then set_ends(ev, live, at) end
  end
  handlers[('tp_btf:sock_recv_length/sk->sk_protocol == %d && ret > 0 && !(flags & 2)/'):format(TCP)] = function(ev)
    local at = live:received(ev)
    if at then set_ends(ev, live, at) end
  end
end

return transfers
