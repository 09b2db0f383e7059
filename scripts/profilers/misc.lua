-- SPDX-License-Identifier: GPL-2.0-only
--- What the kernel reports besides samples: BPF programs, code that it got or changed, cgroups.
local KINDS = { 'ksymbol', 'bpf_event', 'cgroup', 'text_poke' }
local NAMES = { 'namespaces', 'comm', 'fork', 'exit', 'mmap', unpack(KINDS) }
local ALL = {}
for _, name in ipairs(NAMES) do ALL[name] = true end

return {
  summary = 'Print what the kernel reports of itself: BPF programs, new code, new cgroups',
  description = [[
  misc:ksymbol     the kernel got or gave up code: BPF programs, trampolines
  misc:bpf_event   a BPF program was loaded or unloaded
  misc:cgroup      a cgroup was made
  misc:text_poke   the kernel changed its code, as tracing and static keys do
--records prints others too: misc:namespaces (a task began, or has others), and misc:comm, misc:fork,
misc:exit, misc:mmap of tasks. Each is an event for -e of any profiler. A recording has those that perf
asked for: ksymbol and bpf_event always, the others with --all-cgroups and --namespaces.

  $ profscript misc --records cgroup -N 1
  2026-11-22 16:22:44.828846             mkdir   8162 ..... [001] 14744.702689: misc:cgroup: id 2704 /web]],
  examples = {
    { 'profscript misc', 'all of it, as it happens' },
    { 'profscript misc --records namespaces -- unshare -u true', 'which namespaces the threads of a command have' },
    { "profscript trace -e 'misc:bpf_event,syscalls:sys_enter_bpf//stack/'", 'who loads BPF programs' },
  },
  unsupported = { 'event' },
  options = {
    records = { type = 'words', argument = 'KIND,...', help = 'print these only' },
    filter = {},
  },

  start = function(opt, out, session)
    local handlers, missing = {}, {}
    local function show(ev) out:print_event(ev) end
    for _, kind in ipairs(opt.records or {}) do
      if not ALL[kind] then return nil, ("--records: '%s' is none of %s"):format(kind, table.concat(NAMES, ', ')) end
      handlers['misc:' .. kind] = show
    end
    for _, kind in ipairs(opt.records and {} or KINDS) do
      if session.supports('misc:' .. kind) then
        handlers['misc:' .. kind] = show
      else
        missing[#missing + 1] = 'misc:' .. kind
      end
    end
    if #missing == #KINDS then
      error(('misc: %s has none of %s'):format(opt.input and 'the recording' or 'this kernel',
        table.concat(missing, ', ')), 0)
    elseif #missing > 0 and not opt.input then
      out:warn('misc: this kernel has no ' .. table.concat(missing, ', '))
    end
    return handlers
  end,
}
