-- SPDX-License-Identifier: GPL-2.0-only
--- session.bpf: a script's own BPF programs, their maps, and their records as events of the stream.
local ffi = require 'ffi'
local attach = require 'bindings.bpf.attach'
local bpf_map = require 'bindings.bpf.map'
local btf = require 'bindings.bpf.btf'
local failure = require 'bindings.base.failure'
local nearest = require 'bindings.base.nearest'
local Object = require 'bindings.bpf.object'
local source = require 'bindings.bpf.source'
local sys = require 'bindings.base.sys'
local views = require 'bindings.view.views'

local C = ffi.C
local bpf = {}

local SOFTWARE, BPF_OUTPUT = 1, 10 -- perf_event_attr.type and config
local RINGBUF = 27 -- type of a map

local PARAMETERS = { source = 'string', file = 'string', constants = 'table', name = 'string' }

--- What session.bpf takes.
---@class BpfParameters
---@field source? string C, compiled by clang
---@field file? string or a file of C, or an object file; relative to the script
---@field constants? table<string, any> values of `const volatile` variables
---@field name? string what messages call it

--- A script's BPF object.
---@class Bpf
---@field owner Instance
---@field object BpfObject
local Bpf = {}
Bpf.__index = Bpf

local function check(params)
  if type(params) ~= 'table' then failure.raise('session.bpf takes a table, not a %s', type(params)) end
  for name, value in pairs(params) do
    local expected = PARAMETERS[name]
    if not expected then
      failure.raise("session.bpf: unknown parameter '%s'%s", tostring(name),
        nearest.hint(tostring(name), nearest.keys(PARAMETERS)))
    elseif type(value) ~= expected then
      failure.raise('session.bpf: %s is a %s, not a %s', name, type(value), expected)
    end
  end
  if (params.source == nil) == (params.file == nil) then
    failure.raise 'session.bpf: either source or file is wanted'
  end
end

--- Line of a script at which a text in it begins; 1 where it is not found.
local function line_of(script, wanted)
  local all = sys.read(script) or ''
  local at = all:find(wanted, 1, true)
  local _, newlines = (at and all:sub(1, at - 1) or ''):gsub('\n', '')
  return newlines + 1
end

--- Opens what the parameters name.
local function open(params, script)
  local folder = script:match '^(.*)/[^/]*$' or '.'
  local place = { name = script:match '[^/]*$', folder = folder, first = 1, include = folder }
  local name, text = params.name or place.name, params.source
  if text then
    place.first = line_of(script, text)
  else
    local path = params.file:sub(1, 1) == '/' and params.file or folder .. '/' .. params.file
    local message
    text, message = sys.read(path)
    if not text then failure.raise('session.bpf: %s', message) end
    name = params.name or params.file
    if not path:match '%.c$' then return Object.open(name, text) end
    place.name, place.include = params.file, path:match '^(.*)/'
  end
  return Object.open(name, source.compile(place, text), { text = text, first = place.first })
end

--- Maps of records have no values for the kernel: what the source gives as their type is that of a
--- record. Returns those types by map.
local function take_record_types(object)
  local types, lib = {}, object.lib
  for name, map in pairs(object.maps) do
    local kind = lib.bpf_map__type(map)
    if bpf_map.is_ring(kind) then
      types[name] = lib.bpf_map__btf_value_type_id(map)
      lib.bpf_map__set_value_size(map, kind == RINGBUF and 0 or 4)
      lib.bpf_map__set_key_size(map, kind == RINGBUF and 0 or 4)
    end
  end
  return types
end

--- Loads a script's programs. Nothing runs before it is attached.
---@param owner Instance
---@param params BpfParameters
---@return Bpf
function bpf.load(owner, params)
  check(params)
  if owner.run.is_recorded then
    failure.usage('%s: its BPF programs run in the live kernel: it cannot read a recording', owner.name)
  end
  local object, run = open(params, owner.script.path), owner.run
  object:set_constants(params.constants or {})
  local self = setmetatable({ owner = owner, object = object, record_types = take_record_types(object) }, Bpf)
  object:load()
  table.insert(run.programs, self) -- it lives as long as the run
  return self
end

--- Attaches a program; without one, all whose SEC() says to what.
---@param program? string
---@param where? table|string see bpf_attach.attach
---@return BpfLink?
function Bpf:attach(program, where)
  if program then return attach.attach(self.object, program, where, self.owner.opt.cpus) end
  for _, name in ipairs(nearest.keys(self.object.programs)) do
    if self.object:section(name):match '/' and not self.object:section(name):match '^iter' then
      attach.attach(self.object, name)
    end
  end
end

--- What an iterator program writes.
---@param program string
---@return string
function Bpf:iterate(program) return attach.iterate(self.object, program) end

--- Frames of a kernel stack.
local function kernel_frames(run, addresses)
  local frames = {}
  for i, address in ipairs(addresses) do
    local symbol = run.services.symbol(address, true)
    local name, plus = (symbol or ''):match '^(.-)%+0x(%x+)$'
    frames[i] = {
      address = address,
      symbol = name,
      plus = tonumber(plus or '0', 16),
      dso = name and '[kernel.kallsyms]' or nil,
      in_kernel = address >= 0x8000000000000000ULL,
    }
  end
  return frames
end

--- A map.
---@param name string
---@return BpfMap
function Bpf:map(name)
  return bpf_map.new(self.object, name, function(addresses) return kernel_frames(self.owner.run, addresses) end)
end

local VARIABLES = { '.bss', '.data' }

--- The value of a global variable.
---@param name string
---@return any
function Bpf:get(name)
  local memory, codec = self.object:variable(name, VARIABLES)
  return codec.read(memory)
end

--- Sets a global variable.
---@param name string
---@param value any
function Bpf:set(name, value)
  local memory, codec = self.object:variable(name, VARIABLES)
  local ok, message = pcall(codec.write, memory, value)
  if not ok then error(('%s: %s'):format(name, message), 2) end
end

--- A print format of all fields, for lines of the event.
local function print_format(list)
  local formats, values = {}, {}
  for _, field in ipairs(list) do
    local is_array = views.has(field, 'ARRAY')
    if is_array and views.has(field, 'STRING') then
      formats[#formats + 1], values[#values + 1] = field.name .. '=%s', 'REC->' .. field.name
    elseif not is_array and field.elem_size <= 8 then
      local signed = views.has(field, 'SIGNED')
      formats[#formats + 1] = ('%s=%%%s%s'):format(field.name, field.size == 8 and 'l' or '', signed and 'd' or 'u')
      values[#values + 1] = 'REC->' .. field.name
    end
  end
  return ('"%s"%s'):format(table.concat(formats, ' '), #values > 0 and ', ' .. table.concat(values, ', ') or '')
end

--- The struct that a ring's records are.
local function record_type(self, name, struct)
  local types = self.object.btf
  local id = struct and types:find(struct:gsub('^struct%s+', ''), btf.KIND.STRUCT) or self.record_types[name]
  if struct and not id then failure.raise("%s: there is no struct '%s'", self.object.name, struct) end
  if not id or id == 0 then
    failure.raise("%s: what are the records of '%s'? The map says it with __type(value, struct ...)", self.object.name,
      name)
  end
  local _, kind = types:resolve(id)
  if kind ~= btf.KIND.STRUCT then failure.raise("%s: records of '%s' are no structs", self.object.name, name) end
  return id
end

--- Offset of a member of so many bytes, -1 where there is none.
local function offset_of(by_name, name, size)
  local field = by_name[name]
  return field and field.size == size and field.offset or -1
end

--- The records of a ring buffer or perf event array as an event, to be a key among the handlers. A
--- ring buffer's record is ordered by its member `__u64 ktime`, and `pid`, `tid` and `cpu` are the event's
--- _pid, _tid and _cpu. A variable MAP_lost of 64 bits says how many did not fit.
---@param name string of the map
---@param struct? string of the records, where the map does not say
---@return Event
function Bpf:events(name, struct)
  local object, lib = self.object, self.object.lib
  local map = object:find('map', name)
  local kind = lib.bpf_map__type(map)
  if not bpf_map.is_ring(kind) then failure.raise("%s: map '%s' holds no records", object.name, name) end
  local list = object.btf:fields(record_type(self, name, struct))
  local request = {
    name = 'bpf-output', type = SOFTWARE, config = BPF_OUTPUT, list = list, print_fmt = print_format(list),
    view_key = ('%s:%s:%s'):format(object.name, name, tostring(object)), system = 'bpf',
  }
  local event = self.owner.set:add('bpf:' .. name, request, nil, 0)
  local tid_at = offset_of(event.fields, 'tid', 4)
  local pid_at = offset_of(event.fields, 'pid', 4)
  local has_lost, lost = pcall(object.variable, object, name .. '_lost', { '.bss' })
  event.request.is_output = 1
  event.request.output = {
    map = lib.bpf_map__fd(map),
    per_cpu = kind == RINGBUF and 0 or 1,
    size = kind == RINGBUF and lib.bpf_map__max_entries(map) or 0, -- as -m says
    time_at = offset_of(event.fields, 'ktime', 8),
    pid_at = pid_at,
    tid_at = tid_at >= 0 and tid_at or pid_at,
    cpu_at = offset_of(event.fields, 'cpu', 4),
    lost = has_lost and ffi.cast('const uint64_t *', lost) or nil,
  }
  return event
end

--- Looks between batches for CPUs that came online, for programs on perf events.
---@param run Run
function bpf.follower(run)
  return { poll = function()
    local cpu = C.session_take_cpu(run.session)
    while cpu >= 0 do
      for _, loaded in ipairs(run.programs) do
        local ok, problem = pcall(attach.follow, loaded.object, cpu)
        if not ok then
          run.out:warn(('%s: CPU #%d came online, but: %s'):format(run.name, cpu, tostring(problem)))
        end
      end
      cpu = C.session_take_cpu(run.session)
    end
  end }
end

return bpf
