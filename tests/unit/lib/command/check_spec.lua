-- SPDX-License-Identifier: GPL-2.0-only
-- luacheck: no max string line length
local check = require 'lib.command.check'

--- A machine where everything works for root, with the given changes.
local function machine(changes)
  local files = {
    ['/proc/self/status'] = 'Name:\tx\nCapEff:\t000001ffffffffff\n',
    ['/proc/self/limits'] = 'Max open files            20000                20000                files\n'
      .. 'Max locked memory         8388608              unlimited            bytes\n',
    ['/sys/kernel/tracing/events/sched/sched_switch/id'] = '315\n',
    ['/proc/sys/kernel/perf_event_paranoid'] = '2\n',
    ['/proc/sys/kernel/kptr_restrict'] = '0\n',
    ['/proc/kallsyms'] = '0000000000000000 A fixed_percpu_data\nffffffff81000000 T _text\n',
    ['/proc/sys/kernel/perf_event_mlock_kb'] = '516\n',
    ['/sys/kernel/btf/vmlinux'] = '',
    ['/sys/bus/event_source/devices/kprobe'] = '',
    ['/sys/bus/event_source/devices/uprobe'] = '',
  }
  for path, text in pairs(changes.files or {}) do
    files[path] = text
  end
  return {
    read = function(path) return files[path] or nil end,
    exists = function(path) return files[path] and true or false end,
    tracepoints = changes.tracepoints or function() return { 'a:b', 'c:d' } end,
    open = changes.open or function() return 0 end,
    unseen = changes.unseen or function() return {} end,
    remove_probes = changes.remove_probes or function() return 0 end,
    bpf_missing = function() return changes.bpf_missing end,
    has_clang = function() return not changes.bpf_missing end,
    error_text = function(code) return 'error ' .. code end,
  }
end

it('root on a kernel with everything has nothing to do', function()
  local text, works = check.render(check.lines(machine {}))
  assert.equal([[
ok  tracefs: 2 tracepoints
ok  tracepoints: sched:sched_switch opens
ok  all events: perf sees all wakeups and switches
ok  perf events: kernel.perf_event_paranoid is 2, which does not restrict this user
ok  capabilities: all capabilities for tracing
ok  common clock: works
ok  loss counters: works
ok  kernel probes: PMU kprobe
ok  user probes: PMU uprobe
ok  breakpoints: works
ok  hardware PMU: works
ok  BTF: /sys/kernel/btf/vmlinux
ok  BPF filters: --irqs-disabled and similar filters load
ok  BPF fentry: programs can attach to kernel functions
ok  BPF from scripts: clang compiles C source
ok  kernel symbols: readable
ok  ring memory: unlimited
ok  open files: 20000; each event needs one per CPU
ok  lockdown: none
ok  stale probes: none
]], text)
  assert.is_true(works)
end)

it('others get advice', function()
  local text, works = check.render(check.lines(machine {
    files = {
      ['/proc/self/status'] = 'CapEff:\t0000000000000000\n',
      ['/proc/self/limits'] = 'Max open files            256                20000                files\n'
        .. 'Max locked memory         65536              65536            bytes\n',
      ['/proc/sys/kernel/perf_event_mlock_kb'] = '128\n',
      ['/proc/sys/kernel/kptr_restrict'] = '2\n',
      ['/proc/kallsyms'] = '0000000000000000 T _text\n',
      ['/sys/bus/event_source/devices/kprobe'] = false,
      ['/sys/kernel/btf/vmlinux'] = false,
      ['/sys/kernel/security/lockdown'] = 'none integrity [confidentiality]\n',
    },
    tracepoints = function() return nil, 'tracefs is not mounted' end,
    bpf_missing = 'libbpf.so.1 is not installed',
    remove_probes = function() return nil, 'not allowed' end,
    open = function(type, _, with) return (type == 0 or with.system or with.lost) and -2 or with.clock and -22 or 0 end,
  }))
  assert.equal([[
no  tracefs: tracefs is not mounted
no  tracepoints: cannot open sched:sched_switch: error 2 (run as root or with CAP_PERFMON, or lower kernel.perf_event_paranoid to -1)
--  all events: not known (see tracepoints)
--  perf events: kernel.perf_event_paranoid is 2, which restricts this user to its own processes at most (as root: sysctl kernel.perf_event_paranoid=-1)
--  capabilities: missing CAP_PERFMON to trace other processes and the kernel, CAP_IPC_LOCK to map large rings, CAP_SYSLOG to see kernel addresses, CAP_SYS_PTRACE to read the maps of other users' processes, CAP_SYS_RESOURCE to raise the limit of open files, CAP_BPF to load BPF programs (run as root or with these capabilities)
--  common clock: no use_clockid, so events are not ordered between rings: error 22 (needs Linux 4.1)
--  loss counters: losses at the very end are not detected: error 2 (needs Linux 6.0)
--  kernel probes: no PMU kprobe (the kernel needs CONFIG_KPROBE_EVENTS)
ok  user probes: PMU uprobe
ok  breakpoints: works
--  hardware PMU: cannot sample cycles and other hardware events: error 2 (cpu-clock samples by time)
--  BTF: no types of kernel structures (the kernel needs CONFIG_DEBUG_INFO_BTF)
--  BPF filters: no --irqs-disabled and similar filters: libbpf.so.1 is not installed
--  BPF fentry: programs cannot attach to kernel functions: libbpf.so.1 is not installed
--  BPF from scripts: object files only (C source needs clang and libbpf-dev)
--  kernel symbols: hidden, kernel.kptr_restrict is 2 (run as root or with CAP_SYSLOG, and set kernel.kptr_restrict to 0 or 1)
--  ring memory: 128 KiB per CPU, plus 64 KiB in total (as root: sysctl kernel.perf_event_mlock_kb=516)
--  open files: 256; each event needs one per CPU (raise 'ulimit -n')
no  lockdown: confidentiality forbids tracing the kernel (boot without lockdown=confidentiality)
--  stale probes: not allowed
]], text)
  assert.is_false(works)
end)

it('perf may see less than BPF programs', function()
  local found = { '4 of 70 sched:sched_wakeup are missing: the kernel counted them, but wrote no record of them',
    '2 of 9 sched:sched_switch are hidden from perf; --capture bpf has them' }
  local text, works = check.render(check.lines(machine { unseen = function() return found end }))
  assert.truthy(text:find('--  all events: 4 of 70 sched:sched_wakeup are missing: the kernel counted them, but wrote '
    .. 'no record of them; 2 of 9 sched:sched_switch are hidden from perf (use --capture bpf)\n', 1, true))
  assert.is_true(works)
end)

it('only what is needed decides', function()
  local _, works = check.render(check.lines(machine { open = function(type) return type == 0 and -2 or 0 end }))
  assert.is_true(works)
  local text = check.render(check.lines(machine { remove_probes = function() return 3 end }))
  assert.truthy(text:find('ok  stale probes: removed 3\n', 1, true))
  _, works = check.render(check.lines(machine { files = { ['/proc/sys/kernel/perf_event_paranoid'] = false } }))
  assert.is_false(works)
end)
