-- SPDX-License-Identifier: GPL-2.0-only
--- Programs that do what the joins of lib.join do: they keep the time of a start, and a value, by key, and find them
--- when another event asks. What else a handler does with the results is in the same program, after that.
---
--- In such a program, the results of each finish() are on the stack, where its other parts find them like fields.
local ffi = require 'ffi'
local asm = require 'bpf.gen.asm'
local compile = require 'bpf.gen.compile'
local expr = require 'bindings.expr.compile'
local program = require 'bpf.gen.program'
local starts = require 'bpf.gen.starts'

local C = ffi.C
local FRAME = asm.FRAME
local TAG = 1 -- all starts are alike
local LINE = 64 -- of the CPU's cache
local PLACE_OF = { unstarted = 0, replaced = 8, expired = 16, evicted = 24, found = 32 }
local words = ffi.typeof 'uint64_t *'

local joins = {}

-- Counters ----------------------------------------------------------------------------------------

--- Generates code that adds one to a counter of the CPU. Uses r1 and r2.
local function count(a, places, counters, nr_cpus, at)
  a:load(8, 1, FRAME, places.cpu)
  a:jump('>=', 1, nr_cpus, 'done') -- never, but verifiers want to know that
  a:alu('mul', 1, LINE)
  a:map_value(2, counters, at)
  a:alu_r('add', 2, 1)
  a:alu('mov', 1, 1)
  a:atomic_add(8, 2, 0, 1)
end

--- Generates code that notes in a counter of the CPU that something has happened: a count would cost more. Uses r1
--- and r2.
local function note(a, places, counters, nr_cpus, at)
  a:load(8, 1, FRAME, places.cpu)
  a:jump('>=', 1, nr_cpus, 'done')
  a:alu('mul', 1, LINE)
  a:map_value(2, counters, at)
  a:alu_r('add', 2, 1)
  a:store_value(8, 2, 0, 1)
end

--- Returns the sum of a counter over the CPUs.
local function sum(counters, nr_cpus, at)
  local n = 0
  for cpu = 0, nr_cpus - 1 do n = n + tonumber(ffi.cast(words, counters.bytes + cpu * LINE + at)[0]) end
  return n
end

-- A join ------------------------------------------------------------------------------------------

---@class KernelJoin
---@field starts Starts
local KernelJoin = {}
KernelJoin.__index = KernelJoin

--- Makes the maps of a join. Refuses what BPF cannot do.
---@param settings { expires: number, direct?: integer, has_value: boolean, nr_cpus: integer } direct: all keys are less
---@return KernelJoin
function joins.new(settings)
  return setmetatable({
    expires = settings.expires, has_value = settings.has_value, nr_cpus = settings.nr_cpus,
    starts = starts.new(settings.direct), counters = program.mapped(settings.nr_cpus * LINE, 'join_counts'), seen = {},
  }, KernelJoin)
end

--- Returns what was counted since the last call, by name.
---@return table<string, number>
function KernelJoin:counts()
  local counts = {}
  for name, at in pairs(PLACE_OF) do
    local n = sum(self.counters, self.nr_cpus, at)
    counts[name], self.seen[name] = n - (self.seen[name] or 0), n
  end
  return counts
end

--- Returns the number of open starts.
---@return integer
function KernelJoin:waiting()
  local n = 0
  self.starts:each(function() n = n + 1 end)
  return n
end

--- Returns the body of the program for InKernel:probe_id_changes().
---@return fun(a: Asm, source: Source, places: ProbePlaces)
function KernelJoin:move_body()
  return function(a, _, places)
    local value = self.has_value and a:take(8) or nil
    self.starts:move(a, value, function(name)
      if PLACE_OF[name] then count(a, places, self.counters, self.nr_cpus, PLACE_OF[name]) end
    end)
  end
end

-- Programs ----------------------------------------------------------------------------------------

--- A part of a program.
---@class JoinPart
---@field filter? Compiled condition
---@field found JoinPart[] finishes that must have found a start
---@field start? KernelJoin
---@field finish? KernelJoin
---@field key? Compiled
---@field value? Compiled of a start
---@field ns? Field with finish: its results
---@field kept? Field
---@field body? fun(a: Asm, source: Source, places: ProbePlaces) anything else

--- A program of several parts, in the order in which they were added.
---@class JoinProgram
---@field parts JoinPart[]
local JoinProgram = {}
JoinProgram.__index = JoinProgram

---@param nr_cpus integer
---@return JoinProgram
function joins.program(nr_cpus)
  local counters = program.mapped(nr_cpus * LINE, 'join_events')
  return setmetatable({ parts = {}, nr_cpus = nr_cpus, counters = counters }, JoinProgram)
end

--- Returns a field for a result of a finish().
---@param name string
---@param is_unsigned boolean
---@return Field
function joins.field(name, is_unsigned)
  return { name = name, type = '', offset = 0, size = 8, elem_size = 8, count = 1,
    flags = is_unsigned and 0 or C.FIELD_SIGNED }
end

--- Returns a compiled expression, or refuses.
---@param text string
---@param fields table<string, Field>
---@param form? 'filter'
---@return Compiled
function joins.compile(text, fields, form)
  local compiled, err = expr.compile(text, fields, { form = form })
  return compiled or asm.refuse('%s', err.message)
end

--- Returns the number of events.
---@return number
function JoinProgram:events() return sum(self.counters, self.nr_cpus, 0) end

--- Returns a source that also has the results of finishes.
local function with_results(source)
  return setmetatable({
    load = function(_, a, size, to, field, at)
      if field.place then return a:load(size, to, FRAME, field.place + at) end
      return source:load(a, size, to, field, at)
    end,
  }, { __index = source })
end

--- Generates r7 = the key, and r8 = the time of the event.
local function key_and_time(a, source, part, now)
  compile.value(a, part.key.tree, { source = source, registers = { 9 } }, { none = 'done' })
  a:alu_r('mov', 7, 0)
  a:load(8, 8, FRAME, now)
end

local function start(a, source, places, part, now)
  local join, full = part.start, a:new_label()
  local value = join.has_value and a:take(8)
  if value then
    compile.value(a, part.value.tree, { source = source, registers = { 9 } }, { none = 'done' })
    a:store(8, FRAME, value, 0)
  end
  key_and_time(a, source, part, now)
  join.starts:store(a, TAG, value or nil, { full = full, late = 'done' }, function(name)
    count(a, places, join.counters, join.nr_cpus, PLACE_OF[name])
  end)
  a:go 'done'
  a:label(full)
  count(a, places, join.counters, join.nr_cpus, PLACE_OF.evicted)
end

local function finish(a, source, places, part, now)
  local join, unstarted, in_time, known = part.finish, a:new_label(), a:new_label(), a:new_label()
  local function counted(name) count(a, places, join.counters, join.nr_cpus, PLACE_OF[name]) end
  key_and_time(a, source, part, now)
  join.starts:find(a, unstarted)
  join.starts:take(a, part.kept and part.kept.place)
  a:jump('==', 1, 0, unstarted)
  a:alu('rsh', 1, starts.TAG_BITS)
  a:alu_r('sub', 8, 1)
  note(a, places, join.counters, join.nr_cpus, PLACE_OF.found)
  a:jump('s>', 8, 0, known)
  a:alu('mov', 8, 0)
  a:label(known)
  if join.expires < 2 ^ 53 then
    a:value(1, math.floor(join.expires))
    a:jump_r('<=', 8, 1, in_time)
    counted 'expired'
    a:go 'done'
    a:label(in_time)
  end
  a:store(8, FRAME, part.ns.place, 8)
  a:go 'done'
  a:label(unstarted)
  counted 'unstarted'
end

--- Returns the body of the program, see probe.load().
---@return fun(a: Asm, source: Source, places: ProbePlaces)
function JoinProgram:body()
  return function(a, source, places)
    local now = a:take(8)
    a:call 'ktime_get_ns'
    a:store(8, FRAME, now, 0)
    count(a, places, self.counters, self.nr_cpus, 0)
    for _, part in ipairs(self.parts) do
      if part.finish then
        part.ns.place = a:take(8)
        a:store_value(8, FRAME, part.ns.place, -1)
        if part.kept then
          part.kept.place = a:take(8)
          a:store_value(8, FRAME, part.kept.place, 0)
        end
      end
    end
    source = with_results(source)
    for _, part in ipairs(self.parts) do
      a:within(function()
        for _, one in ipairs(part.found) do
          a:load(8, 1, FRAME, one.ns.place)
          a:jump('s<', 1, 0, 'done')
        end
        if part.filter then compile.condition(a, part.filter.tree, { source = source }, { none = 'done' }) end
        if part.start then
          start(a, source, places, part, now)
        elseif part.finish then
          finish(a, source, places, part, now)
        else
          part.body(a, source, places)
        end
      end)
    end
  end
end

return joins
