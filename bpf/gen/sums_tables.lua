-- SPDX-License-Identifier: GPL-2.0-only
--- Tables of sums: rows of each CPU before the hashes of bpf/gen/sums.lua, in which a look-up costs 50 to 90 ns.
---
--- A key has the row's two numbers and the number of a bucket, or ROW; 0: free. What is used together is near each
--- other, because cache lines and pages are most of the cost: a place is a hash plus an offset, and if it is taken, the
--- whole neighbourhood is tried elsewhere.
local bit = require 'bit'
local ffi = require 'ffi'
local asm = require 'bpf.gen.asm'
local cpu_list = require 'bindings.base.cpu_list'
local program = require 'bpf.gen.program'
local switch = require 'bpf.gen.switch'
local sys = require 'bindings.base.sys'

local C = ffi.C
local FRAME = asm.FRAME
local sums_tables = {}

local SUMS = ffi.sizeof 'struct hist_sums'
local TABLE_ROWS, TABLE_BUCKETS = 2048, 8192
ffi.cdef(([[
struct sums_table {
  struct { uint64_t key; struct hist_sums sums; } rows[%d];
  struct { uint64_t key, count; } buckets[%d];
};
]]):format(TABLE_ROWS, TABLE_BUCKETS))
local KIND_SHIFT, NUMBER_SHIFT, ROW, MOST_KINDS = 12, 16, 0xfff, 16 -- of a key
local NEAR_BUCKETS, PROBES = 128, 8
local MULTIPLIER = 0x9e3779b97f4a7c15ULL
local table_type = ffi.typeof 'struct sums_table *'
local TABLE, BUCKETS_AT = ffi.sizeof 'struct sums_table', ffi.offsetof('struct sums_table', 'buckets')
local ROW_SIZE, BUCKET_SIZE = BUCKETS_AT / TABLE_ROWS, 16
local KEY = 8 -- bytes
assert(C.HIST_BUCKETS <= ROW and ROW_SIZE == KEY + SUMS and TABLE == BUCKETS_AT + TABLE_BUCKETS * BUCKET_SIZE)

---@class SumsTables
---@field map Descriptor
---@field n integer CPUs that have one
local Tables = {}
Tables.__index = Tables

--- Makes tables for the CPUs that are online.
---@param nr_cpus integer that this kernel can have
---@return SumsTables
function sums_tables.new(nr_cpus)
  local online = cpu_list.numbers(sys.read '/sys/devices/system/cpu/online')
  local n = math.min(nr_cpus, online[#online] + 1)
  return setmetatable({ map = program.mapped(2 * n * TABLE, 'sums_tables'), n = n }, Tables)
end

--- Generates code that looks at the places of a key: r0 becomes the address of each. r2 is the hash, r1 the offset that
--- is added to it. Uses r4. r5 is the table.
---@param at integer of the places in the table
---@param size integer bytes of a place
---@param n integer places, a power of two
---@param look fun() generates code that may jump elsewhere; must keep r2, r4 and r5
local function each_place(a, at, size, n, look)
  a:alu_r('mov', 4, 2)
  a:alu('rsh', 4, 16)
  a:alu('or', 4, 1)
  a:alu('rsh', 2, 40)
  a:alu_r('add', 2, 1)
  for i = 1, PROBES do
    a:alu_r('mov', 0, 2)
    a:alu('and', 0, n - 1)
    a:alu('mul', 0, size)
    a:alu_r('add', 0, 5)
    if at > 0 then a:alu('add', 0, at) end
    look()
    if i < PROBES then a:alu_r('add', 2, 4) end
  end
end

--- Generates r5 = the table of the CPU and side. Jumps if there is none.
function Tables:address(a, places, none)
  switch.part(a, places, 5, { map = self.map, cpus = self.n, sides = 2, size = TABLE }, none)
end

--- Generates r5 = the address of the sums of the row whose key is on the stack, with the number of the bucket after it,
--- and counts one in the bucket. Jumps if the table does not have the row, or no room for the bucket. Then `free`, a
--- place on the stack, is the address of where the row can be, or 0. Uses r0 to r4.
function Tables:add(a, places, key, free, none)
  local found, counted, row = a:new_label(), a:new_label(), a:take(8)
  a:store_value(8, FRAME, free, 0)
  self:address(a, places, none)
  a:load(8, 1, FRAME, key + 8) -- the kind
  a:load(8, 2, FRAME, key)
  a:alu_r('mov', 3, 2)
  a:alu('lsh', 3, NUMBER_SHIFT)
  a:alu_r('mov', 0, 1)
  a:alu('lsh', 0, KIND_SHIFT)
  a:alu_r('or', 3, 0)
  a:store(8, FRAME, row, 3)
  a:alu('or', 3, ROW)
  a:value(0, MULTIPLIER)
  a:alu_r('mul', 2, 0)
  local is_free = a:new_label()
  each_place(a, 0, ROW_SIZE, TABLE_ROWS, function()
    a:load(8, 1, 0, 0)
    a:jump_r('==', 1, 3, found)
    a:jump('==', 1, 0, is_free)
  end)
  a:go(none)
  a:label(is_free)
  a:store(8, FRAME, free, 0)
  a:go(none)
  a:label(found)
  a:load(8, 3, FRAME, row)
  a:store(8, FRAME, row, 0)
  a:value(2, MULTIPLIER)
  a:alu_r('mul', 2, 3)
  a:load(8, 1, FRAME, key + 16)
  a:alu_r('or', 3, 1)
  a:alu('and', 1, NEAR_BUCKETS - 1)
  each_place(a, BUCKETS_AT, BUCKET_SIZE, TABLE_BUCKETS, function()
    local taken = a:new_label()
    a:load(8, 1, 0, 0)
    a:jump_r('==', 1, 3, counted)
    a:jump('!=', 1, 0, taken)
    a:store(8, 0, 0, 3)
    a:go(counted)
    a:label(taken)
  end)
  a:go(none)
  a:label(counted)
  a:load(8, 1, 0, KEY)
  a:alu('add', 1, 1)
  a:store(8, 0, KEY, 1)
  a:load(8, 5, FRAME, row)
  a:alu('add', 5, KEY)
  a:give(row, 8)
end

--- Generates code that gives the row a free place, see add(). Uses r1 to r3.
function Tables:claim(a, key, free) -- luacheck: no self
  local none = a:new_label()
  a:load(8, 1, FRAME, free)
  a:jump('==', 1, 0, none)
  a:load(8, 2, FRAME, key)
  a:alu('lsh', 2, NUMBER_SHIFT)
  a:load(8, 3, FRAME, key + 8)
  a:alu('lsh', 3, KIND_SHIFT)
  a:alu_r('or', 2, 3)
  a:alu('or', 2, ROW)
  a:store(8, 1, 0, 2)
  a:label(none)
end

--- Reads the tables of a side and empties them, see KernelRows:take().
function Tables:take(side, add_row, add_count)
  local key = ffi.new 'int64_t[3]'
  local function split(word)
    key[0], key[2] = bit.rshift(word, NUMBER_SHIFT), bit.band(word, ROW)
    key[1] = bit.band(bit.rshift(word, KIND_SHIFT), MOST_KINDS - 1)
    return key, tonumber(key[1])
  end
  for cpu = 0, self.n - 1 do
    local one = ffi.cast(table_type, self.map.bytes + ((side - 1) * self.n + cpu) * TABLE)
    for i = 0, TABLE_ROWS - 1 do
      local row = one.rows[i]
      if row.sums.count > 0 then
        local numbers, kind = split(row.key)
        add_row(numbers, kind, row.sums)
      end
    end
    for i = 0, TABLE_BUCKETS - 1 do
      local bucket = one.buckets[i]
      if bucket.count > 0 then
        local numbers, kind = split(bucket.key)
        add_count(numbers, kind, tonumber(numbers[2]), ffi.cast('int64_t', bucket.count))
      end
    end
    ffi.fill(one, TABLE)
  end
end

return sums_tables
