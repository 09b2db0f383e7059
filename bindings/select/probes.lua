-- SPDX-License-Identifier: GPL-2.0-only
--- Dynamic probes as events: kprobe:, kretprobe:, uprobe:, uretprobe:, usdt:. A probe without arguments is opened on
--- the kernel's probe PMU and removed with its file descriptor. It is created in tracefs and removed by the session if
--- it has arguments, if its PMU is missing, or if its format must be sent to others.
local bit = require 'bit'
local ffi = require 'ffi'
local failure = require 'bindings.base.failure'
local go_program = require 'bindings.base.go_program'
local nearest = require 'bindings.base.nearest'
local perf_events = require 'bindings.view.perf_events'
local processes = require 'bindings.select.processes'
local sys = require 'bindings.base.sys'
local usdt = require 'bindings.select.usdt'
local views = require 'bindings.view.views'

local C = ffi.C
local probes = {}

---@class ProbeKind
---@field pmu string name of the PMU, and of the tracefs file without "_events"
---@field returns boolean
local KINDS = {
  kprobe = { pmu = 'kprobe', returns = false },
  kretprobe = { pmu = 'kprobe', returns = true },
  uprobe = { pmu = 'uprobe', returns = false },
  uretprobe = { pmu = 'uprobe', returns = true },
  usdt = { pmu = 'uprobe', returns = false },
}

local TARGETS = { kprobe = C.PROBE_KERNEL, uprobe = C.PROBE_USER }
local UNAVAILABLE = {
  kprobe = 'this kernel has no kprobes (CONFIG_KPROBES)',
  uprobe = 'this kernel has no uprobes (CONFIG_UPROBE_EVENTS)',
}
local MAX_SEMAPHORE = 2 ^ 32 -- the PMU's ref_ctr_offset has 32 bits

--- Returns whether a system is one of the kinds of probes.
---@param system string
function probes.is_probe(system) return KINDS[system] ~= nil end

-- The records of the PMUs, which have no format file.
local RECORDS = {
  [false] = { list = views.record_fields '__probe_ip', print_fmt = '"(%lx)", REC->__probe_ip' },
  [true] = {
    list = views.record_fields('__probe_func', '__probe_ret_ip'),
    print_fmt = '"(%lx <- %lx)", REC->__probe_ret_ip, REC->__probe_func',
  },
}

--- Returns a probe PMU: its type, and the bits of config for a return probe and for the file offset of a semaphore.
local function find_pmu(name)
  local pmu = perf_events.open_pmu(name, sys)
  local type = tonumber(pmu.read 'type')
  local retprobe = tonumber((pmu.read 'format/retprobe' or ''):match '^config:(%d+)$')
  local shift = tonumber((pmu.read 'format/ref_ctr_offset' or ''):match '^config:(%d+)%-')
  return type and retprobe and { type = type, retprobe = retprobe, semaphore_shift = shift }
end

local function has_tracefs_file(name)
  for _, dir in ipairs { '/sys/kernel/tracing/', '/sys/kernel/debug/tracing/' } do
    if sys.stat(dir .. name .. '_events') then return true end
  end
  return false
end

--- Fails unless the kernel has exactly one function of this name. If it has several, the one that it would probe
--- depends on its version.
local function check_kernel_function(what, name, module)
  local text = sys.read '/proc/kallsyms'
  if not text then return end
  local wanted_tail = module and '^\t%[' .. module:gsub('%p', '%%%0') .. '%]' or '^[\t\n]'
  local found, at = 0, 1
  while true do
    local from, to = text:find(' ' .. name, at, true)
    if not from then break end
    if text:find('^[tTwW]', from - 1) and text:find(wanted_tail, to + 1) then found = found + 1 end
    at = to + 1
  end
  if found > 1 then failure.raise("%s: the kernel has %d functions '%s'", what, found, name) end
  if found == 1 then return end
  local names = {}
  for known in text:gmatch ' [tTwW] ([^\t\n]+)' do
    names[#names + 1] = known
  end
  failure.raise("%s: no function '%s' in %s%s", what, name,
    module and ("the kernel's module '%s'"):format(module) or 'the kernel', nearest.hint(name, names))
end

--- Splits func+off. The offset is decimal or 0x...
local function split_offset(name)
  local func, offset = name:match '^(.+)%+(0x%x+)$'
  if not func then func, offset = name:match '^(.+)%+(%d+)$' end
  return func or name, tonumber(offset or 0)
end

--- Converts arguments separated by commas or blanks to the kernel's syntax, separated by blanks.
local function blank_separated(args)
  local depth = 0
  return (args:gsub('.', function(char)
    depth = depth + (char == '(' and 1 or char == ')' and -1 or 0)
    return char == ',' and depth == 0 and ' ' or nil
  end):gsub('%s+', ' '):gsub('^ ', ''):gsub(' $', ''))
end

--- The location of a probe.
---@class ProbePlace
---@field name string prefix of the event's name in tracefs
---@field symbol string function or path, for the PMU
---@field offset number for the PMU
---@field semaphore number file offset, 0: none
---@field text string for tracefs
---@field args string for tracefs

local function kernel_places(what, parsed, args, returns)
  local func, offset = split_offset(parsed.name)
  local module, name = func:match '^([^:]+):(.+)$'
  if returns and offset > 0 then
    failure.usage('%s: a return probe takes no offset: use kretprobe:%s', what, func)
  end
  check_kernel_function(what, name or func, module)
  local text = offset > 0 and ('%s+%d'):format(func, offset) or func
  return { { name = name or func, symbol = func, offset = offset, semaphore = 0, text = text, args = args } }
end

--- Returns the path of a binary. A path or a library of a process with another root, such as in a container, is the
--- one that the process sees.
local function find_binary(opt, word)
  local here = sys.stat '/proc/self/ns/mnt'
  for _, pid in ipairs(opt.pids and not opt.input and processes.pids(opt.pids) or {}) do
    local there = sys.stat(('/proc/%d/ns/mnt'):format(pid))
    if here and there and there.inode ~= here.inode then
      local maps = sys.read(('/proc/%d/maps'):format(pid)) or ''
      local path = word:find '^/' and word or maps:match(('(/[^\n]*/%s)\n'):format((word:gsub('%p', '%%%0'))))
      path = path and ('/proc/%d/root%s'):format(pid, path)
      if path and sys.stat(path) then return usdt.find_binary(path) end
    end
  end
  return usdt.find_binary(word)
end

local function user_places(opt, what, parsed, args, returns)
  local err = ffi.new 'struct error'
  local path = find_binary(opt, parsed.path)
  local file = C.elf_file_open(path, err)
  if file == nil then failure.raise('%s: %s', what, ffi.string(err.text)) end
  ffi.gc(file, C.elf_file_free)
  if returns then go_program.refuse(what, parsed.name, path, file) end
  local offset = tonumber(parsed.name:match '^0x%x+$')
  if not offset then
    local func, inside = split_offset(parsed.name)
    local out = ffi.new 'uint64_t[1]'
    local code = C.elf_file_function(file, func, inside, out, err)
    if code < 0 then failure.raise('%s: %s', what, ffi.string(err.text)) end
    if returns and inside > 0 then
      failure.usage('%s: a return probe takes no offset: use uretprobe:%s', what, func)
    end
    offset = tonumber(out[0])
  elseif offset >= sys.stat(path).size then
    failure.usage('%s: %s has only %d bytes', what, path, sys.stat(path).size)
  end
  local text = ('%s:0x%x'):format(path, offset)
  return { { name = parsed.name, symbol = path, offset = offset, semaphore = 0, text = text, args = args } }
end

local function usdt_places(opt, what, parsed, formats, warn)
  local places, warned = {}, {}
  local provider, name = parsed.name:match '^([^:]+):(.+)$'
  local wanted = { provider = provider, name = name or parsed.name }
  for i, site in ipairs(usdt.select(find_binary(opt, parsed.path), wanted)) do
    local args, skipped = usdt.fetch_args(site, formats)
    for _, line in ipairs(skipped) do
      if warn and not warned[line] then warn(('%s: %s: skipped'):format(what, line)) end
      warned[line] = true
    end
    places[i] = {
      name = site.provider .. '_' .. site.name,
      symbol = site.path,
      offset = site.offset,
      semaphore = site.semaphore ~= 0 and site.semaphore_offset or 0,
      text = usdt.place(site),
      args = args,
    }
  end
  return places
end

--- Returns the request for a probe on the PMU.
local function pmu_request(pmu, kind, place)
  local config = kind.returns and bit.lshift(1ULL, pmu.retprobe) or 0ULL
  if place.semaphore > 0 then
    config = config + bit.lshift(ffi.cast('uint64_t', place.semaphore), pmu.semaphore_shift)
  end
  local record = RECORDS[kind.returns]
  return {
    type = pmu.type,
    config = config,
    config1_text = place.symbol,
    config2 = place.offset,
    list = record.list,
    print_fmt = record.print_fmt,
  }
end

--- Creates a probe in tracefs and returns the request for it.
local function tracefs_request(events, what, kind, place)
  local err, event = ffi.new 'struct error', ffi.new 'char[64]'
  local own = C.session_probes(events.session, err)
  if own == nil then failure.unavailable('%s: %s', what, ffi.string(err.text)) end
  local code = C.probes_add(own, TARGETS[kind.pmu], kind.returns and 1 or 0, place.name, place.text, place.args,
    event, 64, err)
  if code < 0 then failure.raise('%s: %s', what, ffi.string(err.text)) end
  local tp = events:find(ffi.string(C.probes_group(own)), ffi.string(event))
  -- The kernel prints the addresses of a return probe in the opposite order of its own print format.
  local print_fmt = ffi.string(C.tracepoint_print_fmt(tp))
    :gsub('REC%->__probe_func, REC%->__probe_ret_ip', 'REC->__probe_ret_ip, REC->__probe_func')
  return {
    type = perf_events.TYPES.tracepoint,
    config = C.tracepoint_id(tp),
    tracepoint = tp,
    view_key = ffi.string(event),
    print_fmt = print_fmt,
  }
end

--- Returns the requests for a probe selector, one per location.
---@param events table see bindings/select/events.lua
---@param parsed Selector
---@return string name
---@return table[] requests for events:add()
function probes.requests(events, parsed)
  local kind = KINDS[parsed.system]
  local what = parsed.system .. ':' .. parsed.name
  local pmu, in_tracefs = find_pmu(kind.pmu), has_tracefs_file(kind.pmu)
  if not pmu and not in_tracefs then failure.unavailable('%s: %s', what, UNAVAILABLE[kind.pmu]) end
  -- Events of the PMU cannot be inherited. For each child the kernel would read the probe's path from the memory of
  -- the task that forks, and its fork() would fail.
  if events.inherits and not in_tracefs then
    failure.unavailable('%s: without tracefs, probes cannot follow child processes; use --no-inherit', what)
  end
  local args = blank_separated(parsed.args or '')
  local places
  if parsed.system == 'usdt' then
    places = usdt_places(events.opt, what, parsed, args, events.context.warn)
  elseif kind.pmu == 'uprobe' then
    places = user_places(events.opt, what, parsed, args, kind.returns)
  else
    places = kernel_places(what, parsed, args, kind.returns)
  end
  local requests, is_sent = {}, events.opt.push ~= nil
  for _, attr in ipairs(parsed.attrs) do is_sent = is_sent or attr.name == 'push' end
  if events.inherits or is_sent and in_tracefs then pmu = nil end
  for i, place in ipairs(places) do
    local by_pmu = pmu and place.args == '' and place.semaphore < MAX_SEMAPHORE
      and (place.semaphore == 0 or pmu.semaphore_shift)
    local request = by_pmu and pmu_request(pmu, kind, place) or tracefs_request(events, what, kind, place)
    request.system = parsed.system
    requests[i] = request
  end
  return what, requests
end

return probes
