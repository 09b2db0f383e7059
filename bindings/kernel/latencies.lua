-- SPDX-License-Identifier: GPL-2.0-only
--- Sums and histograms that programs write, with the buckets of native/hist.h. Each is a cell: a struct hist_sums, and
--- the buckets after it. All cells of a CPU are together, twice: once for each side of the switch. A set of rows has
--- cells without buckets in a hash of each side, by keys of 64 bits.
local ffi = require 'ffi'
local asm = require 'bindings.kernel.asm'
local program = require 'bindings.kernel.program'

local C = ffi.C
local FRAME = asm.FRAME
local latencies = {}

local SUMS = ffi.sizeof 'struct hist_sums'
local AT = {}
for _, name in ipairs { 'count', 'sum', 'not_min', 'max', 'over', 'failed' } do
  AT[name] = ffi.offsetof('struct hist_sums', name)
end
local MAX_BYTES = 2 ^ 26
local EXACT_BITS = 7 -- values of so many bits have a bucket each

--- Generates code that raises the number at r5 + at to that in a register. Another program may interrupt this one, or
--- run on another CPU, so the number that was there is put back if it is larger. Uses r1.
local function raise(a, at, value)
  local done = a:new_label()
  a:load(8, 1, 5, at)
  a:jump_r('<=', value, 1, done)
  a:alu_r('mov', 1, value)
  for _ = 1, 3 do
    a:exchange(5, at, 1)
    a:jump_r('<=', 1, value, done)
  end
  a:label(done)
end

--- Generates code that adds r3 to the number at r5 + at.
local function add(a, at, register) a:atomic_add(8, 5, at, register) end

--- Generates code that adds the time in r3 to the sums at r5. Uses r1 and r2.
---@param a Asm
---@param threshold number longer times are counted; negative: none
---@param failed? integer place of a flag on the stack
local function add_sums(a, threshold, failed)
  add(a, AT.sum, 3)
  raise(a, AT.max, 3)
  a:alu_r('mov', 2, 3)
  a:alu('xor', 2, -1)
  raise(a, AT.not_min, 2)
  if threshold >= 0 then
    local below = a:new_label()
    a:value(1, threshold)
    a:jump_r('<=', 3, 1, below)
    a:alu('mov', 1, 1)
    add(a, AT.over, 1)
    a:label(below)
  end
  if failed then
    local succeeded = a:new_label()
    a:load(8, 1, FRAME, failed)
    a:jump('==', 1, 0, succeeded)
    add(a, AT.failed, 1)
    a:label(succeeded)
  end
end

--- Generates code that counts the time in r3 in its bucket. Uses r0, r1, r2 and r5.
local function add_bucket(a)
  local exact, done = a:new_label(), a:new_label()
  a:alu_r('mov', 0, 3)
  a:jump('<', 3, 2 ^ EXACT_BITS, exact)
  a:alu_r('mov', 1, 3) -- the number of its highest bit into r2
  a:alu('mov', 2, 0)
  for _, bits in ipairs { 32, 16, 8, 4, 2, 1 } do
    local less = a:new_label()
    a:alu_r('mov', 0, 1)
    a:alu('rsh', 0, bits)
    a:jump('==', 0, 0, less)
    a:alu_r('mov', 1, 0)
    a:alu('add', 2, bits)
    a:label(less)
  end
  a:alu('sub', 2, EXACT_BITS - 1)
  a:alu_r('mov', 0, 3)
  a:alu_r('rsh', 0, 2)
  a:alu('lsh', 2, EXACT_BITS - 1)
  a:alu_r('add', 0, 2)
  a:label(exact)
  a:jump('>=', 0, C.HIST_BUCKETS, done)
  a:alu('lsh', 0, 3)
  a:alu_r('add', 5, 0)
  a:alu('mov', 1, 1)
  add(a, SUMS, 1)
  a:label(done)
end

-- Cells by number -----------------------------------------------------------------------------------

---@class KernelCells
---@field map Descriptor
---@field n integer cells of each CPU
local Cells = {}
Cells.__index = Cells

--- Makes cells. Refuses if they need too much memory.
---@param n integer
---@param nr_cpus integer
---@param settings { buckets: boolean, threshold?: number }
---@return KernelCells
function latencies.cells(n, nr_cpus, settings)
  local size = SUMS + (settings.buckets and 8 * C.HIST_BUCKETS or 0)
  local bytes = 2 * nr_cpus * n * size
  if bytes > MAX_BYTES then asm.refuse('the histograms of %d CPUs need too much memory', nr_cpus) end
  return setmetatable({ map = program.mapped(bytes), n = n, size = size, nr_cpus = nr_cpus, buckets = settings.buckets,
    threshold = settings.threshold or -1 }, Cells)
end

--- Generates code that adds the time in r3 to the cell in r4, which is less than n. Uses all of r0 to r5.
---@param a Asm
---@param places ProbePlaces
---@param failed? integer place of a flag on the stack
function Cells:add(a, places, failed)
  local first = a:new_label()
  a:load(8, 0, FRAME, places.cpu)
  a:load(8, 1, FRAME, places.side)
  a:jump('!=', 1, 2, first)
  a:alu('add', 0, self.nr_cpus)
  a:label(first)
  a:alu('mul', 0, self.n)
  a:alu_r('add', 0, 4)
  a:alu('mul', 0, self.size)
  a:map_value(5, self.map, 0)
  a:alu_r('add', 5, 0)
  if not self.buckets then
    a:alu('mov', 1, 1)
    add(a, AT.count, 1)
  end
  add_sums(a, self.threshold, failed)
  if self.buckets then add_bucket(a) end
end

local sums_type = ffi.typeof 'struct hist_sums *'

--- Reads the cells of a side and empties them. Calls each(cell, cpu, sums, buckets) for those with values.
---@param side integer
---@param each fun(cell: integer, cpu: integer, sums: ffi.cdata*, buckets?: ffi.cdata*)
function Cells:take(side, each)
  for cpu = 0, self.nr_cpus - 1 do
    for cell = 0, self.n - 1 do
      local at = self.map.bytes + (((side - 1) * self.nr_cpus + cpu) * self.n + cell) * self.size
      local sums = ffi.cast(sums_type, at)
      if sums.sum > 0 then
        local buckets = self.buckets and ffi.cast('uint64_t *', at + SUMS) or nil
        if buckets then
          local count = 0ULL
          for i = 0, C.HIST_BUCKETS - 1 do count = count + buckets[i] end
          sums.count = count
        end
        each(cell, cpu, sums, buckets)
        ffi.fill(at, self.size)
      end
    end
  end
end

-- Cells by key --------------------------------------------------------------------------------------

---@class KernelRows
local Rows = {}
Rows.__index = Rows

--- Makes rows, whose keys are one or two numbers.
---@param parts integer of a key
---@param most integer rows; further ones share one
---@param settings { threshold?: number, small?: integer, nr_cpus: integer } small: rows whose key has one part that is
--- less have a cell for each CPU
---@return KernelRows
function latencies.rows(parts, most, settings)
  local self = setmetatable({ parts = parts, threshold = settings.threshold or -1, small = settings.small or 0 }, Rows)
  self.cells = latencies.cells(self.small + 1, settings.nr_cpus, { threshold = settings.threshold })
  self.sides = { program.hash(8 * parts, SUMS, most), program.hash(8 * parts, SUMS, most) }
  return self
end

--- Generates code that adds the time in r3 to the row whose key is on the stack, and may use all registers but r6 to
--- r8.
---@param a Asm
---@param places ProbePlaces
---@param key integer place on the stack
---@param failed? integer place of a flag on the stack
function Rows:add(a, places, key, failed)
  local large, found, counted = a:new_label(), a:new_label(), a:new_label()
  if self.small > 0 then
    a:load(8, 4, FRAME, key)
    a:jump('>=', 4, self.small, large)
    self.cells:add(a, places, failed)
    a:go(counted)
    a:label(large)
  end
  local ns, zero = a:take(8), a:take(SUMS)
  a:store(8, FRAME, ns, 3)
  local function look_up(side)
    a:map(1, self.sides[side])
    a:alu_r('mov', 2, FRAME)
    a:alu('add', 2, key)
  end
  local function on_side(side)
    look_up(side)
    a:call 'map_lookup_elem'
    a:jump('!=', 0, 0, found)
    for at = 0, SUMS - 8, 8 do a:store_value(8, FRAME, zero + at, 0) end
    look_up(side)
    a:alu_r('mov', 3, FRAME)
    a:alu('add', 3, zero)
    a:alu('mov', 4, 1) -- BPF_NOEXIST
    a:call 'map_update_elem'
    look_up(side)
    a:call 'map_lookup_elem'
    a:jump('!=', 0, 0, found)
  end
  local second, other = a:new_label(), a:new_label()
  a:load(8, 1, FRAME, places.side)
  a:jump('==', 1, 2, second)
  on_side(1)
  a:go(other)
  a:label(second)
  on_side(2)
  a:label(other)
  a:load(8, 3, FRAME, ns)
  a:alu('mov', 4, self.small)
  self.cells:add(a, places, failed)
  a:go(counted)
  a:label(found)
  a:alu_r('mov', 5, 0)
  a:load(8, 3, FRAME, ns)
  a:alu('mov', 1, 1)
  add(a, AT.count, 1)
  add_sums(a, self.threshold, failed)
  a:label(counted)
  a:give(ns, 8)
  a:give(zero, SUMS)
end

--- Reads the rows of a side and empties them. Calls each(key, sums) with a pointer to the numbers of the key; nil for
--- the row that further keys share.
---@param side integer
---@param each fun(key: ffi.cdata*?, sums: ffi.cdata*)
function Rows:take(side, each)
  local key = ffi.new 'int64_t[2]'
  self.cells:take(side, function(cell, _, sums)
    key[0] = cell
    each(cell < self.small and key or nil, sums)
  end)
  program.take(self.sides[side], function(bytes, value)
    each(ffi.cast('int64_t *', bytes), ffi.cast(sums_type, value))
  end)
end

return latencies
