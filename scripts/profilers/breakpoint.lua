-- SPDX-License-Identifier: GPL-2.0-only
--- Reads, writes or executions of an address, reported by hardware breakpoints.
local counter = require 'lib.counter'
local flamegraph = require 'lib.flamegraph'
local kernel_files = require 'lib.engines.kernel_files'
local registers = require 'lib.registers'
local stores = require 'lib.engines.stores'

local MAX_BREAKPOINTS = 4 -- of an x86 CPU
--- Returns the hexadecimal digits of an address, given in decimal, hexadecimal or as a kernel symbol.
local function digits_of(place)
  if place:match '^0[xX]%x+$' then return place:sub(3):lower() end
  if place:match '^%d+$' then return ('%x'):format(tonumber(place)) end
  return kernel_files.symbol(place)
end

--- Parses one argument of the command line: its event, and its title in lines.
local function parse(word)
  local place, length, access = word:match '^([%w_.]+)/?(%w*):?(%w*)$'
  local digits = place and digits_of(place)
  if not digits then
    return nil, ("'%s' is neither an address, such as 0x401000/4:w, nor a kernel symbol"):format(word)
  end
  if access == '' then access = 'w' end
  if access == 'r' then access = 'rw' end -- x86 cannot watch reads only
  if access == 'x' then length = '8' elseif length == '' then length = '1' end
  return {
    event = ('mem:0x%s/%s:%s'):format(digits, length, access),
    title = ('0x%s/%s:%s'):format(digits, length, access:upper()),
    written = access == 'w' and tonumber(length) or nil, -- bytes
  }
end

return {
  summary = 'Print accesses to an address, using hardware breakpoints',
  description = [[
ADDRESS is a number or a kernel symbol. LENGTH is 1, 2, 4 or 8 bytes (default
1). The access is w (write, the default), r or rw (read or write) or x
(execute). A CPU has few breakpoints: 4 on x86.

Each line is followed by the registers at the access, unless -q is given. On
x86, a w breakpoint also prints the instruction that wrote (INSN), the address
written to (ADDR) and the LENGTH bytes there after the write (DATA).

--filter is a C expression of `data`, the bytes after the write as an unsigned
integer. A write passes the filter if its data is unknown: if the value comes
from a vector register, xadd or xchg, or if it depends on the previous value
(inc, or) and other writes may have been missed. That is so after lost events,
and with -C, -t, --exclude-kernel and other options that hide writes.]],
  examples = {
    { 'profscript breakpoint 0x404028/4:w -- ./program', 'writes to a variable of a program' },
    { 'profscript breakpoint vfs_read:x -C 0 -g -N 1', 'who calls a kernel function' },
    { 'profscript breakpoint 0x404028/4:rw -p 1 --count -i 1000', 'which instructions access it, every second' },
    { "profscript breakpoint 0x404028/4:w --filter 'data > 100' -g -- ./program", 'who writes values above 100' },
    { "profscript trace -e 'raw_syscalls:sys_enter,breakpoint/\"0x404028/4:w -g\"/' -- ./program",
      'writes between the system calls of a program' },
  },
  unsupported = { 'event' },
  options = flamegraph.options {
    count = { type = 'flag', help = 'count accesses by task and instruction instead of printing them' },
    call_graph = {}, user_callchain = {}, kernel_callchain = {}, self = {},
    filter = { own = true, needs = { 'own_run', 'live' },
      help = 'only writes after which this C expression of data is true' },
  },
  positional = {
    { name = 'where', argument = 'ADDRESS[/LENGTH][:rwx]', required = true, multiple = true,
      help = ('up to %d addresses; -- ends the list'):format(MAX_BREAKPOINTS) },
  },

  start = function(opt, out, session)
    if #opt.where > MAX_BREAKPOINTS then return nil, ('up to %d breakpoints are supported'):format(MAX_BREAKPOINTS) end
    local flame = flamegraph.new(opt, session, out, { title = 'breakpoint', unit = 'accesses' })
    local by_event, handlers, count = {}, {}, counter.new { 'breakpoint', 'pid', 'comm', 'ip' }
    session.want { prints_events = not (opt.count or flame) }
    local is_wanted = opt.filter and session.condition('data', opt.filter)
    local with_block = not (opt.quiet or opt.count or flame)
    local seen = (with_block or is_wanted) and stores.new(session, opt)
    local left = is_wanted and opt.exit_n or math.huge
    if is_wanted then session.want { own_exit_n = true } end -- counts accesses that pass
    local shown, found, data -- the event that is being printed, its store and the data written

    local function ip_of(ev) return session.address_text(ev, ev._ip) end
    local function show(ev)
      local place = by_event[ev._event]
      if seen and place.written then found, data = seen:see(ev, session.registers(ev, 'regs_intr'), place.written) end
      if is_wanted and data and not is_wanted(data) or left == 0 then return end
      left = left - 1
      if left == 0 then session.stop() end
      if flame then return flame:add(ev, 1) end
      if opt.count then return count:add(1, place.title, ev._pid, ev._comm, ip_of(ev)) end
      shown = ev
      out:print_event(ev)
      shown, found, data = nil, nil, nil
    end
    for _, word in ipairs(opt.where) do
      local place, message = parse(word)
      if not place then return nil, message end
      if is_wanted and not place.written then
        return nil, ('--filter needs w breakpoints, and %s is not one'):format(word)
      end
      local event = session.event { place.event, resolve = true, sample = seen and { 'regs_intr' } or nil }
      by_event[event.name], handlers[event] = place, show
    end

    function handlers.describe(ev)
      local place, block = by_event[ev._event], nil
      local values = with_block and session.registers(ev, 'regs_intr')
      if values then
        local by, value = found, data
        if not shown and place.written then by, value = seen:look(ev, values, place.written) end
        block = registers.block(values) .. (by and ('      %s\n'):format(stores.text(by, value)) or '')
      end
      return ('breakpoint: %s ip %s'):format(place.title, ip_of(ev)), block
    end
    function handlers.lost() return seen and seen:forget() end
    if opt.count then
      function handlers.draw() count:print(out) end
    end
    function handlers.interval()
      count:print(out)
      count:clear()
    end
    function handlers.stop() count:print(out) end
    return flamegraph.follow(flame, handlers)
  end,
}
