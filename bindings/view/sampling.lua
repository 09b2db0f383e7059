-- SPDX-License-Identifier: GPL-2.0-only
--- How events are sampled: how often, what each sample holds, what is left out. A script says so with
--- session.event, a user with attributes of an event and with -F, --period and --exclude-*.
local bit = require 'bit'
local ffi = require 'ffi'
local failure = require 'bindings.base.failure'
local nearest = require 'bindings.base.nearest'
local sys = require 'bindings.base.sys'

local C = ffi.C
local sampling = {}

--- What session.event may ask for besides what each sample has.
local PARTS = {
  read = C.SAMPLE_READ, -- the counts of session.count, for its take()
  regs_user = C.SAMPLE_REGS_USER,
  regs_intr = C.SAMPLE_REGS_INTR,
  weight = C.SAMPLE_WEIGHT,
  data_src = C.SAMPLE_DATA_SRC,
  phys_addr = C.SAMPLE_PHYS_ADDR,
}

--- Parts that are one number: `ev._weight`.
sampling.NUMBERS = { weight = PARTS.weight, data_src = PARTS.data_src, phys_addr = PARTS.phys_addr }

--- Parameters of session.event, and the Lua type of each.
local PARAMETERS = {
  [1] = 'string', freq = 'number', period = 'number', wakeup = 'number', precise = 'number', sample = 'table',
  stack = 'boolean', resolve = 'boolean', exclude_idle = 'boolean', exclude_user = 'boolean',
  exclude_kernel = 'boolean', exclude_host = 'boolean', exclude_guest = 'boolean',
}

--- An event as a script asks for it.
---@class EventParameters
---@field [1] string as -e takes it
---@field freq? number samples a second
---@field period? number sample every so many
---@field wakeup? number tell of every so many at once, not when a ring is filled
---@field precise? number perf_event_attr.precise_ip
---@field sample? string[] parts of PARTS
---@field stack? boolean record stacks, as -g does
---@field resolve? boolean session.address is asked about addresses
---@field exclude_idle? boolean and so on: as perf_event_attr has them

--- Refuses what session.event does not know.
---@param params EventParameters
function sampling.check(params)
  if type(params) ~= 'table' then failure.raise('session.event takes a table, not a %s', type(params)) end
  if not params[1] then failure.raise "session.event: the event is missing: session.event { 'cpu-clock', ... }" end
  for name, value in pairs(params) do
    local expected = PARAMETERS[name]
    if not expected then
      failure.raise("session.event: unknown parameter '%s'%s", tostring(name),
        nearest.hint(tostring(name), nearest.keys(PARAMETERS)))
    elseif type(value) ~= expected then
      failure.raise('session.event: %s is a %s, not a %s', tostring(name), type(value), expected)
    end
  end
  if params.freq and params.period then failure.raise 'session.event: either period or freq can be given' end
  for _, part in ipairs(params.sample or {}) do
    if not PARTS[part] then
      failure.raise("session.event: unknown sample '%s'%s", tostring(part),
        nearest.hint(tostring(part), nearest.keys(PARTS)))
    end
  end
end

--- How often an event is sampled: its attributes say it, else who asks for it, else the options for those
--- of perf's own events, else what its kind has by default.
---@param full string the event's name
---@param request PerfEvent
---@param attrs table
---@param params EventParameters
---@param opt table parsed options
---@return integer? period, integer? freq
function sampling.rate(full, request, attrs, params, opt)
  if attrs.period and attrs.freq then failure.usage('%s: either period or freq can be given', full) end
  local most = tonumber(sys.read '/proc/sys/kernel/perf_event_max_sample_rate') or math.huge
  local common = request.kind and opt or {}
  for _, given in ipairs { attrs, params, common } do
    if given.period then return given.period, nil end
    if given.freq then
      if given.freq > most then
        failure.usage('%s: freq=%d is above kernel.perf_event_max_sample_rate, which is %d', full, given.freq, most)
      end
      return nil, given.freq
    end
  end
  return request.period, request.freq and math.min(request.freq, most)
end

--- Refuses -F and --period where no event can be sampled so.
---@param name string of the profiler
---@param opt table parsed options
---@param list Event[]
function sampling.check_options(name, opt, list)
  if opt.freq and opt.period then failure.usage('%s: either -F or --period can be given', name) end
  local given = opt.freq and '--freq' or opt.period and '--period'
  if not given then return end
  for _, event in ipairs(list) do
    local counted = event.request.counted == 1
    if event.kind and not counted or counted and opt.period then return end
  end
  failure.usage('%s: %s is for hardware, clock and memory events, and there are none', name, given)
end

--- The bits of the parts that a script asks for.
---@param params EventParameters
---@return integer
function sampling.bits(params)
  local bits = 0
  for _, part in ipairs(params.sample or {}) do
    bits = bit.bor(bits, PARTS[part])
  end
  return bits
end

--- The fields that the first words of a sample are.
---@param sample_type integer
---@return Field[]
function sampling.fields(sample_type)
  local list = {}
  for _, word in ipairs { { 'ip', C.SAMPLE_IP }, { 'addr', C.SAMPLE_ADDR } } do
    local offset = C.sample_offset(sample_type, word[2])
    if offset >= 0 then
      list[#list + 1] = {
        name = '_' .. word[1], type = 'u64', offset = offset, size = 8, elem_size = 8, count = 1, flags = 0,
      }
    end
  end
  return list
end

--- The names and bits of the registers of a mask, in the kernel's order.
---@param mask ffi.cdata*
---@return string[]
local function register_names(mask)
  local names = {}
  for i = 0, 63 do
    if bit.band(bit.rshift(mask, i), 1ULL) ~= 0 then
      local name = C.sample_register(i)
      names[#names + 1] = name ~= nil and ffi.string(name) or ('R#%d'):format(i)
    end
  end
  return names
end

--- The registers of a sample whose event asked for regs_user or regs_intr.
---@param session ffi.cdata*
---@param ev ffi.cdata*
---@param part? 'regs_user'|'regs_intr'
---@return { name: string, value: ffi.cdata* }[]? nil: the kernel took none, as for a kernel thread
function sampling.registers(session, ev, part)
  local e, which, size = ffi.cast('struct event *', ev), PARTS[part or 'regs_user'], ffi.new 'uint32_t[1]'
  local words = C.session_sample_part(session, e, which, size)
  if words == nil or words[0] == 0 then return nil end
  local list = {}
  for i, name in ipairs(register_names(C.session_sample_registers(session, e.class, which))) do
    list[i] = { name = name, value = words[i] + 0ULL }
  end
  return list
end

--- How often an event of perf is sampled.
---@param event Event
---@return string
function sampling.describe(event)
  local attr = event.request.attr
  local period = tonumber(attr.sample_period)
  if attr.freq == 1 then return ('sampled %d times a second'):format(period) end
  if period == 1 then return 'every event' end
  return ('every %dth event'):format(period)
end

return sampling
