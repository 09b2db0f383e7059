-- SPDX-License-Identifier: GPL-2.0-only
--- Kernel records other than samples: BPF programs, added and patched code, cgroups.
local events = require 'lib.events'

local KINDS = { 'misc:ksymbol', 'misc:bpf_event', 'misc:cgroup', 'misc:text_poke' }
local NAMES = { 'namespaces', 'comm', 'fork', 'exit', 'mmap', 'ksymbol', 'bpf_event', 'cgroup', 'text_poke' }
local ALL = {}
for _, name in ipairs(NAMES) do ALL[name] = true end

return {
  summary = 'Print kernel records: BPF programs, kernel code, cgroups',
  description = [[
Prints these records of the kernel:

  misc:ksymbol     kernel code was added or removed: BPF programs, trampolines
  misc:bpf_event   a BPF program was loaded or unloaded
  misc:cgroup      a cgroup was created
  misc:text_poke   kernel code was patched, as tracing and static keys do

--records selects others, too: misc:namespaces (of a new task, or changed), and
misc:comm, misc:fork, misc:exit and misc:mmap of tasks. Each record is an event
that -e of any profiler can select. A recording contains the records that perf
requested: ksymbol and bpf_event always, the others with --all-cgroups and
--namespaces.

  $ profscript misc --records cgroup -N 1
  2026-11-22 16:22:44.828846             mkdir   8162 ..... [001] 14744.702689: misc:cgroup: id 2704 /web]],
  examples = {
    { 'profscript misc', 'all records, as they happen' },
    { 'profscript misc --records namespaces -- unshare -u true', 'namespaces of the threads of a command' },
    { "profscript trace -e 'misc:bpf_event,syscalls:sys_enter_bpf//stack/'", 'who loads BPF programs' },
  },
  unsupported = { 'event' },
  options = {
    records = { type = 'words', argument = 'KIND,...', help = 'print only these records' },
    filter = {},
  },

  start = function(opt, out, session)
    session.want { prints_events = true }
    local handlers = {}
    local function show(ev) out:print_event(ev) end
    for _, kind in ipairs(opt.records or {}) do
      if not ALL[kind] then
        return nil, ("--records: '%s' is not one of %s"):format(kind, table.concat(NAMES, ', '))
      end
      handlers['misc:' .. kind] = show
    end
    if opt.records then return handlers end
    local kinds, message = events.existing(KINDS, nil, 'misc', out, session, 'none of them are shown')
    if message then error('misc: ' .. message, 0) end
    for _, kind in ipairs(kinds) do handlers[kind] = show end
    return handlers
  end,
}
