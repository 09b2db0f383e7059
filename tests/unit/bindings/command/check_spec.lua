-- SPDX-License-Identifier: GPL-2.0-only
-- luacheck: no max string line length
local check = require 'bindings.command.check'

--- A machine where everything works for root, changed by what is given.
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
ok  perf events: kernel.perf_event_paranoid is 2, which does not bind this user
ok  capabilities: all that tracing uses
ok  common clock: works
ok  loss counters: works
ok  kernel probes: there is a PMU kprobe
ok  user probes: there is a PMU uprobe
ok  breakpoints: works
ok  hardware PMU: works
ok  BTF: /sys/kernel/btf/vmlinux
ok  BPF filters: --irqs-disabled and the like load
ok  BPF fentry: programs of scripts may run at functions of the kernel
ok  BPF from scripts: clang compiles it
ok  kernel symbols: readable
ok  ring memory: not limited
ok  open files: 20000, one for each event on each CPU
ok  lockdown: none
ok  left-over probes: none
]], text)
  assert.is_true(works)
end)

it('others are told what to do', function()
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
no  tracepoints: sched:sched_switch is refused: error 2 (run as root or with CAP_PERFMON, or lower kernel.perf_event_paranoid to -1)
--  perf events: kernel.perf_event_paranoid is 2, which leaves this user its own processes at most (as root: sysctl kernel.perf_event_paranoid=-1)
--  capabilities: missing CAP_PERFMON to trace other processes and the kernel, CAP_IPC_LOCK to map large rings, CAP_SYSLOG to see kernel addresses, CAP_SYS_PTRACE to read the maps of other users' processes, CAP_SYS_RESOURCE to raise the limit of open files, CAP_BPF to load BPF programs (run as root, or with these)
--  common clock: use_clockid is refused, so events come in the order of the rings: error 22 (Linux 4.1 or newer has it)
--  loss counters: losses at the very end stay unnoticed: error 2 (Linux 6.0 or newer has them)
--  kernel probes: no PMU kprobe (the kernel needs CONFIG_KPROBE_EVENTS)
ok  user probes: there is a PMU uprobe
ok  breakpoints: works
--  hardware PMU: cycles and the like cannot be sampled: error 2 (cpu-clock samples by time)
--  BTF: no types of the kernel's structures (it needs CONFIG_DEBUG_INFO_BTF)
--  BPF filters: no --irqs-disabled and the like: libbpf.so.1 is not installed
--  BPF fentry: no programs at functions of the kernel: libbpf.so.1 is not installed
--  BPF from scripts: only as object files (C source needs clang and libbpf-dev)
--  kernel symbols: hidden, kernel.kptr_restrict is 2 (run as root or with CAP_SYSLOG, and set kernel.kptr_restrict to 0 or 1)
--  ring memory: 128 KiB per CPU, and 64 KiB in all beyond them (as root: sysctl kernel.perf_event_mlock_kb=516)
--  open files: 256, one for each event on each CPU (raise 'ulimit -n')
no  lockdown: confidentiality forbids tracing the kernel (boot without lockdown=confidentiality)
--  left-over probes: not allowed
]], text)
  assert.is_false(works)
end)

it('only what is needed decides', function()
  local _, works = check.render(check.lines(machine { open = function(type) return type == 0 and -2 or 0 end }))
  assert.is_true(works)
  local text = check.render(check.lines(machine { remove_probes = function() return 3 end }))
  assert.truthy(text:find('ok  left-over probes: 3 removed\n', 1, true))
  _, works = check.render(check.lines(machine { files = { ['/proc/sys/kernel/perf_event_paranoid'] = false } }))
  assert.is_false(works)
end)
