-- SPDX-License-Identifier: GPL-2.0-only
--- perf events: software and hardware events by the names that `perf list` prints, and PMU events by terms, as in
--- `cpu/event=0x3c,umask=0x1/`. The caller passes the functions that read sysfs.
local bit = require 'bit'
local ffi = require 'ffi'
local nearest = require 'bindings.base.nearest'
local units = require 'bindings.base.units'

local C = ffi.C
local perf_events = {}

--- One directory per PMU.
perf_events.DEVICES = '/sys/bus/event_source/devices'

--- perf_event_attr.type
perf_events.TYPES = {
  hardware = C.PERF_TYPE_HARDWARE, software = C.PERF_TYPE_SOFTWARE, tracepoint = C.PERF_TYPE_TRACEPOINT,
  ['hw-cache'] = C.PERF_TYPE_HW_CACHE, raw = C.PERF_TYPE_RAW, breakpoint = C.PERF_TYPE_BREAKPOINT,
}

local TYPES = perf_events.TYPES
local FREQUENCY = 4000 -- Hz, the default of perf record

---@class PerfEvent
---@field name string
---@field kind 'software'|'hardware'|'hw-cache'|'raw'|'pmu'|'breakpoint'
---@field type integer perf_event_attr.type
---@field config integer|ffi.cdata*
---@field config1? ffi.cdata*
---@field config2? ffi.cdata*|integer
---@field bp_type? integer accesses that trigger a breakpoint
---@field period? integer default: sample every Nth event
---@field freq? integer default: samples per second

local by_name, names = {}, {}

local function add(name, kind, config)
  -- Sample each event of those that are rare, or that the kernel cannot sample by frequency.
  local counted = kind == 'software' and config > 1
  by_name[name] = {
    name = name,
    kind = kind,
    type = TYPES[kind],
    config = config,
    period = counted and 1 or nil,
    freq = not counted and FREQUENCY or nil,
  }
  names[#names + 1] = name
end

-- In the order of config, from 0. Commas separate events, spaces separate aliases.
for kind, list in pairs {
  software = [[cpu-clock, task-clock, page-faults faults, context-switches cs, cpu-migrations migrations,
    minor-faults, major-faults, alignment-faults, emulation-faults, dummy, bpf-output, cgroup-switches]],
  hardware = [[cpu-cycles cycles, instructions, cache-references, cache-misses, branch-instructions branches,
    branch-misses, bus-cycles, stalled-cycles-frontend idle-cycles-frontend,
    stalled-cycles-backend idle-cycles-backend, ref-cycles]],
} do
  local config = 0
  for same in list:gmatch '[^,]+' do
    for name in same:gmatch '%S+' do
      add(name, kind, config)
    end
    config = config + 1
  end
end
for cache, title in ipairs { 'L1-dcache', 'L1-icache', 'LLC', 'dTLB', 'iTLB', 'branch', 'node' } do
  for op, verb in ipairs { 'load', 'store', 'prefetch' } do
    local config = cache - 1 + (op - 1) * 0x100
    add(('%s-%s%s'):format(title, verb, verb == 'prefetch' and 'es' or 's'), 'hw-cache', config)
    add(('%s-%s-misses'):format(title, verb), 'hw-cache', config + 0x10000)
  end
end
table.sort(names)

--- The names of the software and hardware events, including aliases, sorted.
perf_events.names = names

local ACCESS = { r = 1, w = 2, x = 4 } -- HW_BREAKPOINT_R, _W, _X
local LENGTHS = { ['1'] = 1, ['2'] = 2, ['4'] = 4, ['8'] = 8 }

--- Parses a hardware breakpoint in perf's syntax: "mem:0x401000/4:rw". The default length is 4 bytes (8 for
--- execution). The default access is rw.
---@param name string
---@return PerfEvent? event
---@return string? message
function perf_events.breakpoint(name)
  local address, rest = name:match '^mem:(%w+)(.*)$'
  local value = units.unsigned(address or '')
  if not value then return nil, ("invalid address '%s'"):format(address or name:sub(5)) end
  local length, access = rest:match '^/(%w+)(.*)$'
  access = (access or rest):match '^:(%a+)$' or (access or rest) == '' and 'rw'
  local bits = 0
  for letter in (access or '?'):gmatch '.' do
    if not ACCESS[letter] then
      return nil, ("invalid breakpoint access '%s' (expected r, w, rw or x)"):format(access or rest)
    end
    bits = bit.bor(bits, ACCESS[letter])
  end
  if length and not LENGTHS[length] then
    return nil, ("invalid breakpoint length '%s' (expected 1, 2, 4 or 8)"):format(length)
  end
  if bits == ACCESS.r then bits = ACCESS.r + ACCESS.w end -- x86 has no read-only breakpoints
  local size = bits == ACCESS.x and 8 or LENGTHS[length or '4']
  local past = tonumber(value % size)
  if ffi.arch == 'x64' and bits ~= ACCESS.x and past > 0 then
    return nil, ("misaligned address '%s' of a breakpoint of %d bytes (the aligned one is 0x%s)"):format(address, size,
      bit.tohex(value - past):gsub('^0+', ''))
  end
  return {
    name = name,
    kind = 'breakpoint',
    type = TYPES.breakpoint,
    config = 0,
    config1 = value,
    config2 = size,
    bp_type = bits,
    period = 1,
  }
end

--- Finds a software, hardware, breakpoint or raw event (`r1a8`: hexadecimal config) by name.
---@param name string
---@return PerfEvent?
function perf_events.find(name)
  if name:find '^mem:' then return (perf_events.breakpoint(name)) end
  local raw = name:match '^r(%x+)$'
  if raw and #raw <= 16 then
    return { name = name, kind = 'raw', type = TYPES.raw, config = units.unsigned('0x' .. raw), freq = FREQUENCY }
  end
  return by_name[name]
end

--- Stores a value in the bits of a format ("config:0-7,32-35"), lowest bits first.
---@param attr table<string, ffi.cdata*> config, config1, config2
---@param format string
---@param value ffi.cdata*
---@return string? message
local function put_bits(attr, format, value)
  local word, ranges = format:match '^(config[123]?):([%d,-]+)'
  if not word then return ("has an unsupported format '%s'"):format(format) end
  local rest, width = value, 0
  for range in ranges:gmatch '[^,]+' do
    local first, last = range:match '^(%d+)%-?(%d*)$'
    first = tonumber(first) or 64
    last = tonumber(last) or first
    if first > last or last > 63 then return ("has an unsupported format '%s'"):format(format) end
    local bits = last - first + 1
    local mask = bits == 64 and bit.bnot(0ULL) or bit.lshift(1ULL, bits) - 1
    attr[word] = bit.bor(attr[word] or 0ULL, bit.lshift(bit.band(rest, mask), first))
    rest = bits == 64 and 0ULL or bit.rshift(rest, bits)
    width = width + bits
  end
  if rest ~= 0 then return ('has only %d bits: value too large'):format(width) end
end

--- One PMU of this machine.
---@class Pmu
---@field name string
---@field read fun(path: string): string? contents of a file in its directory, trimmed
---@field list fun(folder: string): string[] the files in "format" or "events", sorted

--- Returns an accessor of one PMU.
---@param name string
---@param fs { readdir: function, read: function } usually bindings/base/sys.lua
---@return Pmu
function perf_events.open_pmu(name, fs)
  local base = ('%s/%s/'):format(perf_events.DEVICES, name)
  return {
    name = name,
    read = function(path)
      local text = fs.read(base .. path)
      return text and text:match '^%s*(.-)%s*$'
    end,
    list = function(folder)
      local found = fs.readdir(base .. folder) or {}
      table.sort(found)
      return found
    end,
  }
end

--- Returns the PMUs whose events are specified by terms. Probes have a syntax of their own.
---@return table<string, boolean>
function perf_events.pmus(fs)
  local found = {}
  for _, name in ipairs(fs.readdir(perf_events.DEVICES) or {}) do
    local has_terms = fs.readdir(('%s/%s/format'):format(perf_events.DEVICES, name))
    found[name] = has_terms and name ~= 'kprobe' and name ~= 'uprobe' or nil
  end
  return found
end

--- Returns the named events of a PMU, such as "tsc" of msr.
---@param pmu Pmu
---@return string[]
function perf_events.named(pmu)
  local found = {}
  for _, name in ipairs(pmu.list 'events') do
    -- "x.scale" and "x.unit" are not events: they describe how to print counts of x.
    if not name:find('.', 1, true) then found[#found + 1] = name end
  end
  return found
end

local WORDS = { config = true, config1 = true, config2 = true, period = true, freq = true, name = true }

--- Returns the valid term names, for messages and completion.
---@param pmu Pmu
---@return string[]
function perf_events.term_names(pmu)
  local all = {}
  for word in pairs(WORDS) do
    all[word] = true
  end
  for _, folder in ipairs { pmu.list 'format', perf_events.named(pmu) } do
    for _, name in ipairs(folder) do
      all[name] = true
    end
  end
  return nearest.keys(all)
end

local apply_terms

--- Adds a term to the event. Returns a message if the term is invalid.
local function apply_term(event, pmu, name, text, depth)
  if name == 'name' and text then
    event.name = text
    return
  end
  local format = pmu.read('format/' .. name)
  local value = units.unsigned(text or '1')
  if text and (WORDS[name] or format) and not value then return ("invalid number '%s'"):format(text) end
  if WORDS[name] then
    if not text then return ("term '%s' needs a value"):format(name) end
    if name == 'period' or name == 'freq' then
      if value == 0 then return ("'%s' must be greater than 0"):format(name) end
      event.period, event.freq = nil, nil
      event[name] = tonumber(value)
    else
      event[name] = value
    end
    return
  end
  if format then
    local message = put_bits(event, format, value)
    return message and ("term '%s' %s"):format(name, message)
  end
  local alias = not text and depth == 0 and pmu.read('events/' .. name)
  if alias then return apply_terms(event, pmu, alias, depth + 1) end
  local hint = depth == 0 and nearest.hint(name, perf_events.term_names(pmu)) or ''
  return ("PMU %s has no term '%s'%s"):format(pmu.name, name, hint)
end

--- Adds all terms of a text to the event. Returns a message and the column of the term if one is invalid.
function apply_terms(event, pmu, terms, depth)
  for column, term in terms:gmatch '()([^,]+)' do
    local lead, name, value = term:match '^(%s*)([%w_-]+)%s*=%s*(.-)%s*$'
    if not name then
      lead, name = term:match '^(%s*)([%w_-]+)%s*$'
    end
    if not name then return ("invalid term '%s'"):format(term), column end
    local message = apply_term(event, pmu, name, value, depth)
    if message then return message, column + #lead end
  end
end

--- Parses the terms of a PMU event.
---@param pmu Pmu
---@param terms string
---@return PerfEvent? event
---@return string? message
---@return integer? column of the invalid term
function perf_events.parse(pmu, terms)
  local event = {
    name = ('%s/%s/'):format(pmu.name, terms),
    kind = 'pmu',
    type = tonumber(pmu.read 'type'),
    config = 0ULL,
    freq = FREQUENCY,
  }
  if not event.type then return nil, ('PMU %s has no type'):format(pmu.name), 1 end
  local message, column = apply_terms(event, pmu, terms, 0)
  if message then return nil, message, column end
  return event
end

return perf_events
