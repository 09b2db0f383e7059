-- SPDX-License-Identifier: GPL-2.0-only
--- Who reads, writes or executes an address, by the CPU's breakpoints.
local counter = require 'lib.counter'
local flamegraph = require 'lib.flamegraph'
local registers = require 'lib.registers'

local MOST = 4 -- what x86 has

--- The digits of an address: in decimal or hexadecimal, or the name of a symbol of the kernel.
local function digits_of(place)
  if place:match '^0[xX]%x+$' then return place:sub(3):lower() end
  if place:match '^%d+$' then return ('%x'):format(tonumber(place)) end
  for line in io.lines '/proc/kallsyms' do
    local digits, symbol = line:match '^0*(%x+) %a (%S+)'
    if symbol == place then return digits end
  end
end

--- The event that one word of the command line stands for, and how its lines call it; nil and what is
--- wrong with it.
local function parse(word)
  local place, length, access = word:match '^([%w_.]+)/?(%w*):?(%w*)$'
  local digits = place and digits_of(place)
  if not digits then
    return nil, ("'%s' is neither an address, such as 0x401000/4:w, nor a symbol of the kernel"):format(word)
  end
  if access == '' then access = 'w' end
  if access == 'r' then access = 'rw' end -- x86 has no other
  if access == 'x' then length = '8' elseif length == '' then length = '1' end
  return ('mem:0x%s/%s:%s'):format(digits, length, access), ('0x%s/%s:%s'):format(digits, length, access:upper())
end

return {
  summary = 'Print each access to an address, by hardware breakpoints',
  description = [[
Each address, or symbol of the kernel, is followed by a length of 1, 2, 4 or 8 bytes (default 1) and by
what is waited for: w (writes, the default), r or rw (reads and writes), x (execution). A CPU has few
breakpoints: 4 on x86. The registers at the access are printed below each line, unless -q is given.]],
  examples = {
    { 'profscript breakpoint 0x404028/4:w -- ./program', 'who writes a variable of a program' },
    { 'profscript breakpoint vfs_read:x -C 0 -g -N 1', 'who calls a function of the kernel' },
    { 'profscript breakpoint 0x404028/4:rw -p 1 --count -i 1000', 'which instructions use it, every second' },
    { "profscript trace -e 'raw_syscalls:sys_enter,breakpoint/\"0x404028/4:w -g\"/' -- ./program",
      'between its system calls' },
  },
  unsupported = { 'event' },
  options = flamegraph.options {
    count = { type = 'flag', help = 'count the accesses by task and instruction instead' },
    call_graph = {}, user_callchain = {}, kernel_callchain = {}, filter = {}, self = {},
  },
  positional = {
    { name = 'where', argument = 'ADDRESS[/LENGTH][:rwx]', required = true, multiple = true,
      help = ('up to %d of them; -- ends the list'):format(MOST) },
  },

  start = function(opt, out, session)
    if #opt.where > MOST then return nil, ('up to %d breakpoints are supported'):format(MOST) end
    local flame = flamegraph.new(opt, session, out, { title = 'breakpoint', unit = 'accesses' })
    local shown, handlers, count = {}, {}, counter.new { 'breakpoint', 'pid', 'comm', 'ip' }
    local with_registers = not (opt.quiet or opt.count or opt.input or flame)

    local function ip_of(ev)
      local frame = session.address(ev, ev._ip)
      return frame and frame.symbol and ('%s+0x%x'):format(frame.symbol, frame.plus) or ('%016x'):format(ev._ip)
    end
    local function show(ev)
      if flame then return flame:add(ev, 1) end
      if opt.count then return count:add(1, shown[ev._event], ev._pid, ev._comm, ip_of(ev)) end
      out:print_event(ev)
    end
    for _, word in ipairs(opt.where) do
      local name, title = parse(word)
      if not name then return nil, title end
      local event = session.event { name, resolve = true, sample = with_registers and { 'regs_intr' } or nil }
      shown[event.name], handlers[event] = title, show
    end

    function handlers.describe(ev)
      local values = with_registers and session.registers(ev, 'regs_intr')
      return ('breakpoint: %s ip %s'):format(shown[ev._event], ip_of(ev)), values and registers.block(values)
    end
    function handlers.interval()
      if flame then flame:interval() end
      count:print(out)
      count:clear()
    end
    function handlers.stop()
      if flame then flame:finish() end
      count:print(out)
    end
    return handlers
  end,
}
