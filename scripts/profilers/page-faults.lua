-- SPDX-License-Identifier: GPL-2.0-only
--- Page faults, one line each: the faulting address and the instruction.
local buffer = require 'string.buffer'
local flamegraph = require 'lib.flamegraph'
local registers = require 'lib.registers'

return {
  summary = 'Print page faults: address, instruction and task',
  description = [[
Another profiler takes these events as -e page-faults/OPTIONS/ with at least one
option, such as trace -e 'page-faults/-N 10/'. Without options, page-faults is
perf's event of that name, which has no address.]],
  examples = {
    { 'profscript page-faults -N 100 -- ls', 'the first 100 page faults of a command' },
    { 'profscript page-faults -p 1234 -g -N 1', 'one page fault with registers and stack' },
    { 'profscript page-faults --exclude-kernel --flame-graph faults.svg -- make', 'user page faults by stack' },
  },
  unsupported = { 'event' },
  options = flamegraph.options { period = { type = 'integer', help = 'sample every Nth page fault' }, call_graph = {},
    srcline = {}, user_callchain = {}, kernel_callchain = {}, filter = {}, self = {} },

  start = function(opt, out, session)
    local flame = flamegraph.new(opt, session, out, { title = 'page faults', unit = 'faults' })
    local with_registers = opt.call_graph and not flame
    session.want { prints_events = not flame }
    local line = buffer.new()
    local function describe(ev)
      local values = with_registers and session.registers(ev)
      line:reset():putf('page-fault: addr %016x ip %s', ev._addr, session.address_text(ev, ev._ip))
      return line, values and registers.block(values), true -- registers of user space
    end
    local fault = session.event {
      'page-faults', resolve = true, sample = with_registers and { 'regs_user' } or nil,
    }
    return flamegraph.follow(flame, {
      [fault] = function(ev)
        if flame then flame:add(ev, 1) else out:print_event(ev) end
      end,
      describe = describe,
    })
  end,
}
