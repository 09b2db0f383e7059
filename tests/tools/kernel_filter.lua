-- SPDX-License-Identifier: GPL-2.0-only
--- Counts the events that match a filter while a command runs, in a BPF program on the tracepoint's arguments.
---   profscript --lua kernel_filter.lua SYSTEM:NAME FILTER COMMAND
--- Prints the count, the number of instructions, and the time to compile and load the program in ms.
local ffi = require 'ffi'
local arguments = require 'bpf.gen.arguments'
local asm = require 'bpf.gen.asm'
local compile = require 'bpf.gen.compile'
local expr = require 'bindings.expr.compile'
local libbpf = require 'bindings.bpf.libbpf'
local program = require 'bpf.gen.program'
local sys = require 'bindings.base.sys'
local types = require 'bpf.gen.kernel_types'
local views = require 'bindings.view.views'

local C = ffi.C
local event, text, command = arg[1], arg[2], arg[3]
local system, name = event:match '^(.-):(.+)$'

local err = ffi.new 'struct error'
local formats = C.formats_open_tracefs(err)
assert(formats ~= nil, ffi.string(err.text))
local tracepoint = C.formats_find(formats, system, name, err)
assert(tracepoint ~= nil, ffi.string(err.text))
local fields = {}
for _, field in ipairs(views.fields(tracepoint)) do fields[field.name] = field end

local compiled, wrong = expr.compile_filter(text, fields)
if not compiled then compiled, wrong = expr.compile(text, fields, { form = 'filter' }) end
if not compiled then error(expr.caret(wrong), 0) end

pcall(types.tracepoint, name) -- reads the kernel's types
local count = program.array(8, 1, nil, 'count')
local began = sys.now()
local loaded, why = asm.attempt(function()
  local a = asm.new()
  a:alu_r('mov', asm.CONTEXT, 1)
  compile.condition(a, compiled.tree, { source = arguments.of(event) }, { none = 'end' })
  a:map_value(1, count, 0)
  a:alu('mov', 2, 1)
  a:atomic_add(8, 1, 0, 2)
  a:label 'end'
  a:alu('mov', 0, 0)
  a:exit()
  local result = program.load(a, { type = 'tracing', name = 'count', tracepoint = types.tracepoint(name) })
  result.n = a.n
  return result
end)
if not loaded then
  print(why)
  os.exit(3)
end
local took = sys.now() - began

local lib = assert(libbpf.open())
local link = lib.bpf_raw_tracepoint_open(nil, loaded.fd)
assert(link >= 0, sys.strerror(-link))
local status = os.execute(command)
C.close(link)
local value = ffi.new 'uint64_t[1]'
lib.bpf_map_lookup_elem(count.fd, ffi.new 'uint32_t[1]', value)
print(('%s %d %.2f'):format(tostring(value[0]):gsub('ULL', ''), loaded.n, took / 1e6))
os.exit((status == 0 or status == true) and 0 or 1)
