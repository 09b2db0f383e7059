-- SPDX-License-Identifier: GPL-2.0-only
-- Runs compiled expressions in the kernel, for the specs of the BPF compiler. The program's context is a record of
-- expr_event.lua, followed by the variables of the sample and room for the result.
local ffi = require 'ffi'
local asm = require 'bpf.gen.asm'
local compile = require 'bpf.gen.compile'
local libbpf = require 'bindings.bpf.libbpf'
local program = require 'bpf.gen.program'
local source = require 'bpf.gen.source'

ffi.cdef [[
struct test_context {
  uint8_t record[2048];
  int64_t size, cpu, pid, tid, time; uint64_t period; char comm[16];
  int64_t result, outcome;
};
]]

local run_bpf = {}

local context = ffi.new 'struct test_context'
local VARIABLES = { _cpu = 'i32', _pid = 'i32', _tid = 'i32', _time = 'i64', _period = 'u64' }
local function place(name) return ffi.offsetof(context, name) end

local Test = source.record()
function Test:size(a, to) a:load(8, to, asm.CONTEXT, place 'size') end -- luacheck: no self
function Test:variable(a, name) -- luacheck: no self
  a:load(8, 0, asm.CONTEXT, place(name:sub(2)))
  return VARIABLES[name]
end
function Test:comm(a, at) -- luacheck: no self
  for i = 0, 8, 8 do
    a:load(8, 0, asm.CONTEXT, place 'comm' + i)
    a:store(8, asm.FRAME, at + i, 0)
  end
end

--- Why programs cannot be run on this machine; nil if they can.
function run_bpf.missing()
  local _, why = asm.attempt(function()
    local a = asm.new()
    a:alu('mov', 0, 0)
    a:exit()
    return program.load(a, { type = 'syscall', name = 'test' })
  end)
  return why
end

local NONE, UNDECIDED = 1, 2

--- Loads the program of a compiled expression.
---@param compiled Compiled
---@param is_filter? boolean the result is 1 or nil
---@param from? Source default: the variables of the sample are those of the record
---@return { fd: integer, type: string, n: integer }|nil, string|nil reason
function run_bpf.load(compiled, is_filter, from)
  return asm.attempt(function()
    local a = asm.new()
    a:alu_r('mov', asm.CONTEXT, 1)
    local labels = { none = 'none', undecided = 'undecided' }
    local kind, context_of = 'i32', { source = from or Test }
    if is_filter then
      compile.condition(a, compiled.tree, context_of, labels)
      a:alu('mov', 0, 1)
    else
      kind = compile.value(a, compiled.tree, context_of, labels)
    end
    a:store(8, asm.CONTEXT, place 'result', 0)
    a:store_value(8, asm.CONTEXT, place 'outcome', 0)
    a:go 'end'
    a:label 'undecided'
    a:store_value(8, asm.CONTEXT, place 'outcome', UNDECIDED)
    a:go 'end'
    a:label 'none'
    a:store_value(8, asm.CONTEXT, place 'outcome', NONE)
    a:label 'end'
    a:alu('mov', 0, 0)
    a:exit()
    local loaded = program.load(a, { type = 'syscall', name = 'test' })
    loaded.type, loaded.n = kind, a.n
    return loaded
  end)
end

local opts = ffi.new('struct bpf_test_run_opts', { ctx_in = context, ctx_size_in = ffi.sizeof(context) })
opts.sz = ffi.sizeof(opts)

--- Runs a program on a record. Returns the result as the Lua code does: nil if the expression has no value.
function run_bpf.run(loaded, record)
  local e = record.e
  assert(record.size <= 2048)
  ffi.copy(context.record, record.raw, record.size)
  context.size, context.cpu, context.pid, context.tid = record.size, e.cpu, e.pid, e.tid
  context.time, context.period, context.outcome = e.time, e.period, -1
  ffi.copy(context.comm, record.comm or 'task')
  local lib = assert(libbpf.open())
  local code = lib.bpf_prog_test_run_opts(loaded.fd, opts)
  assert(code == 0, code)
  if context.outcome == UNDECIDED then return 'undecided' end
  if context.outcome == NONE then return nil end
  assert(context.outcome == 0)
  local value = context.result
  if loaded.type == 'i32' or loaded.type == 'u32' then
    assert(value == ffi.cast(loaded.type == 'i32' and 'int32_t' or 'uint32_t', value), 'not extended')
    return tonumber(value)
  end
  return loaded.type == 'u64' and ffi.cast('uint64_t', value) or value
end

--- Runs bodies of programs on synthetic events.
---@param ctype ffi.ctype* of these: with the members cpu and side
---@param cpus integer
---@return { field: fun(name: string, size?: integer, is_unsigned?: boolean): Field, load: fun(body: fun(a: Asm,
--- source: Source, places: ProbePlaces)): Descriptor, run: fun(loaded: Descriptor, record: ffi.cdata*) }
function run_bpf.on(ctype, cpus)
  local settings = ffi.new 'struct bpf_test_run_opts'
  settings.sz, settings.ctx_size_in = ffi.sizeof(settings), ffi.sizeof(ctype)
  local self = {}
  function self.field(name, size, is_unsigned)
    return { name = name, offset = ffi.offsetof(ctype, name), size = size or 8, elem_size = size or 8, count = 1,
      flags = is_unsigned and 0 or ffi.C.FIELD_SIGNED, type = 'int' }
  end
  function self.load(body)
    local a = asm.new()
    local places = { cpu = a:take(8), side = a:take(8) }
    a:alu_r('mov', asm.CONTEXT, 1)
    a:load(8, 0, asm.CONTEXT, ffi.offsetof(ctype, 'cpu'))
    a:jump('>=', 0, cpus, 'done')
    a:store(8, asm.FRAME, places.cpu, 0)
    a:load(8, 0, asm.CONTEXT, ffi.offsetof(ctype, 'side'))
    a:store(8, asm.FRAME, places.side, 0)
    body(a, source.record(), places)
    a:done()
    return program.load(a, { type = 'syscall', name = 'test' })
  end
  function self.run(loaded, record)
    settings.ctx_in = record
    assert(assert(libbpf.open()).bpf_prog_test_run_opts(loaded.fd, settings) == 0)
  end
  return self
end

return run_bpf
