-- SPDX-License-Identifier: GPL-2.0-only
--- Sources: where a program finds the fields of its event. The compiler of expressions (compile.lua) calls their
--- methods, which generate code. r6 is the program's context.
local asm = require 'bpf.gen.asm'

local CONTEXT = asm.CONTEXT

local source = {}

---@class Source
---@field load fun(self, a: Asm, size: integer, to: integer, field: Field, at: integer) loads bytes of a field into a
--- register, extended with zeros, and uses no other, but r5 for a field that is computed; the compiler aligns them
---@field address fun(self, a: Asm, to: integer, field: Field?) puts the address of a field, or of the whole record,
--- into a register, for bpf_probe_read_kernel(), and uses no other
---@field size? fun(self, a: Asm, to: integer) puts the size of the record into a register; without it, the record is
--- known to contain its dynamic fields
---@field variable fun(self, a: Asm, name: string): string?, string? puts a variable of the sample into r0, extended to
--- 64 bits, and may use r1 to r5; returns its type; nil and the reason if it cannot
---@field has_no_record? boolean common_pid is the current thread
---@field task? integer place on the stack: the current task, if the program knows it
---@field comm? fun(self, a: Asm, at: integer) copies the name of the current task, 16 bytes, to r10 + at

--- Variables of the sample that a helper returns. The node is that of the CPU, the group that of the current task.
local NUMBERS = {
  _cpu = { helper = 'get_smp_processor_id', type = 'i32' },
  _node = { helper = 'get_numa_node_id', type = 'i32' },
  _cgroup = { helper = 'get_current_cgroup_id', type = 'u64' },
}

--- The variables of the sample, as they are when the program runs.
local Source = {}
Source.__index = Source
source.base = Source

function Source:variable(a, name)
  local function half(get)
    if self.foreign_pids then return nil, "the kernel's thread ids are not those of this pid namespace" end
    a:call 'get_current_pid_tgid'
    get()
    a:extend(0, 32, true)
    return 'i32'
  end
  if name == '_tid' then return half(function() end) end
  if name == '_pid' then return half(function() a:alu('rsh', 0, 32) end) end
  if NUMBERS[name] then
    a:call(NUMBERS[name].helper)
    return NUMBERS[name].type
  elseif name == '_time' and self.time_base then
    a:call 'ktime_get_ns'
    a:value(1, self.time_base)
    a:alu_r('sub', 0, 1)
    return 'i64'
  end
  return nil, ("the kernel cannot tell '%s' at the event"):format(name)
end

function Source:comm(a, at) -- luacheck: no self
  a:alu_r('mov', 1, asm.FRAME)
  a:alu('add', 1, at)
  a:alu('mov', 2, 16)
  a:call 'get_current_comm'
end

--- Generates code that writes a whole field to *(to + off), if it is not done by load() best. task: register of the
--- current task. Uses r1 to r5.
---@return boolean done
function Source:write() return false end -- luacheck: no self

--- Returns a class with these methods, and those that all sources have.
---@param methods table<string, function>
---@return table
function source.derive(methods)
  local class = setmetatable(methods, Source)
  class.__index = class
  return class
end

--- Returns an object of a class with the options and members.
---@param options? SourceOptions
---@param members? table<string, any>
---@return Source
function Source:with(options, members)
  local object = setmetatable({}, self)
  for name, value in pairs(options or {}) do object[name] = value end
  for name, value in pairs(members or {}) do object[name] = value end
  return object
end

local Record = source.derive {
  load = function(_, a, size, to, field, at) a:load(size, to, CONTEXT, field.offset + at) end,
  address = function(_, a, to, field)
    a:alu_r('mov', to, CONTEXT)
    if field then a:alu('add', to, field.offset) end
  end,
}

---@class SourceOptions
---@field foreign_pids? boolean this process is in a pid namespace of its own
---@field time_base? ffi.cdata* CLOCK_MONOTONIC where _time is 0; nil: there is no _time

--- Generates code that reads a number of a program's memory, at an address in r3, to *(to + off), and whether it could
--- be read to the byte *(to + is_known). Uses r0 to r5.
---@param a Asm
---@param to integer register
---@param off integer
---@param size integer
---@param is_known integer
function source.read_user(a, to, off, size, is_known)
  local good, done = a:new_label(), a:new_label()
  a:address(1, to, off)
  a:alu('mov', 2, size)
  a:call 'probe_read_user'
  a:jump('==', 0, 0, good)
  a:store_value(1, to, is_known, 0)
  a:go(done)
  a:label(good)
  a:store_value(1, to, is_known, 1)
  a:label(done)
end

--- Returns the source of programs whose context is the event's record, as those of type tracepoint.
---@param options? SourceOptions
---@return Source
function source.record(options) return Record:with(options) end

return source
