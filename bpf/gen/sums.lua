-- SPDX-License-Identifier: GPL-2.0-only
--- Sums and histograms that programs write and profscript reads. All have one layout: a struct hist_sums of
--- native/hist.h, which is empty if all is 0 (not_min is the complement of the smallest value), and its buckets.
---
--- Cells have numbers. All cells of a CPU are together, twice: once for each side of the switch. Rows have keys of
--- 64-bit numbers: their sums are in a hash of each side, and their buckets in another one. Rows may also have a table
--- for each CPU before the hashes (sums_tables.lua).
local ffi = require 'ffi'
local asm = require 'bpf.gen.asm'
local bit = require 'bit'
local program = require 'bpf.gen.program'
local sums_tables = require 'bpf.gen.sums_tables'
local switch = require 'bpf.gen.switch'

local C = ffi.C
local FRAME = asm.FRAME
local kernel_sums = {}

local SUMS = ffi.sizeof 'struct hist_sums'
local AT = {}
for _, name in ipairs { 'count', 'sum', 'not_min', 'max', 'over', 'failed', 'sum_high', 'negative',
  'squares_low' } do
  AT[name] = ffi.offsetof('struct hist_sums', name)
end
kernel_sums.SIZE, kernel_sums.AT = SUMS, AT
local MAX_BYTES = 2 ^ 26
local OCTAVES = 64 -- counts of a cell by the number of bits of the values, which are times: none has 64
local EXACT_BITS = 7 -- values of so many bits have a bucket each

--- Generates code that raises the number at a register + off to that in another one. Another program may interrupt this
--- one, or run on another CPU, so the number that was there is put back if it is larger. Uses r1. Since Linux 5.12.
---@param a Asm
---@param to integer register
---@param off integer
---@param value integer register
---@param is_alone? boolean no other program writes there
function kernel_sums.raise(a, to, off, value, is_alone)
  local done = a:new_label()
  a:load(8, 1, to, off)
  a:jump_r('<=', value, 1, done)
  if is_alone then
    a:store(8, to, off, value)
    return a:label(done)
  end
  a:alu_r('mov', 1, value)
  for _ = 1, 3 do
    a:exchange(to, off, 1)
    a:jump_r('<=', 1, value, done)
  end
  a:label(done)
end

--- Generates code that puts the number of the bucket of a register, which has no sign, into another one. Uses r1 and
--- r2.
---@param a Asm
---@param from integer register
---@param to integer register
---@param none? string label, for a number that has none: never, but the verifier wants to know that before memory is
--- accessed
function kernel_sums.number(a, from, to, none)
  a:alu_r('mov', 2, from)
  a:alu('mov', to, 0)
  for i = 5, 0, -1 do -- shifts the value until it is less than 128; the verifier would follow each path of jumps
    if i == 5 then -- the value may have 64 bits
      a:alu_r('mov', 1, 2)
      a:alu('rsh', 1, 38)
      a:alu('neg', 1, 0)
    else
      a:value(1, 2 ^ (6 + 2 ^ i) - 1)
      a:alu_r('sub', 1, 2)
    end
    a:alu('rsh', 1, 63) -- 1 if the value is larger
    if i > 0 then a:alu('lsh', 1, i) end
    a:alu_r('rsh', 2, 1)
    a:alu_r('add', to, 1)
  end
  a:alu('lsh', to, 6)
  a:alu_r('add', to, 2)
  if none then a:jump('>=', to, C.HIST_BUCKETS, none) end
end

--- Generates code that adds a register, or 1, to the number at r5 + at. Uses r1 and r2.
---@param a Asm
---@param at integer
---@param register integer|'one'
---@param is_alone boolean no other program writes there
local function add(a, at, register, is_alone)
  if is_alone then
    a:load(8, 2, 5, at)
    if register == 'one' then a:alu('add', 2, 1) else a:alu_r('add', 2, register) end
    return a:store(8, 5, at, 2)
  end
  if register == 'one' then a:alu('mov', 1, 1) end
  a:atomic_add(8, 5, at, register == 'one' and 1 or register)
end

--- Generates code that adds the square of a register, which has no sign, to the 128 bits at another one + off. Few
--- times exceed 2^32 ns, and few sums carry, so mostly one addition is made in memory. Since Linux 5.12.
---@param a Asm
---@param to integer register
---@param off integer of the lower half, which the upper half follows
---@param value integer register
---@param free integer[] four registers that are used
---@param is_alone? boolean no other program writes there
function kernel_sums.add_square(a, to, off, value, free, is_alone)
  local high, low, other, half = unpack(free)
  local small, known, done = a:new_label(), a:new_label(), a:new_label()
  a:alu_r('mov', low, value)
  a:alu_r('mov', high, value)
  a:alu('rsh', high, 32)
  a:jump('==', high, 0, small)
  a:extend(low, 32, false)
  a:alu_r('mov', other, high) -- value = high * 2^32 + low
  a:alu_r('mul', other, low)
  a:alu_r('mul', low, low)
  a:alu_r('mul', high, high)
  a:alu_r('mov', half, other)
  a:alu('rsh', half, 31)
  a:alu_r('add', high, half)
  a:alu('lsh', other, 33)
  a:alu_r('add', low, other)
  a:jump_r('>=', low, other, known)
  a:alu('add', high, 1)
  a:go(known)
  a:label(small)
  a:alu_r('mul', low, low)
  a:label(known)
  if is_alone then
    a:load(8, other, to, off)
    a:alu_r('add', other, low)
    a:store(8, to, off, other)
  else
    a:alu_r('mov', other, low)
    a:fetch_add(to, off, other)
    a:alu_r('add', other, low)
  end
  local carried = a:new_label()
  a:jump_r('>=', other, low, carried)
  a:alu('add', high, 1)
  a:label(carried)
  a:jump('==', high, 0, done)
  a:atomic_add(8, to, off + 8, high)
  a:label(done)
end

--- Generates code that adds the time in r3 to the sums at r5. Uses r0, r1, r2 and r4.
---@param a Asm
---@param threshold number longer times are counted; negative: none
---@param failed? integer place of a flag on the stack
---@param is_alone boolean see add()
local function add_sums(a, threshold, failed, is_alone)
  add(a, AT.sum, 3, is_alone)
  kernel_sums.add_square(a, 5, AT.squares_low, 3, { 0, 1, 2, 4 }, is_alone)
  kernel_sums.raise(a, 5, AT.max, 3, is_alone)
  a:alu_r('mov', 2, 3)
  a:alu('xor', 2, -1)
  kernel_sums.raise(a, 5, AT.not_min, 2, is_alone)
  if threshold >= 0 then
    local below = a:new_label()
    a:value(1, threshold)
    a:jump_r('<=', 3, 1, below)
    add(a, AT.over, 'one', is_alone)
    a:label(below)
  end
  if failed then
    local succeeded = a:new_label()
    a:load(8, 1, FRAME, failed)
    a:jump('==', 1, 0, succeeded)
    add(a, AT.failed, 1, is_alone)
    a:label(succeeded)
  end
end

--- Generates code that adds the value in r0 to a sum at r7: to its halves of 32 bits, so that neither overflows.
--- Uses r1.
---@param a Asm
---@param low integer place of the lower half
---@param high integer
---@param is_unsigned? boolean the value has no sign
function kernel_sums.add_halves(a, low, high, is_unsigned)
  a:alu_r('mov', 1, 0)
  a:extend(1, 32, false)
  a:atomic_add(8, 7, low, 1)
  a:alu_r('mov', 1, 0)
  a:alu(is_unsigned and 'rsh' or 'arsh', 1, 32)
  a:atomic_add(8, 7, high, 1)
end

--- Generates code that adds the value in r0, which has no sign, to the wide sums at r7 + off. Uses r1 to r4.
---@param a Asm
---@param off integer
function kernel_sums.add_wide(a, off)
  kernel_sums.add_halves(a, off + AT.sum, off + AT.sum_high, true)
  kernel_sums.add_square(a, 7, off + AT.squares_low, 0, { 1, 2, 3, 4 })
  kernel_sums.raise(a, 7, off + AT.max, 0)
  a:alu('xor', 0, -1)
  kernel_sums.raise(a, 7, off + AT.not_min, 0)
  a:alu('xor', 0, -1)
end

--- Generates r2 = the number of the highest bit of the time in r3. Uses r0, and makes r1 1 (or 0 for 0).
local function highest_bit(a)
  a:alu_r('mov', 1, 3)
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
end

--- Generates code that counts the time in r3 in its bucket. Uses r0, r1, r2 and r5.
local function add_bucket(a, is_alone)
  local done = a:new_label()
  kernel_sums.number(a, 3, 0, done)
  a:alu('lsh', 0, 3)
  a:alu_r('add', 5, 0)
  add(a, SUMS, 'one', is_alone)
  a:label(done)
end

--- Generates code that counts the time in r3 by its number of bits. Uses r0, r1, r2 and r5.
local function add_octave(a, is_alone)
  highest_bit(a)
  a:alu_r('add', 2, 1) -- 0 has no bit
  a:alu('and', 2, OCTAVES - 1)
  a:alu('lsh', 2, 3)
  a:alu_r('add', 5, 2)
  add(a, SUMS, 'one', is_alone)
end

local spread = ffi.new('uint64_t[?]', C.HIST_BUCKETS)

--- Returns counts by number of bits as those of the buckets of the smallest such values.
local function spread_octaves(counts)
  ffi.fill(spread, ffi.sizeof(spread))
  spread[0] = counts[0]
  for bits = 1, OCTAVES - 1 do
    local e = bits - 1
    spread[e < EXACT_BITS and 2 ^ e or 64 * (e - EXACT_BITS + 2)] = counts[bits]
  end
  return spread
end

-- Reading -------------------------------------------------------------------------------------------

local sums_type = ffi.typeof 'struct hist_sums *'

--- Returns the number of values in all buckets.
---@param counts ffi.cdata* uint64_t *
---@return ffi.cdata* uint64_t
function kernel_sums.values_in(counts)
  local n = 0ULL
  for i = 0, C.HIST_BUCKETS - 1 do n = n + counts[i] end
  return n
end

--- Returns wide sums as those that hist_set_add_sums() takes.
---@param bytes ffi.cdata*
---@param count number|ffi.cdata* of the values
---@return ffi.cdata* sums struct hist_sums
function kernel_sums.narrow(bytes, count)
  local from = ffi.cast(sums_type, bytes)
  local high = from.sum_high + bit.rshift(from.sum, 32)
  local sum = high >= 2 ^ 32 and -1ULL or bit.lshift(high, 32) + from.sum % 2 ^ 32
  return ffi.new('struct hist_sums', { count = count, sum = sum, not_min = from.not_min, max = from.max,
    negative = from.negative, squares_low = from.squares_low, squares_high = from.squares_high })
end

-- Cells by number -----------------------------------------------------------------------------------

---@class KernelCells
---@field map Descriptor
---@field n integer cells of each CPU
local Cells = {}
Cells.__index = Cells

--- Returns the bytes of a cell.
function kernel_sums.cell_size(octaves, has_buckets)
  return SUMS + 8 * (octaves and OCTAVES or has_buckets and C.HIST_BUCKETS or 0)
end

--- Makes cells. Refuses if they need too much memory.
---@param n integer
---@param nr_cpus integer
---@param settings { buckets?: boolean, octaves?: boolean, threshold?: number } octaves: only a bucket for each power
--- of two, which takes less memory
---@return KernelCells
function kernel_sums.cells(n, nr_cpus, settings)
  local octaves = settings.octaves or false
  local size = kernel_sums.cell_size(octaves, settings.buckets)
  local bytes = 2 * nr_cpus * n * size
  if bytes > MAX_BYTES then asm.refuse('the histograms of %d CPUs need too much memory', nr_cpus) end
  return setmetatable({ map = program.mapped(bytes, 'sums_cells'), n = n, size = size, nr_cpus = nr_cpus,
    buckets = settings.buckets and not octaves, octaves = octaves, threshold = settings.threshold or -1 }, Cells)
end

--- Generates code that adds the time in r3 to the cell in r4, which is less than n. Uses all of r0 to r5.
---@param a Asm
---@param places ProbePlaces
---@param failed? integer place of a flag on the stack
---@param is_alone? boolean no other program writes to this cell of the CPU, not even one that interrupts this one
function Cells:add(a, places, failed, is_alone)
  is_alone = is_alone or false
  switch.part(a, places, 5, { map = self.map, cpus = self.nr_cpus, sides = 2, size = self.n * self.size })
  a:alu('mul', 4, self.size)
  a:alu_r('add', 5, 4)
  if not (self.buckets or self.octaves) then add(a, AT.count, 'one', is_alone) end
  add_sums(a, self.threshold, failed, is_alone)
  if self.octaves then add_octave(a, is_alone) elseif self.buckets then add_bucket(a, is_alone) end
end

--- Reads the cells of a side and empties them. Calls each(cell, cpu, sums, counts) for those with values.
---@param side integer
---@param each fun(cell: integer, cpu: integer, sums: ffi.cdata*, counts?: ffi.cdata*) counts: of the buckets
function Cells:take(side, each)
  for cpu = 0, self.nr_cpus - 1 do
    for cell = 0, self.n - 1 do
      local at = self.map.bytes + (((side - 1) * self.nr_cpus + cpu) * self.n + cell) * self.size
      local sums = ffi.cast(sums_type, at)
      if sums.not_min > 0 then
        local words = ffi.cast('uint64_t *', at + SUMS)
        local counts = self.octaves and spread_octaves(words) or self.buckets and words or nil
        if counts then sums.count = kernel_sums.values_in(counts) end
        each(cell, cpu, sums, counts)
        ffi.fill(at, self.size)
      end
    end
  end
end

--- Returns whether so many cells with a bucket for each power of two are not too many.
---@param n integer
---@param nr_cpus integer
---@return boolean
function kernel_sums.fits(n, nr_cpus) return 2 * nr_cpus * n * kernel_sums.cell_size(true) <= MAX_BYTES end

-- Rows by key ---------------------------------------------------------------------------------------

---@class KernelRows
---@field parts integer numbers of a key
---@field cells KernelCells of further rows
---@field tables? SumsTables
local Rows = {}
Rows.__index = Rows

local MOST_BUCKETS = 2 ^ 17 -- of all rows
local NAME = 16 -- bytes

---@class KernelRowsSettings
---@field nr_cpus integer
---@field sides integer see Switch
---@field most integer rows; further ones share one
---@field threshold? number
---@field small? integer rows whose key is one number that is less have a cell for each CPU; with buckets for powers
--- of two only
---@field kinds? integer the last number of a key is less; further rows share one for each
---@field buckets? boolean
---@field named? boolean a row has the name that a task has when the row is made
---@field has_tables? boolean most times are added to a table of the CPU. Only with buckets, two numbers in a key, of
--- which the first is that of a thread, and if no program that adds interrupts another one

--- Makes rows.
---@param parts integer numbers of a key
---@param settings KernelRowsSettings
---@return KernelRows
function kernel_sums.rows(parts, settings)
  local self = setmetatable({ parts = parts, threshold = settings.threshold or -1, small = settings.small or 0,
    kinds = settings.kinds, named = settings.named }, Rows)
  self.cells = kernel_sums.cells(self.small + (settings.kinds or 1), settings.nr_cpus, { threshold = settings.threshold,
    buckets = settings.buckets, octaves = settings.buckets and self.small > 0 })
  self.size = SUMS + (settings.named and NAME or 0)
  self.sums = switch.maps(settings.sides, function()
    return program.hash(8 * parts, self.size, settings.most, 'sums_rows')
  end)
  self.buckets = settings.buckets and switch.maps(settings.sides, function()
    return program.hash(8 * (parts + 1), 8, MOST_BUCKETS, 'sums_buckets')
  end)
  self.tables = settings.has_tables and sums_tables.new(settings.nr_cpus)
  return self
end

--- Generates r0 = the address of the value of a key on the stack in the hash of the side, which becomes zeros if there
--- is none. Jumps if there is no room.
---@param a Asm
---@param places ProbePlaces
---@param maps Descriptor[] by side
---@param key integer place on the stack
---@param zero integer place on the stack, of the value's size
---@param none string label
---@param fill? fun() generates code that fills the new value on the stack, and keeps r6 to r9
function kernel_sums.find_or_make(a, places, maps, key, zero, none, fill)
  local second, found = a:new_label(), a:new_label()
  local function on_side(map)
    local function look_up()
      a:map(1, map)
      a:address(2, FRAME, key)
    end
    look_up()
    a:call 'map_lookup_elem'
    a:jump('!=', 0, 0, found)
    for at = 0, map.value_size - 8, 8 do a:store_value(8, FRAME, zero + at, 0) end
    if fill then fill() end
    look_up()
    a:address(3, FRAME, zero)
    a:alu('mov', 4, 1) -- BPF_NOEXIST
    a:call 'map_update_elem'
    look_up()
    a:call 'map_lookup_elem'
    a:jump('!=', 0, 0, found)
    a:go(none)
  end
  local has_sides = maps[1] ~= maps[2]
  if has_sides then
    a:load(8, 1, FRAME, places.side)
    a:jump('==', 1, 2, second)
  end
  on_side(maps[1])
  if has_sides then
    a:label(second)
    on_side(maps[2])
  end
  a:label(found)
end

--- Returns the bytes on the stack that a key needs, and after them room for add().
function Rows:key_size() return 8 * (self.parts + 1) end

--- Generates code that adds the time in r3 to the row whose key is on the stack. Uses all of r0 to r5.
---@param a Asm
---@param places ProbePlaces
---@param key integer place on the stack, of key_size() bytes
---@param failed? integer place of a flag on the stack
---@param write_name? fun(at: integer) of rows with names: generates code that writes 16 bytes to the stack
function Rows:add(a, places, key, failed, write_name)
  local large, other, added = a:new_label(), a:new_label(), a:new_label()
  if self.small > 0 then
    a:load(8, 4, FRAME, key)
    a:jump('>=', 4, self.small, large)
    self.cells:add(a, places, failed)
    a:go(added)
    a:label(large)
  end
  local is_alone = self.tables ~= nil
  local ns, row, zero = a:take(8), a:take(8), a:take(self.size)
  a:store(8, FRAME, ns, 3)
  if self.buckets then
    kernel_sums.number(a, 3, 0)
    a:store(8, FRAME, key + 8 * self.parts, 0)
  end
  local function add_to_row()
    a:load(8, 3, FRAME, ns)
    add(a, AT.count, 'one', is_alone)
    add_sums(a, self.threshold, failed, is_alone)
  end
  local free, not_there = a:take(8), a:new_label()
  if self.tables then
    self.tables:add(a, places, key, free, not_there)
    add_to_row()
    a:go(added)
    a:label(not_there)
  end
  kernel_sums.find_or_make(a, places, self.sums, key, zero, other,
    write_name and function() write_name(zero + SUMS) end)
  if self.buckets then
    a:store(8, FRAME, row, 0)
    kernel_sums.find_or_make(a, places, self.buckets, key, zero, other)
    a:alu('mov', 1, 1)
    a:atomic_add(8, 0, 0, 1)
    a:load(8, 0, FRAME, row)
  end
  a:alu_r('mov', 5, 0)
  add_to_row()
  if self.tables then self.tables:claim(a, key, free) end
  a:go(added)
  a:label(other)
  a:load(8, 3, FRAME, ns)
  if self.kinds then
    a:load(8, 4, FRAME, key + 8 * (self.parts - 1))
    a:jump('>=', 4, self.kinds, added)
  end
  a:alu(self.kinds and 'add' or 'mov', 4, self.small) -- the place of those that have no row
  self.cells:add(a, places, failed)
  a:label(added)
  a:give(ns, 8)
  a:give(row, 8)
  a:give(free, 8)
  a:give(zero, self.size)
end

local numbers = ffi.typeof 'int64_t *'

--- Reads the rows of a side and empties them: the sums of each, and the buckets that are not with the sums. The key is
--- a pointer to its numbers, and nil for the rows that further keys share.
---@param side integer
---@param add_row fun(key: ffi.cdata*?, kind: integer?, sums: ffi.cdata*, counts?: ffi.cdata*, name?: string)
---@param add_count fun(key: ffi.cdata*, kind: integer?, bucket: integer, count: integer)
function Rows:take(side, add_row, add_count)
  local small = ffi.new 'int64_t[1]'
  local function kind_of(key) return self.kinds and tonumber(key[self.parts - 1]) or nil end
  self.cells:take(side, function(cell, _, sums, counts)
    small[0] = cell
    if cell < self.small then return add_row(small, nil, sums, counts) end
    add_row(nil, self.kinds and cell - self.small, sums, counts)
  end)
  if self.tables then self.tables:take(side, add_row, add_count) end
  if self.buckets then
    program.take(self.buckets[side], function(bytes, value)
      local key = ffi.cast(numbers, bytes)
      add_count(key, kind_of(key), tonumber(key[self.parts]), ffi.cast(numbers, value)[0])
    end)
  end
  program.take(self.sums[side], function(bytes, value)
    local key = ffi.cast(numbers, bytes)
    add_row(key, kind_of(key), ffi.cast(sums_type, value), nil, self.named and ffi.string(value + SUMS) or nil)
  end)
end

return kernel_sums
