-- SPDX-License-Identifier: GPL-2.0-only
--- `profscript --check`: what this kernel and this user can trace, and what to do about the rest.
local bit = require 'bit'
local perf_events = require 'bindings.view.perf_events'
local units = require 'bindings.base.units'

local check = {}

--- What the checks ask. `open` is support_open() of runtime/os/support.h: 0 or a negative errno.
---@class check.World
---@field read fun(path: string): string?
---@field exists fun(path: string): boolean
---@field tracepoints fun(): string[]?, string? names, message
---@field open fun(type: integer, config: integer, with: { system?: boolean, clock?: boolean, lost?: boolean }): integer
---@field error_text fun(code: integer): string of a positive errno
---@field bpf_missing fun(name: string): string? why a built-in BPF program does not load
---@field has_clang fun(): boolean
---@field remove_probes fun(): integer?, string? how many probes of dead runs were removed; message

---@class check.Line
---@field state 'ok'|'no'|'--' works; is needed and missing; some things go without
---@field what string
---@field detail string
---@field advice? string

local SOFTWARE, TRACEPOINT, BREAKPOINT, HARDWARE = 1, 2, 5, 0
local DUMMY, CYCLES = 9, 0
local CAPABILITIES = { -- numbers of the kernel's, and what they are for
  { 'CAP_PERFMON', 38, 'trace other processes and the kernel' },
  { 'CAP_IPC_LOCK', 14, 'map large rings' },
  { 'CAP_SYSLOG', 34, 'see kernel addresses' },
  { 'CAP_SYS_PTRACE', 19, 'read the maps of other users\' processes' },
  { 'CAP_SYS_RESOURCE', 24, 'raise the limit of open files' },
  { 'CAP_BPF', 39, 'load BPF programs' },
}
local SYS_ADMIN = 21

local function line(state, what, detail, advice)
  return { state = state, what = what, detail = detail, advice = advice }
end

local function first_line(text) return text and text:match '^[^\n]*' end

--- The capabilities in effect, by number.
local function capabilities(world)
  local hex = (world.read '/proc/self/status' or ''):match 'CapEff:%s*(%x+)'
  local mask = hex and units.unsigned('0x' .. hex) or 0ULL
  return function(number)
    local function has(n) return bit.band(bit.rshift(mask, n), 1) ~= 0 end
    return has(number) or ((number == 38 or number == 39) and has(SYS_ADMIN))
  end
end

--- A limit of this process as /proc writes it; math.huge for "unlimited".
local function limit(world, title)
  local text = (world.read '/proc/self/limits' or ''):match(title .. '%s+(%S+)')
  return text == 'unlimited' and math.huge or tonumber(text)
end

local function check_tracefs(world)
  local names, message = world.tracepoints()
  if names then return line('ok', 'tracefs', ('%d tracepoints'):format(#names)) end
  return line('no', 'tracefs', message) -- which says what to do
end

local function check_tracepoint(world)
  local id = tonumber((world.read '/sys/kernel/tracing/events/sched/sched_switch/id'
    or world.read '/sys/kernel/debug/tracing/events/sched/sched_switch/id'))
  if not id then return line('no', 'tracepoints', 'sched:sched_switch cannot be read', 'see tracefs') end
  local code = world.open(TRACEPOINT, id, { system = true })
  if code == 0 then return line('ok', 'tracepoints', 'sched:sched_switch opens') end
  return line('no', 'tracepoints', ('sched:sched_switch is refused: %s'):format(world.error_text(-code)),
    'run as root or with CAP_PERFMON, or lower kernel.perf_event_paranoid to -1')
end

local function check_paranoid(world, has)
  local level = first_line(world.read '/proc/sys/kernel/perf_event_paranoid')
  if not level then return line('no', 'perf events', 'not in this kernel', 'it needs CONFIG_PERF_EVENTS') end
  local detail = 'kernel.perf_event_paranoid is ' .. level
  if has(38) then return line('ok', 'perf events', detail .. ', which does not bind this user') end
  if tonumber(level) == -1 then return line('ok', 'perf events', detail) end
  return line('--', 'perf events', detail .. ', which leaves this user its own processes at most',
    'as root: sysctl kernel.perf_event_paranoid=-1')
end

local function check_capabilities(has)
  local missing = {}
  for _, one in ipairs(CAPABILITIES) do
    if not has(one[2]) then missing[#missing + 1] = ('%s to %s'):format(one[1], one[3]) end
  end
  if #missing == 0 then return line('ok', 'capabilities', 'all that tracing uses') end
  return line('--', 'capabilities', 'missing ' .. table.concat(missing, ', '), 'run as root, or with these')
end

--- One kind of event that may be missing without harm to the others.
local function check_kind(world, what, type, config, with, missing, advice)
  local code = world.open(type, config, with)
  if code == 0 then return line('ok', what, 'works') end
  return line('--', what, ('%s: %s'):format(missing, world.error_text(-code)), advice)
end

local function check_pmu(world, what, name, option)
  local is_there = world.exists(('%s/%s'):format(perf_events.DEVICES, name))
  if is_there then return line('ok', what, 'there is a PMU ' .. name) end
  return line('--', what, 'no PMU ' .. name, 'the kernel needs ' .. option)
end

local function check_bpf(world, what, program, works, missing)
  local message = world.bpf_missing(program)
  if not message then return line('ok', what, works) end
  return line('--', what, ('%s: %s'):format(missing, first_line(message)))
end

local function check_clang(world)
  if world.has_clang() then return line('ok', 'BPF from scripts', 'clang compiles it') end
  return line('--', 'BPF from scripts', 'only as object files', 'C source needs clang and libbpf-dev')
end

local function check_symbols(world)
  local restrict = first_line(world.read '/proc/sys/kernel/kptr_restrict') or '?'
  local symbols = '\n' .. (world.read '/proc/kallsyms' or '')
  -- The first ones may be of each CPU's part, which begins at 0.
  if symbols:find '\n0*[1-9a-f]%x* ' then return line('ok', 'kernel symbols', 'readable') end
  return line('--', 'kernel symbols', ('hidden, kernel.kptr_restrict is %s'):format(restrict),
    'run as root or with CAP_SYSLOG, and set kernel.kptr_restrict to 0 or 1')
end

local function check_memory(world, has)
  local kib = tonumber(world.read '/proc/sys/kernel/perf_event_mlock_kb') or 0
  local locked = limit(world, 'Max locked memory') or 0
  if has(14) then return line('ok', 'ring memory', 'not limited') end
  return line(kib >= 516 and 'ok' or '--', 'ring memory',
    ('%d KiB per CPU, and %s KiB in all beyond them'):format(kib, locked == math.huge and 'any number of'
      or ('%d'):format(locked / 1024)), kib < 516 and 'as root: sysctl kernel.perf_event_mlock_kb=516' or nil)
end

local function check_files(world)
  local files = limit(world, 'Max open files') or 0
  local detail = files == math.huge and 'not limited' or ('%d, one for each event on each CPU'):format(files)
  return line(files >= 1024 and 'ok' or '--', 'open files', detail, files < 1024 and "raise 'ulimit -n'" or nil)
end

local function check_lockdown(world)
  local text = world.read '/sys/kernel/security/lockdown'
  local mode = text and text:match '%[(%w+)%]' or 'none'
  if mode == 'none' then return line('ok', 'lockdown', 'none') end
  if mode == 'integrity' then return line('ok', 'lockdown', 'integrity, which leaves tracing alone') end
  return line('no', 'lockdown', mode .. ' forbids tracing the kernel', 'boot without lockdown=' .. mode)
end

local function check_left_over(world)
  local removed, message = world.remove_probes()
  if not removed then return line('--', 'left-over probes', message) end
  return line('ok', 'left-over probes', removed == 0 and 'none' or ('%d removed'):format(removed))
end

--- Makes all checks, and removes the probes that killed runs have left behind.
---@param world check.World
---@return check.Line[]
function check.lines(world)
  local has = capabilities(world)
  return {
    check_tracefs(world),
    check_tracepoint(world),
    check_paranoid(world, has),
    check_capabilities(has),
    check_kind(world, 'common clock', SOFTWARE, DUMMY, { clock = true },
      'use_clockid is refused, so events come in the order of the rings', 'Linux 4.1 or newer has it'),
    check_kind(world, 'loss counters', SOFTWARE, DUMMY, { lost = true },
      'losses at the very end stay unnoticed', 'Linux 6.0 or newer has them'),
    check_pmu(world, 'kernel probes', 'kprobe', 'CONFIG_KPROBE_EVENTS'),
    check_pmu(world, 'user probes', 'uprobe', 'CONFIG_UPROBE_EVENTS'),
    check_kind(world, 'breakpoints', BREAKPOINT, 0, {}, 'no hardware breakpoints'),
    check_kind(world, 'hardware PMU', HARDWARE, CYCLES, {}, 'cycles and the like cannot be sampled',
      'cpu-clock samples by time'),
    world.exists '/sys/kernel/btf/vmlinux' and line('ok', 'BTF', '/sys/kernel/btf/vmlinux')
      or line('--', 'BTF', "no types of the kernel's structures", 'it needs CONFIG_DEBUG_INFO_BTF'),
    check_bpf(world, 'BPF filters', 'filter', '--irqs-disabled and the like load', 'no --irqs-disabled and the like'),
    check_bpf(world, 'BPF fentry', 'fentry', 'programs of scripts may run at functions of the kernel',
      'no programs at functions of the kernel'),
    check_clang(world),
    check_symbols(world),
    check_memory(world, has),
    check_files(world),
    check_lockdown(world),
    check_left_over(world),
  }
end

--- The lines as text, and whether tracepoints work.
---@param lines check.Line[]
---@return string
---@return boolean
function check.render(lines)
  local parts, works = {}, true
  for i, one in ipairs(lines) do
    local advice = one.advice and (' (%s)'):format(one.advice) or ''
    parts[i] = ('%s  %s: %s%s\n'):format(one.state, one.what, one.detail, advice)
    works = works and one.state ~= 'no'
  end
  return table.concat(parts), works
end

return check
