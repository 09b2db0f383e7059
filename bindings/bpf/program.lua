-- SPDX-License-Identifier: GPL-2.0-only
--- session.bpf: BPF programs of scripts, their maps, and their records as events of the stream.
local attach = require 'bindings.bpf.attach'
local bpf_map = require 'bindings.bpf.map'
local btf = require 'bindings.bpf.btf'
local check = require 'bindings.base.check'
local facade = require 'bindings.base.facade'
local failure = require 'bindings.base.failure'
local ffi = require 'ffi'
local nearest = require 'bindings.base.nearest'
local Object = require 'bindings.bpf.object'
local perf_events = require 'bindings.view.perf_events'
local public_event = require 'bindings.view.public_event'
local source = require 'bindings.bpf.source'
local sys = require 'bindings.base.sys'
local views = require 'bindings.view.views'

local C = ffi.C
local bpf = {}

local BPF_OUTPUT = perf_events.find 'bpf-output'
local RINGBUF = C.BPF_MAP_TYPE_RINGBUF

--- Describes the programs of a script in one line, for --dry-run.
---@param program Bpf
---@return string
function bpf.describe(program)
  local object, parts = program._object, {}
  for _, name in ipairs(nearest.keys(object.programs)) do
    parts[#parts + 1] = ('%s (%s)'):format(name, object:section(name))
  end
  return ('%s: %s'):format(object.name, table.concat(parts, ', '))
end

local PARAMETERS = { source = 'string', file = 'string', constants = 'table', entries = 'table', name = 'string' }

--- The parameter table of session.bpf, with one of source and file.
---@class BpfParameters
---@field source? string C source, compiled by clang and cached in ~/.cache/profscript
---@field file? string a C or object file, relative to the script
---@field constants? table<string, any> values of `const volatile` variables
---@field entries? table<string, integer> maximum numbers of entries of maps
---@field name? string name in messages

--- A script's BPF object. The types of keys, values, variables and record fields follow BTF: integers are numbers, char
--- arrays are strings, structs are tables, arrays are tables indexed from 0, per-CPU values are tables indexed by CPU.
---
---   local program = session.bpf { source = SOURCE, constants = { limit = 5 } } -- const volatile __u32 limit = 0;
---   program:attach()
---   return { [program:events 'ring'] = function(ev) out:print(ev._time, ev.size) end }
---@class Bpf
---@field package _owner Instance
---@field package _object BpfObject
local Bpf = {}
Bpf.__index = Bpf

local public -- creates the facade of a Bpf

--- Returns the line at which a text starts in a script; 1 if it is not found.
local function line_of(script, text)
  local all = sys.read(script) or ''
  local at = all:find(text, 1, true)
  local _, newlines = (at and all:sub(1, at - 1) or ''):gsub('\n', '')
  return newlines + 1
end

--- Compiles the source if necessary, and opens the object file.
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

--- Returns the types of records by map, which the source declares with __type(value, ...). To the kernel such maps have
--- no values of that type, so this also resets their key and value sizes.
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

--- Loads the programs of a script. They do not run until they are attached.
---@param owner Instance
---@param params BpfParameters
---@return Bpf
function bpf.load(owner, params)
  check.types(params, PARAMETERS, 'session.bpf', 'parameter')
  if (params.source ~= nil) == (params.file ~= nil) then error('session.bpf requires one of source and file', 2) end
  if owner.run.is_recorded then
    failure.usage('%s: BPF programs need live events; --input is not supported', owner.name)
  end
  local object, run = open(params, owner.script.path), owner.run
  object:set_constants(params.constants or {})
  object:set_entries(params.entries or {})
  local self = setmetatable({ _owner = owner, _object = object, _record_types = take_record_types(object) },
    Bpf)
  object:load()
  run:add_program(self)
  return public(self)
end

--- Attaches a program; without a name, all programs whose SEC() names a target.
---
---   program:attach('count', { type = 'software', config = 'page-faults', sample_freq = 50 }) -- on each CPU
---   program:attach('count', 'uprobe:malloc@/lib/x86_64-linux-gnu/libc.so.6')
---@param program? string
---@param where? table|string members of perf_event_attr (and `pid`); or 'sys:name' of a tracepoint,
--- 'raw_tracepoint:NAME', 'kprobe:FUNC', 'kretprobe:FUNC', 'uprobe:FUNC@FILE', 'uretprobe:FUNC@FILE',
--- 'usdt:PROVIDER:NAME@FILE', 'ksyscall:NAME', 'kretsyscall:NAME'; default: the target in SEC()
---@return BpfLink? link nil if called without a name
function Bpf:attach(program, where)
  if program then return attach.public(attach.attach(self._object, program, where, self._owner.opt.cpus)) end
  for _, name in ipairs(nearest.keys(self._object.programs)) do
    if self._object:section(name):match '/' and not self._object:section(name):match '^iter' then
      attach.attach(self._object, name)
    end
  end
end

--- Runs a program (SEC("raw_tp")) once on each online CPU, or those of -C, with interrupts disabled.
---@param program string
function Bpf:run(program) attach.run(self._object, program, self._owner.opt.cpus) end

--- Runs an iterator program (SEC("iter/task")) and returns its output.
---@param program string
---@return string text
function Bpf:iterate(program) return attach.iterate(self._object, program) end

--- Returns the frames of a kernel stack.
local function kernel_frames(run, addresses)
  local frames = {}
  for i, address in ipairs(addresses) do
    local symbol = run.services.symbol(address, true)
    local name, offset = (symbol or ''):match '^(.-)%+0x(%x+)$'
    frames[i] = {
      address = address,
      symbol = name,
      symbol_offset = tonumber(offset or '0', 16),
      dso = name and '[kernel.kallsyms]' or nil,
      in_kernel = address >= 0x8000000000000000ULL,
    }
  end
  return frames
end

--- Opens a map.
---@param name string
---@return BpfMap
function Bpf:map(name)
  return bpf_map.new(self._object, name, function(addresses) return kernel_frames(self._owner.run, addresses) end)
end

local VARIABLES = { '.bss', '.data' }

--- Returns the value of a global variable.
---@param name string
---@return any value
function Bpf:get(name)
  local memory, codec = self._object:variable(name, VARIABLES)
  return codec.read(memory)
end

--- Sets a global variable.
---@param name string
---@param value any
function Bpf:set(name, value)
  local memory, codec = self._object:variable(name, VARIABLES)
  local ok, message = pcall(codec.write, memory, value)
  if not ok then error(('%s: %s'):format(name, message), 2) end
end

--- Returns a print format with all fields.
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

--- Returns the type id of a ring's records.
local function record_type(self, name, struct)
  local types = self._object.btf
  local id = struct and types:find(struct:gsub('^struct%s+', ''), btf.KIND.STRUCT) or self._record_types[name]
  if struct and not id then failure.raise("%s: no struct '%s'", self._object.name, struct) end
  if not id or id == 0 then
    failure.raise("%s: map '%s' does not declare its records; add __type(value, struct ...)", self._object.name, name)
  end
  local _, kind = types:resolve(id)
  if kind ~= btf.KIND.STRUCT then failure.raise("%s: records of map '%s' are not structs", self._object.name, name) end
  return id
end

--- Returns the offset of the member with this name and size, -1 if there is none.
local function offset_of(by_name, name, size)
  local field = by_name[name]
  return field and field.size == size and field.offset or -1
end

--- Returns the records of a ring buffer or perf event array as an event, to be used as the key of a handler. The fields
--- are the members of the struct that the map declares with `__type(value, struct ...)`. Members of nested structs are
--- named `outer_inner`. Bit fields are omitted.
---
--- - Records of a ring buffer are ordered by their member `__u64 ktime`, from bpf_ktime_get_ns(); without it, by the
---   time at which they are read.
--- - 32-bit members `pid`, `tid` and `cpu` become `ev._pid`, `ev._tid` and `ev._cpu`.
--- - If there is a 64-bit global variable MAP_lost, in which the program counts records that it could not write, these
---   are reported as lost. The kernel counts the lost records of perf event arrays.
---@param name string the map's name
---@param struct? string the struct of the records, if the map does not declare it
---@return Event
function Bpf:events(name, struct)
  local object, lib = self._object, self._object.lib
  local map = object:find('map', name)
  local kind = lib.bpf_map__type(map)
  if not bpf_map.is_ring(kind) then
    failure.raise("%s: map '%s' is neither a ring buffer nor a perf event array", object.name, name)
  end
  local list = object.btf:fields(record_type(self, name, struct))
  local request = {
    name = BPF_OUTPUT.name, type = BPF_OUTPUT.type, config = BPF_OUTPUT.config,
    list = list, print_fmt = print_format(list),
    view_key = ('%s:%s:%s'):format(object.name, name, tostring(object)), system = 'bpf',
  }
  local event = self._owner.set:add('bpf:' .. name, request)
  local tid_at = offset_of(event.fields, 'tid', 4)
  local pid_at = offset_of(event.fields, 'pid', 4)
  local has_lost, lost = pcall(object.variable, object, name .. '_lost', { '.bss' })
  event.request.is_output = 1
  event.request.output = {
    map = lib.bpf_map__fd(map),
    per_cpu = kind == RINGBUF and 0 or 1,
    size = kind == RINGBUF and lib.bpf_map__max_entries(map) or 0, -- 0: as set by -m
    time_at = offset_of(event.fields, 'ktime', 8),
    pid_at = pid_at,
    tid_at = tid_at >= 0 and tid_at or pid_at,
    cpu_at = offset_of(event.fields, 'cpu', 4),
    lost = has_lost and ffi.cast('const uint64_t *', lost) or nil,
  }
  return public_event.of(event)
end

public = facade.class('bpf', Bpf, { 'attach', 'events', 'get', 'iterate', 'map', 'run', 'set' })

--- Returns a follower that attaches the programs on perf events to CPUs that came online.
---@param run Run
function bpf.follower(run)
  return { poll = function()
    local cpu = C.session_take_cpu(run.session)
    while cpu >= 0 do
      for _, loaded in ipairs(run.programs) do
        local ok, problem = pcall(attach.follow, loaded._object, cpu)
        if not ok then
          run.out:warn(('%s: CPU #%d came online: %s'):format(run.name, cpu, tostring(problem)))
        end
      end
      cpu = C.session_take_cpu(run.session)
    end
  end }
end

return bpf
