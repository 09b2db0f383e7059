-- SPDX-License-Identifier: GPL-2.0-only
--- Generated programs and their maps: loads them through libbpf, attaches the programs to tracepoints and reads the
--- maps. The kernel frees them when they are closed or collected, and nothing uses them any more, also if this process
--- is killed.
local ffi = require 'ffi'
local asm = require 'bpf.gen.asm'
local cpu_list = require 'bindings.base.cpu_list'
local failure = require 'bindings.base.failure'
local libbpf = require 'bindings.bpf.libbpf'
local libc = require 'bindings.base.libc'
local sys = require 'bindings.base.sys'
local text = require 'bindings.base.text'

local C = ffi.C
local program = {}

--- enum bpf_prog_type
program.TYPES = { kprobe = 2, tracepoint = 5, raw_tracepoint = 17, tracing = 26, syscall = 31 }
-- enum bpf_map_type
local HASH, ARRAY, PROG_ARRAY, PERF_EVENT_ARRAY, PERCPU_ARRAY, LRU_HASH, RINGBUF = 1, 2, 3, 4, 6, 9, 27
local MMAPABLE = 1024 -- BPF_F_MMAPABLE
local SLEEPABLE = 16 -- BPF_F_SLEEPABLE, required for programs of type syscall
local ATTACH_RAW_TP = 23 -- enum bpf_attach_type: a tracepoint with typed arguments

local KPROBE_MULTI = 42 -- enum bpf_attach_type: many functions, since Linux 5.18
local RETURN = 1 -- BPF_F_KPROBE_MULTI_RETURN

local LOG_SIZE = 256 * 1024

ffi.cdef [[
struct bpf_link_create_opts {
  size_t sz; uint32_t flags; const void *iter_info; uint32_t iter_info_len, target_btf_id;
  struct { uint32_t flags, cnt; const char **syms; const unsigned long *addrs; const uint64_t *cookies; } kprobe_multi;
};
struct bpf_btf_info { const void *btf; uint32_t btf_size, id; char *name; uint32_t name_len, kernel_btf; };
]]

--- Owns a file descriptor.
---@class Descriptor
---@field fd integer
---@field maps? Descriptor[] the maps that a program uses
---@field name? string of a program
---@field bytes? ffi.cdata* uint8_t *: the contents of a mapped array
---@field size? integer of the contents
---@field call? SystemCall see probe.load()
---@field place? integer see SystemCalls:chain()
---@field functions? ManyFunctions that a program of type kprobe is attached to
local Descriptor = {}
Descriptor.__index = Descriptor

local function close(box) libc.close(box[0]) end

local function own(fd) return setmetatable({ fd = fd, _box = ffi.gc(ffi.new('int[1]', fd), close) }, Descriptor) end

function Descriptor:close()
  if not self._box then return end
  close(ffi.gc(self._box, nil))
  self._box = nil
end

local function refuse_open(what, code)
  if code == libc.EPERM or code == libc.EACCES then
    asm.refuse('%s: %s (needs root or CAP_BPF and CAP_PERFMON)', what, sys.strerror(code))
  end
  asm.refuse('%s: %s', what, sys.strerror(code))
end

--- Returns libbpf, or refuses.
local function open_library()
  local lib, missing = libbpf.open()
  return lib or asm.refuse('%s', missing)
end

local is_dry = false
local listings = {} -- of a dry run

--- Returns whether programs are only generated: nothing is created in the kernel.
---@return boolean
function program.is_dry() return is_dry end

--- Makes all that follows a dry run. Maps have no descriptors then, and programs are listed instead of loaded.
function program.only_generate() is_dry = true end

--- Calls body, of which programs are loaded even in a dry run: it measures something.
---@param body fun(): any
---@return any result
function program.in_any_case(body)
  local was_dry = is_dry
  is_dry = false
  local ok, result = pcall(body)
  is_dry = was_dry
  if not ok then error(result, 0) end
  return result
end

--- Returns the programs that were generated, in their order.
---@return { name: string, code: Asm }[]
function program.listings() return listings end

local function no_descriptor() return setmetatable({ fd = -1 }, Descriptor) end

local MOST_NAME = 15 -- bytes of a name in the kernel

--- Returns the name of a tracepoint in names of programs.
---@param tracepoint string without its system
---@return string
function program.short(tracepoint)
  return (tracepoint:gsub('^sched_', ''):gsub('^sys_', ''):gsub('^wakeup_new$', 'new'):gsub('^process_', ''))
end

--- Returns the name of a program or a map in the kernel, which says whose it is: `bpftool prog` shows it.
---@param name string what it does, or has
---@return string
local function named(name) return ('ps_' .. name):gsub('[^%w_]', '_'):sub(1, MOST_NAME) end

--- Creates an array map.
---@param value_size integer bytes
---@param entries integer
---@param contents? ffi.cdata*|string the first value
---@param name string see named()
---@return Descriptor
function program.array(value_size, entries, contents, name)
  if is_dry then return no_descriptor() end
  local lib = open_library()
  local fd = lib.bpf_map_create(ARRAY, named(name), 4, value_size, entries, nil)
  if fd < 0 then refuse_open('cannot create a BPF map', -fd) end
  local map = own(fd)
  if contents then
    local code = lib.bpf_map_update_elem(fd, ffi.new 'uint32_t[1]', contents, 0)
    if code ~= 0 then refuse_open('cannot fill a BPF map', -code) end
  end
  return map
end

local function create(name, kind, key_size, value_size, entries, flags)
  if is_dry then return no_descriptor() end
  local lib = open_library()
  local opts = ffi.new('struct bpf_map_create_opts', { map_flags = flags })
  opts.sz = ffi.sizeof(opts)
  local fd = lib.bpf_map_create(kind, named(name), key_size, value_size, entries, opts)
  if fd < 0 then refuse_open('cannot create a BPF map', -fd) end
  return own(fd)
end

--- Maps an array that processes can map: this process then reads and writes it without system calls.
---@param map Descriptor
---@param size integer bytes of all values
function program.map(map, size)
  if is_dry then
    map.bytes, map.size = ffi.new('uint8_t[?]', size), size
    return
  end
  local memory = libc.mmap(nil, size, libc.PROT_READ + libc.PROT_WRITE, libc.MAP_SHARED, map.fd, 0)
  if ffi.cast('intptr_t', memory) == -1 then refuse_open('cannot map a BPF array', ffi.errno()) end
  map.bytes = ffi.gc(ffi.cast('uint8_t *', memory), function(at) libc.munmap(at, size) end)
  map.size = size
end

--- Creates a mapped array of one value, filled with zeros.
---@param size integer bytes
---@param name string see named()
---@return Descriptor map
function program.mapped(size, name)
  local map = create(name, ARRAY, 4, size, 1, MMAPABLE)
  program.map(map, size)
  return map
end

--- Creates an array that processes can map.
---@param value_size integer bytes
---@param entries integer
---@param name string see named()
---@return Descriptor map
function program.shared_array(value_size, entries, name)
  return create(name, ARRAY, 4, value_size, entries, MMAPABLE)
end

--- Creates an array of perf events, one for each CPU, to which programs write samples.
---@param nr_cpus integer
---@param name string see named()
---@return Descriptor map
function program.perf_events(nr_cpus, name) return create(name, PERF_EVENT_ARRAY, 4, 4, nr_cpus, 0) end

--- Creates an array of programs, to which other programs can jump. It is emptied when it is closed.
---@param entries integer
---@param name string see named()
---@return Descriptor map
function program.programs(entries, name) return create(name, PROG_ARRAY, 4, 4, entries, 0) end

--- Puts a program into an array of programs.
---@param map Descriptor
---@param at integer
---@param loaded? Descriptor nil: none
function program.put(map, at, loaded)
  if is_dry then return end
  local lib, key = open_library(), ffi.new('uint32_t[1]', at)
  local code = loaded and lib.bpf_map_update_elem(map.fd, key, ffi.new('uint32_t[1]', loaded.fd), 0)
    or lib.bpf_map_delete_elem(map.fd, key)
  if code ~= 0 and code ~= -libc.ENOENT then refuse_open('cannot fill a BPF map', -code) end
end

--- Sets a value in a hash.
---@param map Descriptor
---@param key ffi.cdata*
---@param value ffi.cdata*
function program.set(map, key, value)
  if is_dry then return end
  local code = open_library().bpf_map_update_elem(map.fd, key, value, 0)
  if code ~= 0 then refuse_open('cannot fill a BPF map', -code) end
end

--- Removes an entry of a hash, if it is there.
---@param map Descriptor
---@param key ffi.cdata*
function program.remove(map, key)
  if not is_dry then open_library().bpf_map_delete_elem(map.fd, key) end
end

--- Creates an array of values for each CPU: the memory of a program.
---@param value_size integer bytes
---@param entries? integer
---@param name string see named()
---@return Descriptor map
function program.memory(value_size, entries, name) return create(name, PERCPU_ARRAY, 4, value_size, entries or 1, 0) end

--- Creates the smallest ring buffer.
---@param name string see named()
---@return Descriptor map
function program.bell(name) return create(name, RINGBUF, 0, 0, 4096, 0) end

--- Creates a hash.
---@param key_size integer bytes
---@param value_size integer bytes
---@param entries integer
---@param name string see named()
---@return Descriptor map
function program.hash(key_size, value_size, entries, name)
  local map = create(name, HASH, key_size, value_size, entries, 0)
  map.key_size, map.value_size, map.entries = key_size, value_size, entries
  return map
end

--- Creates a hash that makes room by removing the entries that were not used for long.
---@param key_size integer bytes
---@param value_size integer bytes
---@param entries integer
---@param name string see named()
---@return Descriptor map
function program.recent(key_size, value_size, entries, name)
  return create(name, LRU_HASH, key_size, value_size, entries, 0)
end

local BATCH = 8192 -- entries read by one system call
local SLACK = 8

--- Removes all entries of a hash that no program writes to, and calls each(key, value) for them, with pointers to their
--- bytes.
---@param map Descriptor
---@param each fun(key: ffi.cdata*, value: ffi.cdata*)
function program.take(map, each)
  local lib, max = open_library(), math.min(map.entries, BATCH)
  map.keys = map.keys or ffi.new('uint8_t[?]', max * map.key_size + SLACK)
  map.values = map.values or ffi.new('uint8_t[?]', max * map.value_size + SLACK)
  local place, n, code = ffi.new 'uint64_t[1]', ffi.new 'uint32_t[1]', nil
  repeat
    n[0] = max
    code = -lib.bpf_map_lookup_and_delete_batch(map.fd, code and place or nil, place, map.keys, map.values, n, nil)
    if code ~= 0 and code ~= libc.ENOENT then failure.raise('reading a BPF map: %s', sys.strerror(code)) end
    for i = 0, n[0] - 1 do each(map.keys + i * map.key_size, map.values + i * map.value_size) end
  until code == libc.ENOENT
end

--- Calls each(value) for the entries of a hash, with a pointer to their bytes.
---@param map Descriptor
---@param each fun(value: ffi.cdata*)
function program.each(map, each)
  local lib = open_library()
  local key, value = ffi.new('uint8_t[?]', map.key_size), ffi.new('uint8_t[?]', map.value_size)
  local code = lib.bpf_map_get_next_key(map.fd, nil, key)
  while code == 0 do
    if lib.bpf_map_lookup_elem(map.fd, key, value) == 0 then each(value) end
    code = lib.bpf_map_get_next_key(map.fd, key, key)
  end
end

--- Functions that one program is attached to.
---@class ManyFunctions
---@field names string[]
---@field returns boolean at their end

local function attach_to_many(loaded)
  local names, opts = loaded.functions.names, ffi.new 'struct bpf_link_create_opts'
  local list = ffi.new('const char *[?]', #names, names)
  opts.sz = ffi.sizeof(opts)
  opts.kprobe_multi = { flags = loaded.functions.returns and RETURN or 0, cnt = #names, syms = list }
  return open_library().bpf_link_create(loaded.fd, 0, KPROBE_MULTI, opts)
end

--- Attaches a program of type tracing, or to many functions. It is detached when the link is closed or collected.
---@param loaded Descriptor
---@return Descriptor link
function program.attach(loaded)
  local fd
  if loaded.functions then
    fd = attach_to_many(loaded)
  else
    fd = open_library().bpf_raw_tracepoint_open(nil, loaded.fd)
  end
  if fd < 0 then refuse_open('cannot attach a BPF program', -fd) end
  local link = own(fd)
  link.program = loaded
  return link
end

local ON_CPU = 1 -- BPF_F_TEST_RUN_ON_CPU

--- Runs a program of type raw_tracepoint once on each CPU that is online, with interrupts disabled.
---@param loaded Descriptor
---@param cpus? string list; nil: all
function program.run_on_cpus(loaded, cpus)
  if is_dry then return end
  local lib, opts = open_library(), ffi.new 'struct bpf_test_run_opts'
  opts.sz, opts.flags = ffi.sizeof(opts), ON_CPU
  for _, cpu in ipairs(cpu_list.numbers(cpus or sys.read '/sys/devices/system/cpu/online')) do
    opts.cpu = cpu
    local code = -lib.bpf_prog_test_run_opts(loaded.fd, opts)
    if code ~= 0 and code ~= libc.ENXIO then -- ENXIO: the CPU has gone offline
      failure.raise('cannot run a BPF program on CPU %d: %s', cpu, sys.strerror(code))
    end
  end
end

--- Returns the verifier's last message, which tells what it rejects.
local function reason(log)
  local last
  for line in ffi.string(log):gmatch '[^\n]+' do
    if not line:match '^processed %d+ insns' and not line:match '^verification time' then last = line end
  end
  return last and text.safe(last)
end

---@class ProgramSpec
---@field type string key of TYPES
---@field name string what it does, see named()
---@field title? string in listings; default: its name
---@field tracepoint? integer BTF id of the tracepoint's type, or of a function, for programs of type tracing
---@field attach? integer enum bpf_attach_type of these; default: a tracepoint with typed arguments
---@field module? string whose types have the id `tracepoint`; nil: the kernel's
---@field functions? ManyFunctions for programs of type kprobe

--- Returns the types of a module as the kernel has them.
local function module_types(lib, module)
  local id, info, name = ffi.new 'uint32_t[1]', ffi.new 'struct bpf_btf_info', ffi.new 'char[64]'
  while lib.bpf_btf_get_next_id(id[0], id) == 0 do
    local types = own(lib.bpf_btf_get_fd_by_id(id[0]))
    ffi.fill(info, ffi.sizeof(info))
    info.name, info.name_len = name, ffi.sizeof(name)
    local is_read = lib.bpf_obj_get_info_by_fd(types.fd, info, ffi.new('uint32_t[1]', ffi.sizeof(info))) == 0
    if is_read and info.kernel_btf ~= 0 and ffi.string(name) == module then return types end
    types:close()
  end
  asm.refuse('the kernel has no types of the module %s', module)
end

--- Loads a program. Refuses if the kernel does.
---@param code Asm
---@param spec ProgramSpec
---@return Descriptor
function program.load(code, spec)
  local lib = open_library()
  local instructions, n = code:finish()
  if is_dry then
    listings[#listings + 1] = { name = spec.title or spec.name, code = code }
    local listed = no_descriptor()
    listed.name = named(spec.name)
    return listed
  end
  local opts = ffi.new('struct bpf_prog_load_opts', {
    prog_flags = spec.type == 'syscall' and SLEEPABLE or 0,
    expected_attach_type = spec.functions and KPROBE_MULTI or spec.tracepoint and (spec.attach or ATTACH_RAW_TP) or 0,
    attach_btf_id = spec.tracepoint or 0,
  })
  opts.sz = ffi.sizeof(opts)
  local of_module = spec.module and module_types(lib, spec.module)
  if of_module then opts.attach_btf_obj_fd = of_module.fd end
  local name = named(spec.name)
  local function try() return lib.bpf_prog_load(program.TYPES[spec.type], name, 'GPL', instructions, n, opts) end
  local fd = try()
  if fd < 0 then
    local errno, log = -fd, ffi.new('char[?]', LOG_SIZE)
    opts.log_level, opts.log_size, opts.log_buf = 1, LOG_SIZE, log
    fd = try()
    C.bpf_log_take() -- libbpf has printed the same
    if fd < 0 then
      local why = reason(log)
      if errno == libc.EPERM or not why then refuse_open('the kernel rejects the BPF program', errno) end
      asm.refuse('the kernel rejects the BPF program: %s', why)
    end
  end
  if of_module then of_module:close() end
  local loaded = own(fd)
  loaded.maps, loaded.name, loaded.functions = code.used_maps, name, spec.functions
  return loaded
end

return program
