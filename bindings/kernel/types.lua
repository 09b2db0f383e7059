-- SPDX-License-Identifier: GPL-2.0-only
--- The types of the running kernel (BTF): offsets of structure members, and the ids of tracepoints.
local ffi = require 'ffi'
local asm = require 'bindings.kernel.asm'
local btf = require 'bindings.bpf.btf'
local libbpf = require 'bindings.bpf.libbpf'

local types = {}

local loaded -- for all programs: parsing takes 20 ms

--- Returns the kernel's types, or refuses.
---@return Btf
local function kernel()
  if loaded then return loaded end
  local lib, missing = libbpf.open()
  if not lib then asm.refuse('%s', missing) end
  local all = lib.btf__load_vmlinux_btf()
  if all == nil then asm.refuse('this kernel has no /sys/kernel/btf/vmlinux (CONFIG_DEBUG_INFO_BTF)') end
  loaded = btf.new(lib, ffi.gc(all, lib.btf__free))
  return loaded
end

--- Returns the id of a tracepoint's type, for programs with typed arguments.
---@param name string without its system
---@return integer
function types.tracepoint(name)
  return kernel():find('btf_trace_' .. name, btf.KIND.TYPEDEF)
    or asm.refuse("the kernel's BTF has no tracepoint '%s'", name)
end

--- Returns the number of a tracepoint's arguments.
---@param name string without its system
---@return integer
function types.arguments(name)
  local all = kernel()
  local pointer = all:resolve(types.tracepoint(name))
  return all:parameters(pointer.type) - 1 -- without that of whoever attaches
end

--- Returns the id of a variable, or refuses.
---@param name string
---@return integer
function types.variable(name)
  return kernel():find(name, btf.KIND.VAR) or asm.refuse("the kernel's BTF has no variable %s", name)
end

local structs = {} -- members by name, by struct

local function members_of(name)
  local members = structs[name]
  if members then return members end
  local all = kernel()
  local id = all:find(name, btf.KIND.STRUCT) or asm.refuse("the kernel's BTF has no struct %s", name)
  members = {}
  for _, member in ipairs(all:members(id)) do members[member.name] = member end
  structs[name] = members
  return members
end

--- Returns the offset and the size of a structure's member, or refuses.
---@param struct string
---@param path string member, or member.member...
---@return integer offset bytes
---@return integer size bytes
function types.member(struct, path)
  local first, rest = path:match '^([^.]+)%.?(.*)$'
  local member = members_of(struct)[first]
  if not member or member.width > 0 then asm.refuse('struct %s of this kernel has no member %s', struct, first) end
  local all, offset = kernel(), member.offset / 8
  if rest == '' then return offset, all:size(member.type) end
  local inner = all:resolve(member.type)
  local at, size = types.member(all:name_at(inner.name_off), rest)
  return offset + at, size
end

--- Returns the offset and the size of the first of several members that this kernel has, or refuses.
---@param struct string
---@param paths string|string[]
---@return integer offset bytes
---@return integer size bytes
function types.member_of(struct, paths)
  local why
  for _, path in ipairs(type(paths) == 'table' and paths or { paths }) do
    local place, reason = asm.attempt(function() return { types.member(struct, path) } end)
    if place then return place[1], place[2] end
    why = why or reason
  end
  asm.refuse('%s', why)
end

return types
