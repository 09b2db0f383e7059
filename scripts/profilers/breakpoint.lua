-- SPDX-License-Identifier: GPL-2.0-only
--- Who reads, writes or executes an address, by the CPU's breakpoints. It is longer than others because an address is
--- written in several ways, and because of what --filter is not for.
local counter = require 'lib.counter'
local flamegraph = require 'lib.flamegraph'
local frame = require 'lib.frame'
local registers = require 'lib.registers'
local stores = require 'lib.stores'

local MOST = 4 -- what x86 has
-- Options after which it sees a part of the accesses.
local PART = {
  'exclude_user', 'exclude_kernel', 'exclude_host', 'exclude_guest', 'cpus', 'cgroups', 'exclude_pid', 'prio',
  'sched_policy', 'irqs_disabled', 'tif_need_resched', 'nr_running_min', 'nr_running_max',
}

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
  return {
    event = ('mem:0x%s/%s:%s'):format(digits, length, access),
    title = ('0x%s/%s:%s'):format(digits, length, access:upper()),
    written = access == 'w' and tonumber(length) or nil, -- bytes
  }
end

--- Whether all that writes to the kernel's memory is seen, and to that of the processes that are.
local function sees_all(opt, session)
  local all = not session.per_thread or session.inherits and not opt.tids
  for _, name in ipairs(PART) do all = all and not opt[name] end
  return { kernel = all and not session.per_thread, user = all }
end

return {
  summary = 'Print each access to an address, by hardware breakpoints',
  description = [[
Each address, or symbol of the kernel, is followed by a length of 1, 2, 4 or 8 bytes (default 1) and by
what is waited for: w (writes, the default), r or rw (reads and writes), x (execution). A CPU has few
breakpoints: 4 on x86. Below each line are the registers at the access, unless -q is given, and for w on x86
the instruction that wrote (INSN), its address (ADDR) and what is there now (DATA, LENGTH bytes).
--filter is a C expression of `data`, which is that number, without sign; what is not known passes it.
Not known are vector registers and what xadd and xchg write; where a value follows from the one before (inc, or),
it is not after a loss, nor with -C, -t, --exclude-kernel and the like, which leave out who else writes.]],
  examples = {
    { 'profscript breakpoint 0x404028/4:w -- ./program', 'who writes a variable of a program' },
    { 'profscript breakpoint vfs_read:x -C 0 -g -N 1', 'who calls a function of the kernel' },
    { 'profscript breakpoint 0x404028/4:rw -p 1 --count -i 1000', 'which instructions use it, every second' },
    { "profscript breakpoint 0x404028/4:w --filter 'data > 100' -g -- ./program", 'who makes it so large' },
    { "profscript trace -e 'raw_syscalls:sys_enter,breakpoint/\"0x404028/4:w -g\"/' -- ./program",
      'between its system calls' },
  },
  unsupported = { 'event' },
  options = flamegraph.options {
    count = { type = 'flag', help = 'count the accesses by task and instruction instead' },
    call_graph = {}, user_callchain = {}, kernel_callchain = {}, self = {},
    filter = { own = true, help = 'only the writes after which this C expression of data is true' },
  },
  positional = {
    { name = 'where', argument = 'ADDRESS[/LENGTH][:rwx]', required = true, multiple = true,
      help = ('up to %d of them; -- ends the list'):format(MOST) },
  },

  start = function(opt, out, session)
    if #opt.where > MOST then return nil, ('up to %d breakpoints are supported'):format(MOST) end
    local flame = flamegraph.new(opt, session, out, { title = 'breakpoint', unit = 'accesses' })
    local by_event, handlers, count = {}, {}, counter.new { 'breakpoint', 'pid', 'comm', 'ip' }
    local is_wanted = opt.filter and session.condition('data', opt.filter)
    local with_block = not (opt.quiet or opt.count or opt.input or flame)
    local seen = (with_block or is_wanted) and stores.new(session, sees_all(opt, session))
    local left = is_wanted and opt.exit_n or math.huge
    if is_wanted then session.want { own_exit_n = true } end -- it is for those that pass
    local shown, found, data -- the event that is printed, and what is known of it

    local function ip_of(ev) return frame.text(session.address(ev, ev._ip), ev._ip) end
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
      if is_wanted and not place.written then return nil, ('--filter is for writes, and %s is none'):format(word) end
      local event = session.event { place.event, resolve = true, sample = seen and { 'regs_intr' } or nil }
      by_event[event.name], handlers[event] = place, show
    end
    if is_wanted and session.is_source then return nil, 'it has no --filter where it is a source of others' end
    if is_wanted and opt.input then return nil, '--filter is for live events: recordings have no registers' end

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
    function handlers.lost()
      if seen then seen:forget() end
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
