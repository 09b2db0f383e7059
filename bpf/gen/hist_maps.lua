-- SPDX-License-Identifier: GPL-2.0-only
--- Histograms that built-in BPF programs fill, in maps that no program writes to at the moment: adds them to a set of
--- histograms, and empties the maps. A cell is a struct hist_sums and its buckets, of each CPU. A row is a struct
--- hist_sums and the name of a thread; its buckets are in another map. Most values of rows are in a table of the CPU.
local ffi = require 'ffi'
local bpf_map = require 'bindings.bpf.map'
local failure = require 'bindings.base.failure'
local libbpf = require 'bindings.bpf.libbpf'
local output = require 'bindings.print.output'
local program = require 'bpf.gen.program'
local sys = require 'bindings.base.sys'

local C = ffi.C
local hist_maps = {}

local sums_type, words = ffi.typeof 'struct hist_sums *', ffi.typeof 'uint64_t *'
local SUMS = ffi.sizeof 'struct hist_sums'

-- struct table of bpf/task_state.bpf.c
ffi.cdef [[
struct hist_row { uint32_t tid; uint16_t kind, bucket; };
struct hist_table {
  struct { struct hist_row key; struct hist_sums sums; } rows[2048];
  struct { struct hist_row key; uint64_t count; } buckets[8192];
};
]]
local table_type, TABLE = ffi.typeof 'struct hist_table *', ffi.sizeof 'struct hist_table'
local TABLE_ROWS, TABLE_BUCKETS = 2048, 8192
local row_type = ffi.typeof 'struct hist_row *'

local function check_added(ret)
  if ret ~= 0 then failure.raise 'out of memory for histograms' end
end

local function check_map(ret)
  if ret < 0 then failure.raise('a BPF map of histograms: %s', sys.strerror(-ret)) end
end

--- Takes the cells from `first` of a per-CPU array: to n histograms from `slot`.
---@param map BpfMap
---@param first integer
---@param n integer
---@param set HistSet
---@param slot integer
function hist_maps.take_cells(map, first, n, set, slot)
  local at, lib = bpf_map.descriptor(map), libbpf.open()
  local size = at.value_size * at.nr_cpus
  local key, values = ffi.new 'uint32_t[1]', ffi.new('uint8_t[?]', size)
  for i = 0, n - 1 do
    key[0] = first + i
    check_map(lib.bpf_map_lookup_elem(at.fd, key, values))
    local is_empty = true
    for cpu = 0, at.nr_cpus - 1 do
      local cell = values + cpu * at.value_size
      local sums = ffi.cast(sums_type, cell)
      if sums.count > 0 then
        check_added(C.hist_set_add_sums(set, slot + i, sums, ffi.cast(words, cell + SUMS)))
        is_empty = false
      end
    end
    if not is_empty then
      ffi.fill(values, size)
      check_map(lib.bpf_map_update_elem(at.fd, key, values, 0))
    end
  end
end

--- Takes the rows of a hash and their buckets.
---@param sums_map BpfMap
---@param buckets_map BpfMap
---@param set HistSet
---@param slot fun(tid: integer, kind: integer): integer returns the number of a row's histogram
---@return table<integer, string> names by thread
function hist_maps.take_rows(sums_map, buckets_map, set, slot)
  local names = {}
  program.take(bpf_map.descriptor(sums_map), function(key, value)
    local row, sums = ffi.cast(row_type, key), ffi.cast(sums_type, value)
    if sums.count == 0 then return end
    check_added(C.hist_set_add_sums(set, slot(row.tid, row.kind), sums, nil))
    names[row.tid] = output.safe(ffi.string(value + SUMS))
  end)
  program.take(bpf_map.descriptor(buckets_map), function(key, value)
    local row, count = ffi.cast(row_type, key), ffi.cast(words, value)[0]
    if count > 0 then check_added(C.hist_set_add_bucket(set, slot(row.tid, row.kind), row.bucket, count)) end
  end)
  return names
end

--- Returns a function that takes the tables of all CPUs on a side.
---@param map BpfMap of a table for each CPU and side
---@return fun(side: integer, set: HistSet, slot: fun(tid: integer, kind: integer): integer)
function hist_maps.tables(map)
  local memory, at = bpf_map.memory(map), bpf_map.descriptor(map)
  assert(at.value_size == TABLE, 'the layout of tables')
  return function(side, set, slot)
    for i = side, at.entries - 1, 2 do
      local one = ffi.cast(table_type, memory + i * TABLE)
      for j = 0, TABLE_ROWS - 1 do
        local row = one.rows[j]
        if row.sums.count > 0 then
          check_added(C.hist_set_add_sums(set, slot(row.key.tid, row.key.kind), row.sums, nil))
        end
      end
      for j = 0, TABLE_BUCKETS - 1 do
        local bucket = one.buckets[j]
        if bucket.count > 0 then
          check_added(C.hist_set_add_bucket(set, slot(bucket.key.tid, bucket.key.kind), bucket.key.bucket,
            bucket.count))
        end
      end
      ffi.fill(one, TABLE)
    end
  end
end

return hist_maps
