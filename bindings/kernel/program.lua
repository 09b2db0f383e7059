-- SPDX-License-Identifier: GPL-2.0-only
--- Generated programs and their maps: loads them through libbpf. The kernel frees them when they are closed or
--- collected, and nothing uses them any more.
local ffi = require 'ffi'
local asm = require 'bindings.kernel.asm'
local libbpf = require 'bindings.bpf.libbpf'
local libc = require 'bindings.base.libc'
local sys = require 'bindings.base.sys'
local text = require 'bindings.base.text'

local C = ffi.C
local program = {}

--- enum bpf_prog_type
program.TYPES = { tracepoint = 5, tracing = 26, syscall = 31 }
local ARRAY = 2 -- enum bpf_map_type
local SLEEPABLE = 16 -- BPF_F_SLEEPABLE, required for programs of type syscall
local ATTACH_RAW_TP = 23 -- enum bpf_attach_type: a tracepoint with typed arguments

local LOG_SIZE = 256 * 1024

--- Owns a file descriptor.
---@class Descriptor
---@field fd integer
---@field maps? Descriptor[] the maps that a program uses
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
---@return ffi.namespace*
local function open_library()
  local lib, missing = libbpf.open()
  return lib or asm.refuse('%s', missing)
end

--- Creates an array map.
---@param value_size integer bytes
---@param entries integer
---@param contents? ffi.cdata*|string the first value
---@return Descriptor
function program.array(value_size, entries, contents)
  local lib = open_library()
  local fd = lib.bpf_map_create(ARRAY, 'profscript', 4, value_size, entries, nil)
  if fd < 0 then refuse_open('cannot create a BPF map', -fd) end
  local map = own(fd)
  if contents then
    local code = lib.bpf_map_update_elem(fd, ffi.new 'uint32_t[1]', contents, 0)
    if code ~= 0 then refuse_open('cannot fill a BPF map', -code) end
  end
  return map
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
---@field name string shown by other tools
---@field tracepoint? integer BTF id of the tracepoint's type, for programs of type tracing

--- Loads a program. Refuses if the kernel does.
---@param code Asm
---@param spec ProgramSpec
---@return Descriptor
function program.load(code, spec)
  local lib = open_library()
  local instructions, n = code:finish()
  local opts = ffi.new('struct bpf_prog_load_opts', {
    prog_flags = spec.type == 'syscall' and SLEEPABLE or 0,
    expected_attach_type = spec.tracepoint and ATTACH_RAW_TP or 0,
    attach_btf_id = spec.tracepoint or 0,
  })
  opts.sz = ffi.sizeof(opts)
  local function try() return lib.bpf_prog_load(program.TYPES[spec.type], spec.name, 'GPL', instructions, n, opts) end
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
  local loaded = own(fd)
  loaded.maps = code.used_maps
  return loaded
end

return program
