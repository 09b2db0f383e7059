-- SPDX-License-Identifier: GPL-2.0-only
--- `profscript --check`: reports what this kernel and this user can trace, and how to enable the rest.
local bit = require 'bit'
local ffi = require 'ffi'
local catalog = require 'bindings.select.catalog'
local libc = require 'bindings.base.libc'
local perf_events = require 'bindings.view.perf_events'
local sample_filter = require 'bpf.run.sample_filter'
local sys = require 'bindings.base.sys'
local units = require 'bindings.base.units'

local C = ffi.C
local check = {}

--- The system as seen by the checks. `open` is support_open() of runtime/os/support.h: 0 or a negative errno.
---@class check.World
---@field read fun(path: string): string?
---@field exists fun(path: string): boolean
---@field tracepoints fun(): string[]?, string? names, message
---@field open fun(type: integer, config: integer, with: { system?: boolean, clock?: boolean, lost?: boolean }): integer
---@field error_text fun(code: integer): string of a positive errno
---@field bpf_missing fun(name: string): string? why a built-in BPF program cannot be loaded
---@field has_clang fun(): boolean
---@field unseen fun(): string[] what perf does not see of the events that BPF programs see
---@field remove_probes fun(): integer?, string? number of removed probes of killed runs; message

---@class check.Line
---@field state 'ok'|'no'|'--' works; required and missing; optional and missing
---@field what string
---@field detail string
---@field advice? string

local TYPES = perf_events.TYPES
local DUMMY, CYCLES = perf_events.find('dummy').config, perf_events.find('cycles').config
local CAPABILITIES = { -- name, number, purpose
  { 'CAP_PERFMON', 38, 'trace other processes and the kernel' },
  { 'CAP_IPC_LOCK', 14, 'map large rings' },
  { 'CAP_SYSLOG', 34, 'see kernel addresses' },
  { 'CAP_SYS_PTRACE', 19, 'read the maps of other users\' processes' },
  { 'CAP_SYS_RESOURCE', 24, 'raise the limit of open files' },
  { 'CAP_BPF', 39, 'load BPF programs' },
}
local SYS_ADMIN = 21
local BTF = '/sys/kernel/btf/vmlinux'

local function line(state, what, detail, advice)
  return { state = state, what = what, detail = detail, advice = advice }
end

local function first_line(text) return text and text:match '^[^\n]*' end

--- Returns a function that tests for an effective capability by number.
local function capabilities(world)
  local hex = (world.read '/proc/self/status' or ''):match 'CapEff:%s*(%x+)'
  local mask = hex and units.unsigned('0x' .. hex) or 0ULL
  return function(number)
    local function has(n) return bit.band(bit.rshift(mask, n), 1) ~= 0 end
    return has(number) or ((number == 38 or number == 39) and has(SYS_ADMIN))
  end
end

--- Returns a soft limit of this process by its title in /proc; math.huge for "unlimited".
local function limit(world, title)
  local text = (world.read '/proc/self/limits' or ''):match(title .. '%s+(%S+)')
  return text == 'unlimited' and math.huge or tonumber(text)
end

local function check_tracefs(world)
  local names, message = world.tracepoints()
  if names then return line('ok', 'tracefs', ('%d tracepoints'):format(#names)) end
  return line('no', 'tracefs', message) -- includes the advice
end

local function check_tracepoint(world)
  local id = tonumber((world.read '/sys/kernel/tracing/events/sched/sched_switch/id'
    or world.read '/sys/kernel/debug/tracing/events/sched/sched_switch/id'))
  if not id then return line('no', 'tracepoints', 'sched:sched_switch cannot be read', 'see tracefs') end
  local code = world.open(TYPES.tracepoint, id, { system = true })
  if code == 0 then return line('ok', 'tracepoints', 'sched:sched_switch opens') end
  return line('no', 'tracepoints', ('cannot open sched:sched_switch: %s'):format(world.error_text(-code)),
    'run as root or with CAP_PERFMON, or lower kernel.perf_event_paranoid to -1')
end

--- Compares perf with BPF programs.
local function check_unseen(world, works)
  if not works then return line('--', 'all events', 'not known', 'see tracepoints') end
  if not world.exists(BTF) then
    return line('--', 'all events', 'not known whether perf sees all', 'see BTF')
  end
  local found = world.unseen()
  if #found == 0 then return line('ok', 'all events', 'perf sees all wakeups and switches') end
  return line('--', 'all events', (table.concat(found, '; '):gsub('; %-%-capture bpf has them', '')),
    'use --capture bpf')
end

local function check_paranoid(world, has)
  local level = first_line(world.read '/proc/sys/kernel/perf_event_paranoid')
  if not level then
    return line('no', 'perf events', 'not supported by this kernel', 'the kernel needs CONFIG_PERF_EVENTS')
  end
  local detail = 'kernel.perf_event_paranoid is ' .. level
  if has(38) then return line('ok', 'perf events', detail .. ', which does not restrict this user') end
  if tonumber(level) == -1 then return line('ok', 'perf events', detail) end
  return line('--', 'perf events', detail .. ', which restricts this user to its own processes at most',
    'as root: sysctl kernel.perf_event_paranoid=-1')
end

local function check_capabilities(world, has)
  local missing = {}
  for _, one in ipairs(CAPABILITIES) do
    if not has(one[2]) then missing[#missing + 1] = ('%s to %s'):format(one[1], one[3]) end
  end
  if #missing == 0 then return line('ok', 'capabilities', 'all capabilities for tracing') end
  local is_root = (world.read '/proc/self/status' or ''):find '\nUid:%s+%d+%s+0%s'
  return line('--', 'capabilities', 'missing ' .. table.concat(missing, ', '),
    (is_root and 'run ' or 'run as root or ') .. 'with these capabilities')
end

--- Checks for an optional kind of event.
local function check_kind(world, what, type, config, with, missing, advice)
  local code = world.open(type, config, with)
  if code == 0 then return line('ok', what, 'works') end
  return line('--', what, ('%s: %s'):format(missing, world.error_text(-code)), advice)
end

local function check_pmu(world, what, name, option)
  local exists = world.exists(('%s/%s'):format(perf_events.DEVICES, name))
  if exists then return line('ok', what, 'PMU ' .. name) end
  return line('--', what, 'no PMU ' .. name, 'the kernel needs ' .. option)
end

local function check_bpf(world, what, program, works, missing)
  local message = world.bpf_missing(program)
  if not message then return line('ok', what, works) end
  return line('--', what, ('%s: %s'):format(missing, first_line(message)))
end

local function check_clang(world)
  if world.has_clang() then return line('ok', 'BPF from scripts', 'clang compiles C source') end
  return line('--', 'BPF from scripts', 'object files only', 'C source needs clang and libbpf-dev')
end

local function check_symbols(world)
  local restrict = first_line(world.read '/proc/sys/kernel/kptr_restrict') or '?'
  local symbols = '\n' .. (world.read '/proc/kallsyms' or '')
  -- The first symbols can be per-CPU offsets, which start at 0.
  if symbols:find '\n0*[1-9a-f]%x* ' then return line('ok', 'kernel symbols', 'readable') end
  return line('--', 'kernel symbols', ('hidden, kernel.kptr_restrict is %s'):format(restrict),
    'run as root or with CAP_SYSLOG, and set kernel.kptr_restrict to 0 or 1')
end

local function check_memory(world, has)
  local kib = tonumber((world.read '/proc/sys/kernel/perf_event_mlock_kb')) or 0
  local locked = limit(world, 'Max locked memory') or 0
  if has(14) then return line('ok', 'ring memory', 'unlimited') end
  return line(kib >= 516 and 'ok' or '--', 'ring memory',
    ('%d KiB per CPU, plus %s in total'):format(kib, locked == math.huge and 'unlimited memory'
      or ('%d KiB'):format(locked / 1024)), kib < 516 and 'as root: sysctl kernel.perf_event_mlock_kb=516' or nil)
end

local function check_files(world)
  local files = limit(world, 'Max open files') or 0
  local detail = files == math.huge and 'unlimited' or ('%d; each event needs one per CPU'):format(files)
  return line(files >= 1024 and 'ok' or '--', 'open files', detail, files < 1024 and "raise 'ulimit -n'" or nil)
end

local function check_lockdown(world)
  local text = world.read '/sys/kernel/security/lockdown'
  local mode = text and text:match '%[(%w+)%]' or 'none'
  if mode == 'none' then return line('ok', 'lockdown', 'none') end
  if mode == 'integrity' then return line('ok', 'lockdown', 'integrity, which allows tracing') end
  return line('no', 'lockdown', mode .. ' forbids tracing the kernel', 'boot without lockdown=' .. mode)
end

local function check_stale_probes(world)
  local removed, message = world.remove_probes()
  if not removed then return line('--', 'stale probes', message) end
  return line('ok', 'stale probes', removed == 0 and 'none' or ('removed %d'):format(removed))
end

--- Runs all checks, and removes the probes of killed runs.
---@param world check.World
---@return check.Line[]
function check.lines(world)
  local has, tracepoint = capabilities(world), check_tracepoint(world)
  return {
    check_tracefs(world),
    tracepoint,
    check_unseen(world, tracepoint.state == 'ok'),
    check_paranoid(world, has),
    check_capabilities(world, has),
    check_kind(world, 'common clock', TYPES.software, DUMMY, { clock = true },
      'no use_clockid, so events are not ordered between rings', 'needs Linux 4.1'),
    check_kind(world, 'loss counters', TYPES.software, DUMMY, { lost = true },
      'losses at the very end are not detected', 'needs Linux 6.0'),
    check_pmu(world, 'kernel probes', 'kprobe', 'CONFIG_KPROBE_EVENTS'),
    check_pmu(world, 'user probes', 'uprobe', 'CONFIG_UPROBE_EVENTS'),
    check_kind(world, 'breakpoints', TYPES.breakpoint, 0, {}, 'no hardware breakpoints'),
    check_kind(world, 'hardware PMU', TYPES.hardware, CYCLES, {}, 'cannot sample cycles and other hardware events',
      'cpu-clock samples by time'),
    world.exists(BTF) and line('ok', 'BTF', '/sys/kernel/btf/vmlinux')
      or line('--', 'BTF', 'no types of kernel structures', 'the kernel needs CONFIG_DEBUG_INFO_BTF'),
    check_bpf(world, 'BPF filters', 'filter', '--irqs-disabled and similar filters load',
      'no --irqs-disabled and similar filters'),
    check_bpf(world, 'BPF fentry', 'fentry', 'programs can attach to kernel functions',
      'programs cannot attach to kernel functions'),
    check_clang(world),
    check_symbols(world),
    check_memory(world, has),
    check_files(world),
    check_lockdown(world),
    check_stale_probes(world),
  }
end

--- Formats the lines.
---@param lines check.Line[]
---@return string text
---@return boolean works whether everything required works
function check.render(lines)
  local parts, works = {}, true
  for i, one in ipairs(lines) do
    local advice = one.advice and (' (%s)'):format(one.advice) or ''
    parts[i] = ('%s  %s: %s%s\n'):format(one.state, one.what, one.detail, advice)
    works = works and one.state ~= 'no'
  end
  return table.concat(parts), works
end

local LOOK, START = 300, 200 -- ms: how long events are compared, after at most that time

--- Returns this system. What cannot be read counts as missing.
---@return check.World
function check.machine()
  return {
    read = sys.read,
    exists = function(path) return sys.stat(path) ~= nil end,
    tracepoints = function() return catalog.machine():tracepoints() end,
    open = function(type, config, with)
      local flags = (with.system and C.SUPPORT_SYSTEM or 0) + (with.clock and C.SUPPORT_CLOCK or 0)
        + (with.lost and C.SUPPORT_LOST or 0)
      return C.support_open(type, config, flags)
    end,
    error_text = sys.strerror,
    bpf_missing = sample_filter.missing,
    has_clang = function() return os.execute 'clang --version >/dev/null 2>&1' == 0 end,
    unseen = function()
      local pipe = io.popen(('/proc/%d/exe event-lost -e sched:sched_wakeup,sched:sched_switch --duration %dms '
        .. '2>&1 >/dev/null'):format(libc.getpid(), LOOK))
      if not pipe then return {} end
      C.support_wake_cpus(LOOK + START)
      local found = {}
      for said in pipe:lines() do found[#found + 1] = said:match '^event%-lost: (%d+ of %d+ sched:.*)$' end
      pipe:close()
      return found
    end,
    remove_probes = function()
      local err = ffi.new 'struct error'
      local removed = C.probes_remove_stale(nil, err)
      if removed < 0 then return nil, ffi.string(err.text) end
      return removed
    end,
  }
end

return check
