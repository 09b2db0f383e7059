-- SPDX-License-Identifier: GPL-2.0-only
--- perf events: software and hardware events by the names that `perf list` prints, and PMU events by
--- terms, as in `cpu/event=0x3c,umask=0x1/`. The PMU descriptions in sysfs are read through functions
--- that the caller passes in.
local bit = require 'bit'
local nearest = require 'bindings.base.nearest'

local perf_events = {}

--- The kernel's descriptions of its PMUs, one folder per PMU.
perf_events.DEVICES = '/sys/bus/event_source/devices'

-- perf_event_attr.type
local SOFTWARE, HARDWARE, CACHE, RAW, BREAKPOINT = 0x1, 0x0, 0x3, 0x4, 0x5
local FREQUENCY = 4000 -- Hz, the default of perf record
local KINDS = { [HARDWARE] = 'hardware', [SOFTWARE] = 'software', [CACHE] = 'hw-cache', [RAW] = 'raw' }

---@class PerfEvent
---@field name string
---@field kind 'software'|'hardware'|'hw-cache'|'raw'|'pmu'|'breakpoint'
---@field type integer perf_event_attr.type
---@field config integer|ffi.cdata*
---@field config1? ffi.cdata*
---@field config2? ffi.cdata*|integer
---@field bp_type? integer accesses that trigger a breakpoint
---@field period? integer the default: sample every Nth event
---@field freq? integer the default: samples per second

local by_name, names = {}, {}

local function add(name, type, config)
  -- Rare events are sampled every time, and so are events that the kernel cannot sample by frequency.
  local counted = type == SOFTWARE and config > 1
  by_name[name] = {
    name = name,
    kind = KINDS[type],
    type = type,
    config = config,
    period = counted and 1 or nil,
    freq = not counted and FREQUENCY or nil,
  }
  names[#names + 1] = name
end

-- In the order of config, from 0. Commas separate events, spaces separate names of the same event.
for type, list in pairs {
  [SOFTWARE] = [[cpu-clock, task-clock, page-faults faults, context-switches cs, cpu-migrations migrations,
    minor-faults, major-faults, alignment-faults, emulation-faults, dummy, bpf-output, cgroup-switches]],
  [HARDWARE] = [[cpu-cycles cycles, instructions, cache-references, cache-misses, branch-instructions branches,
    branch-misses, bus-cycles, stalled-cycles-frontend idle-cycles-frontend,
    stalled-cycles-backend idle-cycles-backend, ref-cycles]],
} do
  local config = 0
  for same in list:gmatch '[^,]+' do
    for name in same:gmatch '%S+' do
      add(name, type, config)
    end
    config = config + 1
  end
end
for cache, title in ipairs { 'L1-dcache', 'L1-icache', 'LLC', 'dTLB', 'iTLB', 'branch', 'node' } do
  for op, verb in ipairs { 'load', 'store', 'prefetch' } do
    local config = cache - 1 + (op - 1) * 0x100
    add(('%s-%s%s'):format(title, verb, verb == 'prefetch' and 'es' or 's'), CACHE, config)
    add(('%s-%s-misses'):format(title, verb), CACHE, config + 0x10000)
  end
end
table.sort(names)

--- The names of the software and hardware events, sorted. Some events have two names.
perf_events.names = names

local ACCESS = { r = 1, w = 2, x = 4 } -- HW_BREAKPOINT_R, _W, _X
local LENGTHS = { ['1'] = 1, ['2'] = 2, ['4'] = 4, ['8'] = 8 }

--- Parses a hardware breakpoint in perf's form: "mem:0x401000/4:rw". The default length is 4 bytes (8 for
--- execution), the default access is rw.
---@param name string
---@return PerfEvent? event
---@return string? message
function perf_events.breakpoint(name)
  local address, rest = name:match '^mem:(%w+)(.*)$'
  local value = perf_events.number(address or '')
  if not value then return nil, ("invalid address '%s'"):format(address or name:sub(5)) end
  local length, access = rest:match '^/(%w+)(.*)$'
  access = (access or rest):match '^:(%a+)$' or (access or rest) == '' and 'rw'
  local bits = 0
  for letter in (access or '?'):gmatch '.' do
    if not ACCESS[letter] then
      return nil, ("invalid access '%s' of a breakpoint (expected r, w, rw or x)"):format(access or rest)
    end
    bits = bit.bor(bits, ACCESS[letter])
  end
  if length and not LENGTHS[length] then
    return nil, ("invalid length '%s' of a breakpoint (expected 1, 2, 4 or 8)"):format(length)
  end
  if bits == ACCESS.r then bits = ACCESS.r + ACCESS.w end -- x86 has no read-only breakpoints
  return {
    name = name,
    kind = 'breakpoint',
    type = BREAKPOINT,
    config = 0,
    config1 = value,
    config2 = bits == ACCESS.x and 8 or LENGTHS[length or '4'],
    bp_type = bits,
    period = 1,
  }
end

--- Finds a software, hardware, breakpoint or raw event (`r1a8`: config in hexadecimal) by name.
---@param name string
---@return PerfEvent?
function perf_events.find(name)
  if name:find '^mem:' then return (perf_events.breakpoint(name)) end
  local raw = name:match '^r(%x+)$'
  if raw and #raw <= 16 then
    return { name = name, kind = 'raw', type = RAW, config = perf_events.number('0x' .. raw), freq = FREQUENCY }
  end
  return by_name[name]
end

--- Parses an unsigned number of up to 64 bits, decimal or hexadecimal.
---@param text string
---@return ffi.cdata*? number nil if the text is not one
function perf_events.number(text)
  local digits, base = text:match '^0[xX](%x+)$', 16
  if not digits then
    digits, base = text:match '^%d+$', 10
  end
  if not digits or #digits > (base == 16 and 16 or 19) then return nil end
  local value = 0ULL
  for digit in digits:gmatch '.' do
    value = value * base + tonumber(digit, 16)
  end
  return value
end

--- Stores a value in the bits that a format names ("config:0-7,32-35"), lowest bits first.
---@param attr table<string, ffi.cdata*> config, config1, config2
---@param format string
---@param value ffi.cdata*
---@return string? message
local function put_bits(attr, format, value)
  local word, ranges = format:match '^(config[123]?):([%d,-]+)'
  if not word then return ("has an unknown format: '%s'"):format(format) end
  local rest, width = value, 0
  for range in ranges:gmatch '[^,]+' do
    local first, last = range:match '^(%d+)%-?(%d*)$'
    first = tonumber(first) or 64
    last = tonumber(last) or first
    if first > last or last > 63 then return ("has an unknown format: '%s'"):format(format) end
    local bits = last - first + 1
    local mask = bits == 64 and bit.bnot(0ULL) or bit.lshift(1ULL, bits) - 1
    attr[word] = bit.bor(attr[word] or 0ULL, bit.lshift(bit.band(rest, mask), first))
    rest = bits == 64 and 0ULL or bit.rshift(rest, bits)
    width = width + bits
  end
  if rest ~= 0 then return ('has only %d bits; the value is too large'):format(width) end
end

--- One PMU of this machine.
---@class Pmu
---@field name string
---@field read fun(path: string): string? content of a file in its folder, trimmed
---@field list fun(folder: string): string[] the files in "format" or "events", sorted

--- Opens a PMU.
---@param name string
---@param fs { readdir: function, read: function } as bindings/base/sys.lua has them
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

--- Returns the PMUs whose events are given by terms. Tracepoints, probes, breakpoints and software events
--- have names of their own.
---@return table<string, boolean>
function perf_events.pmus(fs)
  local found = {}
  for _, name in ipairs(fs.readdir(perf_events.DEVICES) or {}) do
    local has_terms = fs.readdir(('%s/%s/format'):format(perf_events.DEVICES, name))
    found[name] = has_terms and name ~= 'kprobe' and name ~= 'uprobe' or nil
  end
  return found
end

--- Returns the events that a PMU names, such as "tsc" of msr.
---@param pmu Pmu
---@return string[]
function perf_events.named(pmu)
  local found = {}
  for _, name in ipairs(pmu.list 'events') do
    -- "x.scale" and "x.unit" describe how to print counts of x.
    if not name:find('.', 1, true) then found[#found + 1] = name end
  end
  return found
end

local WORDS = { config = true, config1 = true, config2 = true, period = true, freq = true, name = true }

--- Returns the valid names of terms, for messages and completion.
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

--- Adds one term to the event. Returns a message if the term is invalid.
local function apply_term(event, pmu, name, text, depth)
  if name == 'name' and text then
    event.name = text
    return
  end
  local format = pmu.read('format/' .. name)
  local value = perf_events.number(text or '1')
  if text and (WORDS[name] or format) and not value then return ("invalid number '%s'"):format(text) end
  if WORDS[name] then
    if not text then return ("term '%s' needs a value"):format(name) end
    if name == 'period' or name == 'freq' then
      if value == 0 then return ("'%s' must be more than 0"):format(name) end
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
    if not name then return ("bad term '%s'"):format(term), column end
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
