-- SPDX-License-Identifier: GPL-2.0-only
--- Sampling parameters: the sampling rate, the contents of each sample, and excluded modes. Scripts set them with
--- session.event, users with event attributes, -F, --period and --exclude-*.
local bit = require 'bit'
local failure = require 'bindings.base.failure'
local ffi = require 'ffi'
local nearest = require 'bindings.base.nearest'
local sys = require 'bindings.base.sys'

local C = ffi.C
local sampling = {}

--- Optional parts of a sample that session.event can request.
local PARTS = {
  read = C.PERF_SAMPLE_READ, -- counts for session.count():take()
  regs_user = C.PERF_SAMPLE_REGS_USER,
  regs_intr = C.PERF_SAMPLE_REGS_INTR,
  weight = C.PERF_SAMPLE_WEIGHT,
  data_src = C.PERF_SAMPLE_DATA_SRC,
  phys_addr = C.PERF_SAMPLE_PHYS_ADDR,
  cgroup = C.PERF_SAMPLE_CGROUP, -- the kernel's kernfs id, which is an inode of cgroup2
}

--- Parts that are single numbers, such as `ev._weight`.
sampling.NUMBERS = { weight = PARTS.weight, data_src = PARTS.data_src, phys_addr = PARTS.phys_addr,
  cgroup = PARTS.cgroup }

--- The bits of the parts that samples of all kinds of events can have.
sampling.OF_ALL = PARTS.cgroup

--- Parameters of session.event and their Lua types.
local PARAMETERS = {
  [1] = 'string', freq = 'number', period = 'number', wakeup = 'number', precise = 'number', sample = 'table',
  stack = 'boolean', resolve = 'boolean', exclude_idle = 'boolean', exclude_user = 'boolean',
  exclude_kernel = 'boolean', exclude_host = 'boolean', exclude_guest = 'boolean',
}

--- The parameter table of session.event.
---@class EventParameters
---@field [1] string the event, as -e takes it
---@field freq? number samples per second; default: -F or --period
---@field period? number sample every Nth event, or every N ns of a clock
---@field exclude_user? boolean exclude user mode; the user's --exclude options also apply
---@field exclude_kernel? boolean exclude the kernel
---@field exclude_host? boolean exclude the host of virtual machines
---@field exclude_guest? boolean exclude guests
---@field exclude_idle? boolean exclude the idle task
---@field sample? string[] additional parts of a sample: 'weight', 'data_src', 'phys_addr' and 'cgroup' for `ev._weight`
--- etc.; 'regs_user' and 'regs_intr' for session.registers(); 'read' for session.count()
---@field stack? boolean record stacks, as -g does
---@field resolve? boolean|'data' load symbols for session.address(); 'data': also those of variables, and the names of
--- memory without a file
---@field wakeup? number wake up after every N samples instead of waiting for the watermark
---@field precise? number perf_event_attr.precise_ip

local function refuse(format, ...) error(select('#', ...) > 0 and format:format(...) or format) end

--- Raises an error for invalid parameters of session.event.
---@param params EventParameters
function sampling.check(params)
  if type(params) ~= 'table' then refuse('session.event takes a table, not a %s', type(params)) end
  if not params[1] then refuse "session.event: no event name (expected e.g. session.event { 'cpu-clock' })" end
  for name, value in pairs(params) do
    local expected = PARAMETERS[name]
    if not expected then
      local hint = nearest.hint(tostring(name), nearest.keys(PARAMETERS))
      if hint == '' then hint = '; there are ' .. table.concat(nearest.keys(PARAMETERS), ', ') end
      refuse("session.event: unknown parameter '%s'%s", tostring(name), hint)
    elseif name == 'resolve' and value ~= 'data' and type(value) ~= expected then
      refuse("session.event: resolve is true, false or 'data', not %s",
        type(value) == 'string' and ("'%s'"):format(value) or 'a ' .. type(value))
    elseif type(value) ~= expected and name ~= 'resolve' then
      refuse('session.event: %s is a %s, not a %s', tostring(name), type(value), expected)
    end
  end
  for _, name in ipairs { 'freq', 'period' } do
    local value = params[name]
    if value and (value < 1 or value % 1 ~= 0) then
      refuse('session.event: %s is a whole number of at least 1, not %s', name, tostring(value))
    end
  end
  if params.freq and params.period then refuse 'session.event: period and freq are mutually exclusive' end
  for _, part in ipairs(params.sample or {}) do
    if not PARTS[part] then
      local hint = nearest.hint(tostring(part), nearest.keys(PARTS))
      if hint == '' then hint = '; there are ' .. table.concat(nearest.keys(PARTS), ', ') end
      refuse("session.event: unknown part of a sample '%s'%s", tostring(part), hint)
    end
  end
end

--- Returns the sampling period or frequency of an event. In order of precedence: the event's attributes, the script's
--- parameters, the options (perf events only), the default for the kind of event.
---@param full string the event's name
---@param request PerfEvent
---@param attrs table
---@param params EventParameters
---@param opt table parsed options
---@return integer? period, integer? freq
function sampling.rate(full, request, attrs, params, opt)
  if attrs.period and attrs.freq then failure.usage('%s: period and freq are mutually exclusive', full) end
  local max = tonumber((sys.read '/proc/sys/kernel/perf_event_max_sample_rate')) or math.huge
  local common = request.kind and opt or {}
  for _, given in ipairs { attrs, params, common } do
    if given.period then return given.period, nil end
    if given.freq then
      if given.freq > max then
        failure.usage('%s: freq=%d exceeds kernel.perf_event_max_sample_rate (%d)', full, given.freq, max)
      end
      return nil, given.freq
    end
  end
  return request.period, request.freq and math.min(request.freq, max)
end

--- Raises an error if -F or --period is given but applies to none of the events.
---@param name string the profiler's name
---@param opt table parsed options
---@param list Event[]
function sampling.check_options(name, opt, list)
  if opt.freq and opt.period then failure.usage('%s: -F and --period are mutually exclusive', name) end
  local given = opt.freq and '--freq' or opt.period and '--period'
  if not given then return end
  for _, event in ipairs(list) do
    local counted = event.request.counted == 1
    if event.kind and not counted or counted and opt.period then return end
  end
  failure.usage('%s: %s applies to hardware, clock and memory events only; none are selected', name, given)
end

--- Returns the SAMPLE_* bits of the requested parts.
---@param params EventParameters
---@return integer
function sampling.bits(params)
  local bits = 0
  for _, part in ipairs(params.sample or {}) do
    bits = bit.bor(bits, PARTS[part])
  end
  return bits
end

--- Returns the fields _ip and _addr, if the sample has them.
---@param sample_type integer perf_event_attr.sample_type
---@return Field[]
function sampling.fields(sample_type)
  local list = {}
  for _, word in ipairs { { 'ip', C.PERF_SAMPLE_IP }, { 'addr', C.PERF_SAMPLE_ADDR } } do
    local offset = C.sample_offset(sample_type, word[2])
    if offset >= 0 then
      list[#list + 1] = {
        name = '_' .. word[1], type = 'u64', offset = offset, size = 8, elem_size = 8, count = 1, flags = 0,
      }
    end
  end
  return list
end

--- Returns the names of the registers in a mask, in the kernel's order.
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

--- Returns the registers of a sample whose event requested regs_user or regs_intr.
---@param session ffi.cdata*
---@param e ffi.cdata* struct event *
---@param part? 'regs_user'|'regs_intr'
---@return { name: string, value: ffi.cdata* }[]? registers nil if the sample has none, as for kernel threads
function sampling.registers(session, e, part)
  local flag, size = PARTS[part or 'regs_user'], ffi.new 'uint32_t[1]'
  local words = C.session_sample_part(session, e, flag, size)
  if words == nil or words[0] == 0 then return nil end
  local list = {}
  for i, name in ipairs(register_names(C.session_sample_registers(session, e.class, flag))) do
    if i >= size[0] then break end
    list[i] = { name = name, value = words[i] + 0ULL }
  end
  return list
end

--- Formats the sampling rate of an event for output.
---@param event Event
---@return string
function sampling.describe(event)
  local attr = event.request.attr
  local period = tonumber(attr.sample_period)
  if attr.freq == 1 then return ('%d samples per second'):format(period) end
  if period == 1 then return 'every event' end
  return ('every %dth event'):format(period)
end

return sampling
