-- SPDX-License-Identifier: GPL-2.0-only
--- Attaches programs of a loaded BPF object to the target in their SEC() or to a target given by the script.
local cpu_list = require 'bindings.base.cpu_list'
local facade = require 'bindings.base.facade'
local failure = require 'bindings.base.failure'
local ffi = require 'ffi'
local go_program = require 'bindings.base.go_program'
local libbpf = require 'bindings.bpf.libbpf'
local libc = require 'bindings.base.libc'
local nearest = require 'bindings.base.nearest'
local perf_events = require 'bindings.view.perf_events'
local sys = require 'bindings.base.sys'

local C = ffi.C
local bpf_attach = {}

local TYPES = perf_events.TYPES
local ENOTSUPP = 524 -- internal to the kernel, but bpf(2) returns it

--- Members of perf_event_attr that scripts can set.
local MEMBERS = {
  'type', 'config', 'config1', 'config2', 'sample_period', 'sample_freq', 'disabled', 'inherit', 'pinned',
  'exclusive', 'exclude_user', 'exclude_kernel', 'exclude_hv', 'exclude_idle', 'freq', 'precise_ip', 'exclude_host',
  'exclude_guest', 'bp_type', 'bp_addr', 'bp_len',
}
local NAMES = {}
for _, member in ipairs(MEMBERS) do
  NAMES[member] = true
end

--- Builds a struct perf_event_attr from a table with the names of perf_event_open(2). Type and config can be perf's
--- names, as in { type = 'software', config = 'page-faults', sample_freq = 50 }.
---@param given table<string|integer, any>
---@return ffi.cdata* attr
---@return string? message
function bpf_attach.attr(given)
  local attr = ffi.new('struct perf_event_attr', { size = ffi.sizeof 'struct perf_event_attr' })
  local event = type(given.config) == 'string' and perf_events.find(given.config)
  if type(given.config) == 'string' and not event then
    return attr, ("no such event '%s'%s"):format(given.config, nearest.hint(given.config, perf_events.names))
  end
  for name, value in pairs(given) do
    if name == 'type' and type(value) == 'string' then
      local types = nearest.keys(TYPES)
      if not TYPES[value] then return attr, ("unknown type '%s'%s"):format(value, nearest.hint(value, types)) end
      value = TYPES[value]
    elseif name == 'config' and event then
      value = event.config
    end
    if name ~= 'pid' then
      if not NAMES[name] then
        return attr, ("perf_event_attr has no '%s'%s"):format(tostring(name), nearest.hint(tostring(name), MEMBERS))
      end
      if value == true then value = 1 end
      if type(value) ~= 'number' and type(value) ~= 'cdata' then
        return attr, ('%s is a %s, not a number'):format(name, type(value))
      end
      attr[name] = value
    end
  end
  if event and not given.type then attr.type = event.type end
  if event and attr.type ~= event.type then
    return attr, ("'%s' is not an event of type %s"):format(given.config, tostring(given.type))
  end
  if given.sample_freq then attr.freq = 1 end
  if not given.sample_freq and not given.sample_period then
    attr.sample_period = event and event.period or 0
    if attr.sample_period == 0 then return attr, 'missing sample_period or sample_freq' end
  end
  return attr
end

local function contains(list, wanted)
  for _, number in ipairs(list) do
    if number == wanted then return true end
  end
  return false
end

--- Fails with the reason why a program could not be attached.
---@param code integer a positive errno
local function fail_attach(object, program, where, code)
  local fail, hint = failure.unavailable, ''
  if code == libc.EPERM or code == libc.EACCES then
    hint = ' (needs root or CAP_BPF and CAP_PERFMON; the kernel may be configured to forbid it)'
  elseif code == libc.EOPNOTSUPP or code == ENOTSUPP then
    hint = ' (not supported by this kernel)'
  else
    fail = failure.raise -- may be a misspelled name
    if code == libc.ENOENT then hint = ' (not available in this kernel)' end
  end
  local log = libbpf.last_message()
  fail("%s: cannot attach program '%s' to %s: %s%s%s", object.name, program, where,
    code == ENOTSUPP and 'not supported' or sys.strerror(code), hint, log and '; ' .. log or '')
end

--- An attached program. It stays attached until `link:detach()` or the end of the run.
---@class BpfLink
---@field package _lib ffi.namespace* libbpf
---@field package _links table<integer, ffi.cdata*> struct bpf_link *; for perf events on CPUs, by CPU
---@field package _follow? fun(cpu: integer) attaches the program on a CPU that came online
local Link = {}
Link.__index = Link

--- Detaches the program.
function Link:detach()
  for _, link in pairs(self._links) do
    self._lib.bpf_link__destroy(link)
  end
  self._links, self._follow = {}, nil
end

--- Returns what scripts get of a link.
---@type fun(link: BpfLink): any
bpf_attach.public = facade.class('link', Link, { 'detach' })

local function attach_perf(object, name, given, cpus)
  local attr, message = bpf_attach.attr(given)
  if message then failure.raise('%s: attach %s: %s', object.name, name, message) end
  local lib, program = object.lib, object:find('program', name)
  local links = {}
  local link = setmetatable({ _lib = lib, _links = links }, Link)
  local target = ('perf event %s'):format(tostring(given.config))
  local function open(cpu)
    local fd = C.bpf_perf_open(attr, given.pid or -1, cpu)
    if fd < 0 then return -fd end
    local one = lib.bpf_program__attach_perf_event(program, fd)
    if one == nil then
      local code = ffi.errno()
      libc.close(fd)
      return code
    end
    links[cpu] = one
    return 0
  end
  local wanted = given.pid and { -1 } or cpu_list.numbers(cpus or sys.read '/sys/devices/system/cpu/online')
  for _, cpu in ipairs(wanted) do
    local code = open(cpu)
    if code ~= 0 then
      link:detach()
      fail_attach(object, name, target, code)
    end
  end
  if given.pid then return link end
  function link._follow(cpu)
    if cpus and not contains(wanted, cpu) then return end
    if links[cpu] then lib.bpf_link__destroy(links[cpu]) end
    links[cpu] = nil
    local code = open(cpu)
    if code ~= 0 and code ~= libc.ENODEV then fail_attach(object, name, target, code) end -- ENODEV: offline again
  end
  object.perf_links[#object.perf_links + 1] = link
  return link
end

--- Attaches the programs on perf events to a CPU that came online. The kernel removes the perf events of a CPU when it
--- goes offline.
---@param object BpfObject
---@param cpu integer
function bpf_attach.follow(object, cpu)
  for _, link in ipairs(object.perf_links) do
    if link._follow then link._follow(cpu) end
  end
end

--- Attach functions for targets "KIND:REST": function(lib, program, rest) returns a link, or nil with errno set.
local BY_KIND = {
  raw_tracepoint = function(lib, program, rest) return lib.bpf_program__attach_raw_tracepoint(program, rest) end,
  kprobe = function(lib, program, rest) return lib.bpf_program__attach_kprobe(program, false, rest) end,
  kretprobe = function(lib, program, rest) return lib.bpf_program__attach_kprobe(program, true, rest) end,
}
for kind, is_return in pairs { uprobe = false, uretprobe = true } do
  BY_KIND[kind] = function(lib, program, rest)
    local func, file = rest:match '^([^@]+)@(.+)$'
    if not func then
      ffi.errno(libc.EINVAL)
      return nil
    end
    local opts = ffi.new('struct bpf_uprobe_opts', { retprobe = is_return, func_name = func })
    opts.sz = ffi.sizeof(opts)
    return lib.bpf_program__attach_uprobe_opts(program, -1, file, 0, opts)
  end
end

for kind, is_return in pairs { ksyscall = false, kretsyscall = true } do
  BY_KIND[kind] = function(lib, program, rest)
    local opts = ffi.new('struct bpf_ksyscall_opts', { retprobe = is_return })
    opts.sz = ffi.sizeof(opts)
    return lib.bpf_program__attach_ksyscall(program, rest, opts)
  end
end
function BY_KIND.usdt(lib, program, rest)
  local provider, name, file = rest:match '^([^:@]+):([^@]+)@(.+)$'
  if not provider then
    ffi.errno(libc.EINVAL)
    return nil
  end
  return lib.bpf_program__attach_usdt(program, -1, file, provider, name, nil)
end

--- Fails if a target is a return probe on a Go program.
---@param target string "uretprobe:FUNC@FILE", or a section's name: "uretprobe/FILE:FUNC"
local function check_return_probe(object, target)
  local func, file = target:match '^uretprobe:([^@]+)@(.+)$'
  if not func then
    file, func = target:match '^u[%w.]*/(.+):([^:]+)$'
    if not target:find '^uretprobe' and not target:find '^uprobe%.session' then return end
  end
  local path = ffi.new 'char[4096]'
  if not file or C.binary_find(file, path, ffi.sizeof(path), nil) < 0 then return end -- libbpf reports it
  go_program.refuse(('%s: attach %s'):format(object.name, target), func, ffi.string(path))
end

local function attach_named(object, name, where)
  local lib, program = object.lib, object:find('program', name)
  local kind, rest = where:match '^([%w_-]+):(.+)$'
  if not kind then
    failure.raise("%s: attach %s: invalid target '%s' (expected KIND:NAME; KIND is a tracepoint system or one of %s)",
      object.name, name, where, table.concat(nearest.keys(BY_KIND), ', '))
  end
  check_return_probe(object, where)
  local link
  if BY_KIND[kind] then
    link = BY_KIND[kind](lib, program, rest)
  else
    link = lib.bpf_program__attach_tracepoint(program, kind, rest)
  end
  if link == nil then fail_attach(object, name, where, ffi.errno()) end
  return setmetatable({ _lib = lib, _links = { link } }, Link)
end

--- Attaches a program.
---@param object BpfObject loaded
---@param name string the program's name
---@param where? table|string attributes of a perf event, "sys:name", or "KIND:NAME" with a key of BY_KIND;
--- nil: as in SEC()
---@param cpus? string CPU list for a perf event; nil: all online CPUs
---@return BpfLink
function bpf_attach.attach(object, name, where, cpus)
  local lib, program = object.lib, object:find('program', name)
  C.bpf_log_take()
  if type(where) == 'table' then return attach_perf(object, name, where, cpus) end
  if where then return attach_named(object, name, where) end
  check_return_probe(object, object:section(name))
  local link = lib.bpf_program__attach(program)
  if link == nil then
    local code = ffi.errno()
    fail_attach(object, name, object:section(name), code)
  end
  return setmetatable({ _lib = lib, _links = { link } }, Link)
end

local ON_CPU = 1 -- BPF_F_TEST_RUN_ON_CPU

--- Runs a program once on each CPU that is online.
---@param object BpfObject loaded
---@param name string the program's name
---@param cpus? string CPU list; nil: all online CPUs
function bpf_attach.run(object, name, cpus)
  local lib, fd = object.lib, object:program_fd(name)
  local opts = ffi.new 'struct bpf_test_run_opts'
  opts.sz, opts.flags = ffi.sizeof(opts), ON_CPU
  for _, cpu in ipairs(cpu_list.numbers(cpus or sys.read '/sys/devices/system/cpu/online')) do
    opts.cpu = cpu
    local code = -lib.bpf_prog_test_run_opts(fd, opts)
    if code ~= 0 and code ~= libc.ENXIO then -- ENXIO: the CPU has gone offline
      failure.unavailable("%s: cannot run program '%s' on CPU %d: %s", object.name, name, cpu,
        code == ENOTSUPP and 'not supported' or sys.strerror(code))
    end
  end
end

--- Runs an iterator program and returns its output.
---@param object BpfObject loaded
---@param name string the program's name
---@return string
function bpf_attach.iterate(object, name)
  local link = bpf_attach.attach(object, name)
  local fd = object.lib.bpf_iter_create(object.lib.bpf_link__fd(link._links[1]))
  local code = ffi.errno()
  if fd < 0 then fail_attach(object, name, 'an iterator', code) end
  local buffer, parts = ffi.new 'char[8192]', {}
  local n
  repeat
    n = tonumber(libc.read(fd, buffer, 8192))
    code = ffi.errno()
    if n > 0 then parts[#parts + 1] = ffi.string(buffer, n) end
  until n <= 0
  libc.close(fd)
  link:detach()
  if n < 0 then failure.raise("%s: program '%s': %s", object.name, name, sys.strerror(code)) end
  return table.concat(parts)
end

return bpf_attach
