-- SPDX-License-Identifier: GPL-2.0-only
--- What sockets send and receive: by the tracepoints sock:sock_*_length, or by typed events, which also have the ends
--- of connections that were open before the run.
local typed_events = require 'lib.engines.typed_events'

local transfers = {}

local TCP = 6
local SENT = 'sock:sock_send_length'

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

--- Adds the handlers of accepts, which say by the address of the peer who accepts.
local function follow_accepts(handlers, session, opt, live, peer_of)
  for _, call in ipairs { 'accept', 'accept4' } do
    local name = 'syscalls:sys_exit_' .. call
    -- Programs that select by control group read no memory of the task.
    if session.supports(name) and not (opt.cgroups or opt.container) then
      handlers[name .. '/ret >= 0/'] = function(ev) live:accepted(ev, peer_of(ev)) end
    end
  end
end

--- What only the script can read of events, so that programs capture it.
---@class TransferReaders
---@field set_ends fun(ev: Ev, live: Connections, at: integer) calls live:set_before()
---@field peer_of fun(ev: Ev): integer64? returns the first 8 bytes of the address that an accept() has returned

--- Adds the handlers of what is sent, received and accepted.
---@param handlers table
---@param session Session
---@param opt table
---@param out Output
---@param live Connections
---@param readers TransferReaders
function transfers.follow(handlers, session, opt, out, live, readers)
  if typed_events.has_programs(opt) then
    follow_accepts(handlers, session, opt, live, readers.peer_of)
  end
  if not (opt.input or session.supports(SENT)) then
    return out:warn 'tcp: this kernel does not report what is sent and received (Linux has since 6.3)'
  end
  if not typed_events.has(opt, session, SENT) then
    handlers[('sock:sock_send_length/protocol == %d && ret > 0/'):format(TCP)] = function(ev) live:sent(ev) end
    -- Without what MSG_PEEK only looks at.
    handlers[('sock:sock_recv_length/protocol == %d && ret > 0 && !(flags & 2)/'):format(TCP)] = function(ev)
      live:received(ev)
    end
    return
  end
  local set_ends = readers.set_ends
  live.listens = listening_ports()
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
