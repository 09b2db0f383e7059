-- SPDX-License-Identifier: GPL-2.0-only
--- Tally: programs that count events, add up values and fill histograms, by key, and the maps in which they do it.
--- Each CPU has rows of its own, in two sides (switch.lua), so that nobody waits for anybody and a side can be read at
--- rest. Rows without a key are in a mapped array, those with keys in a hash. A look-up there is most of what an event
--- costs, so keys of one number also have slots in the array, each for the first key with its hash: what counts from
--- the second event of a key on. The time and the name are in the hash.
---
--- A row: the number of events, the time of its first event, a name, the sums, the histogram's statistics, and without
--- a key the histogram's buckets. All rows of one tally have room for the most that one of its events has.
local ffi = require 'ffi'
local asm = require 'bpf.gen.asm'
local bit = require 'bit'
local compile = require 'bpf.gen.compile'
local computed = require 'bpf.gen.computed'
local expr = require 'bindings.expr.compile'
local has = require('bindings.view.views').has
local kernel_sums = require 'bpf.gen.sums'
local libc = require 'bindings.base.libc'
local program = require 'bpf.gen.program'
local switch = require 'bpf.gen.switch'

local C = ffi.C
local FRAME = asm.FRAME
local tally = {}

local WORD, NAME = 8, 16
local COUNT, TIME, FIRST_SUM = 0, 8, 16 -- offsets in a row
local SUM = 16 -- bytes: of the values' lower and upper halves, so that nothing overflows
local HIST = kernel_sums.SIZE -- bytes, of wide sums
local BUCKETS = C.HIST_BUCKETS * WORD
local LINE = 64 -- of the CPU's cache
local MAX_KEY = 80 -- bytes
local BUCKETS_PER_KEY = 16 -- for which there is room
local SLOT_BITS = 8
local SLOTS = 2 ^ SLOT_BITS -- of an event
local MAX_SLOTS = 2 ^ 24 -- bytes, of all CPUs
local MULTIPLIER = 0x9e3779b97f4a7c15ULL
local FIRST_WITH_SLOTS = 5.012 -- the first kernel in which programs can compare and exchange

local words = ffi.typeof 'uint64_t *'
local AT = kernel_sums.AT

--- What is counted of an event.
---@class TallyEvent
---@field event Event
---@field fields table<string, Field> that the expressions can use
---@field key TallyKey[] expressions; constants and _cpu cost nothing
---@field filter? string condition: other events are only counted as ignored
---@field threads? boolean events in threads that have exited are ignored
---@field name? string expression: the name of a key is that of its first event
---@field sums string[] expressions; without a value they are 0
---@field hist? string expression
---@field signed? boolean negative values have a histogram of their own, of their absolute values

---@class KernelTally
local Tally = {}
Tally.__index = Tally

-- Parts -------------------------------------------------------------------------------------------

local EXACT = 2 ^ 53 -- integers beyond are not numbers of Lua

--- A value of an event that a program stores in a map, such as a part of a key: a number, the name of a task, or a
--- number that becomes text when it is read, such as the address in ksymbol(address).
---@class Part
---@field size integer bytes, 8 or 16
---@field type string the type of a number, or 'string'
---@field store fun(a: Asm, source: Source, at: integer, none: string) stores the value at a place on the stack; jumps
--- to `none` if there is no value
---@field read fun(bytes: ffi.cdata*): number|ffi.cdata*|string returns the value from a copy of these bytes

-- How a number is read, by its type.
local READ = {
  i32 = function(word) return tonumber(ffi.cast('int64_t', word)) end,
  u32 = function(word) return tonumber(word) end,
  i64 = function(word) return ffi.cast('int64_t', word) end,
  u64 = function(word) return word end,
}

-- Functions that are called when a number is read.
local LATE = {
  ksymbol = function(call, word) return call(word) end,
  syscall_name = function(call, word) return call(tonumber(ffi.cast('int32_t', word))) end,
}

local function number_part(tree, late)
  local part = { size = 8, type = late and 'string' or 'u64' }
  local read
  function part.store(a, source, at, none)
    local kind = compile.value(a, tree, { source = source }, { none = none })
    a:store(8, asm.FRAME, at, 0)
    part.type, read = late and 'string' or kind, READ[kind]
  end
  function part.read(bytes)
    local word = ffi.cast(words, bytes)[0]
    if late then return late(word) end
    return read(word)
  end
  return part
end

local function text_of(bytes) return ffi.string(bytes, libc.strnlen(bytes, NAME)) end

--- The name of the current task.
local COMM = {
  size = NAME,
  type = 'string',
  store = function(a, source, at)
    if not source.comm then asm.refuse "the kernel cannot tell '_comm' at the event" end
    source:comm(a, at)
  end,
  read = text_of,
}

local function name_field(field)
  return {
    size = NAME,
    type = 'string',
    store = function(a, source, at)
      for off = 0, NAME - 8, 8 do
        source:load(a, 8, 0, field, off)
        a:store(8, asm.FRAME, at + off, 0)
      end
    end,
    read = text_of,
  }
end

--- Returns the part for an expression, or refuses.
---@param fields table<string, Field>
---@param text string a valid C expression
---@param env table<string, function> the functions of LATE
---@return Part
local function part_of(fields, text, env)
  local compiled, err = expr.compile(text, fields)
  if not compiled then asm.refuse('%s', err.message) end
  local tree = compiled.tree
  local node = tree.node
  if compiled.type ~= 'string' then return number_part(tree) end
  if node.op == 'call' and LATE[node.name] then
    local late, call = LATE[node.name], env[node.name]
    return number_part({ node = node.args[1], context = tree.context, assigned = tree.assigned },
      function(word) return late(call, word) end)
  end
  if node.op == 'var' and node.name == '_comm' then return COMM end
  if node.op == 'var' and node.name == '_container' then
    return number_part(expr.compile('_cgroup', fields).tree, env.container_of)
  end
  local field = node.op == 'var' and fields[node.name]
  if field and has(field, 'ARRAY') and field.size == NAME then return name_field(field) end
  asm.refuse("'%s' is text that only profscript can read", text)
end

--- Returns the part for an expression whose value is a number, or refuses.
local function numeric_part(fields, text, env)
  local part = part_of(fields, text, env)
  if part.type == 'string' then asm.refuse("'%s' is not a number", text) end
  return part
end

--- Returns the part for a number that becomes text when it is read, by a function that takes what Lua would have.
---@param fields table<string, Field>
---@param text string a valid C expression
---@param call fun(n: number|ffi.cdata*): string
---@return Part
local function text_part(fields, text, call)
  local part = part_of(fields, text, {})
  return setmetatable({ type = 'string', read = function(bytes)
    local value = part.read(bytes)
    local n = tonumber(value)
    return call(n > -EXACT and n < EXACT and n or value)
  end }, { __index = part })
end

-- Layout ------------------------------------------------------------------------------------------

local function lines(size) return math.ceil(size / LINE) * LINE end

--- Sets the places in the rows and in the cells of a CPU.
local function lay_out(self)
  local sums, hist, name = 0, false, false
  for _, one in ipairs(self.list) do
    sums = math.max(sums, #one.sums)
    hist, name = hist or one.hist ~= nil, name or one.name ~= nil
  end
  self.name_at = FIRST_SUM
  self.sums_at = FIRST_SUM + (name and NAME or 0)
  self.hist_at = self.sums_at + sums * SUM
  self.row = self.hist_at + (hist and HIST or 0)
  local at = 0
  for _, one in ipairs(self.list) do
    one.without_at = at -- events without a key or a value
    one.cell_at = at + WORD -- the row of all events, or of those whose key has no room
    at = at + WORD + self.row
    if one.hist then
      one.negative_at = at -- the statistics of negative numbers
      one.buckets_at = at + HIST
      at = one.buckets_at + BUCKETS * (one.signed and 2 or 1)
    end
  end
  self.slot = WORD + self.row -- the key plus 1, or 0, and the row
  for _, one in ipairs(self.list) do
    local size = SLOTS * self.slot
    if one.key_size == WORD and size * #self.list * self.nr_cpus * self.sides <= MAX_SLOTS
      and computed.release() >= FIRST_WITH_SLOTS then
      one.slots_at, at = at, at + size
    end
  end
  self.stride = lines(at)
end

--- Splits the key into the parts that are hashed, and _cpu, which all rows have.
local function split_key(one, fields, env)
  one.parts, one.hashed, one.key_size = {}, 0, 0
  for i, text in ipairs(one.key) do
    local call = type(text) == 'table' and text.text or nil
    if text == '_cpu' or type(text) == 'table' and not call then
      one.parts[i] = { is_cpu = text == '_cpu', constant = text ~= '_cpu' and text.constant or nil }
    else
      local part = call and text_part(fields, text.of, call) or part_of(fields, text, env)
      one.parts[i] = part
      part.at = one.key_size
      one.key_size, one.hashed = one.key_size + part.size, one.hashed + 1
    end
  end
end

-- Programs ----------------------------------------------------------------------------------------

--- r0 = the CPU's cells of the side in use, plus an offset. Uses r1.
local function cells(self, a, places, off)
  local of = { map = self.cells, cpus = self.nr_cpus, sides = self.sides, size = self.stride, off = off }
  switch.part(a, places, 0, of, 'done') -- not every verifier knows which CPUs there are
end

--- Adds one to the word at r0 + off. Uses r1.
local function increment(a, to, off)
  a:alu('mov', 1, 1)
  a:atomic_add(8, to, off, 1)
end

--- Stores the key on the stack, with room for the number of a bucket after it.
---@return integer place
local function store_key(self, a, source, places, one, index)
  local size = self.key_size
  local key_at = a:take(size + WORD)
  for _, part in ipairs(one.parts) do
    if part.at then part.store(a, source, key_at + part.at, 'without') end
  end
  if one.threads then
    a:load(8, 0, FRAME, key_at + one.parts[1].at)
    a:jump('s<', 0, 0, 'done')
  end
  for at = one.key_size, size - 2 * WORD, WORD do a:store_value(8, FRAME, key_at + at, 0) end
  a:load(8, 1, FRAME, places.cpu)
  a:alu('lsh', 1, 32)
  a:alu('or', 1, index)
  a:store(8, FRAME, key_at + size - WORD, 1)
  return key_at
end

--- r7 = the row of the key in the hash; jumps to `full` if there is no room for it.
local function find_hashed(self, a, source, places, one, key_at)
  local row_at = a:take(self.row)
  kernel_sums.find_or_make(a, places, self.rows, key_at, row_at, 'full', function()
    a:call 'ktime_get_ns'
    a:store(8, FRAME, row_at + TIME, 0)
    if not one.name_part then return end
    local nameless = a:new_label()
    one.name_part.store(a, source, row_at + self.name_at, nameless)
    a:label(nameless)
  end)
  a:give(row_at, self.row)
  a:alu_r('mov', 7, 0)
end

--- r7 = the row of the key; jumps to `full` if there is no room for it.
local function find_row(self, a, source, places, one, key_at)
  if not one.slots_at then return find_hashed(self, a, source, places, one, key_at) end
  cells(self, a, places, one.slots_at)
  a:load(8, 1, FRAME, key_at)
  a:value(2, MULTIPLIER)
  a:alu_r('mul', 2, 1)
  a:alu('rsh', 2, 64 - SLOT_BITS)
  a:alu('mul', 2, self.slot)
  a:alu_r('add', 0, 2)
  a:address(7, 0, WORD)
  a:load(8, 2, 0, 0)
  a:alu('add', 1, 1)
  a:jump('==', 1, 0, 'elsewhere')
  a:jump_r('==', 1, 2, 'in its slot')
  a:label 'elsewhere'
  local slot_at = a:take(WORD)
  a:store(8, FRAME, slot_at, 0)
  find_hashed(self, a, source, places, one, key_at)
  -- The next event of the key finds the slot. One that interrupts this program may have taken it.
  a:load(8, 2, FRAME, slot_at)
  a:load(8, 0, 2, 0)
  a:jump('!=', 0, 0, 'in its slot')
  a:load(8, 1, FRAME, key_at)
  a:alu('add', 1, 1)
  a:compare_exchange(2, 0, 1)
  a:give(slot_at, WORD)
  a:label 'in its slot'
end

--- r8 = the count of the bucket in r3 of the key; jumps to `full` if there is no room for it.
local function find_bucket(self, a, places, key_at)
  a:store(8, FRAME, key_at + self.key_size, 3)
  local count_at = a:take(WORD)
  kernel_sums.find_or_make(a, places, self.buckets, key_at, count_at, 'full')
  a:give(count_at, WORD)
  a:alu_r('mov', 8, 0)
end

--- Counts the event in the row at r7, and adds the values on the stack to its sums.
local function add_event(self, a, one, sums)
  increment(a, 7, COUNT)
  for i, at in ipairs(sums) do
    a:load(8, 0, FRAME, at)
    local sum_at = self.sums_at + (i - 1) * SUM
    kernel_sums.add_halves(a, sum_at, sum_at + WORD, one.sum_parts[i].type == 'u64')
  end
end

--- Counts one in the bucket of r0 of those at r7 + off, which may exceed the offset of an instruction. The verifier
--- follows each path to here apart, so this comes last.
local function add_bucket(a, off)
  kernel_sums.number(a, 0, 3, 'done')
  a:alu('lsh', 3, 3)
  a:alu_r('add', 7, 3)
  a:alu('add', 7, off)
  increment(a, 7, 0)
end

--- Turns the value on the stack into one that a histogram can hold, in r0. Jumps to `negative` for negative ones that
--- have a histogram of their own. noted: counts in the row at r7 that it was another one.
local function load_value(self, a, one, value_at, noted)
  a:load(8, 0, FRAME, value_at)
  if one.hist_part.type == 'u64' then return end
  if one.signed then return a:jump('s<', 0, 0, 'negative') end
  local usual = a:new_label()
  a:jump('s>=', 0, 0, usual)
  if noted then increment(a, 7, self.hist_at + AT.negative) end
  a:alu('mov', 0, 0)
  a:label(usual)
end

--- Adds the value to the histogram of the cell at r7, which has its buckets.
local function add_to_cell(self, a, one, value_at)
  local buckets_at = one.buckets_at - one.cell_at
  load_value(self, a, one, value_at, true)
  kernel_sums.add_wide(a, self.hist_at)
  add_bucket(a, buckets_at)
  if not one.signed then return end
  a:go 'done'
  a:label 'negative'
  a:load(8, 0, FRAME, value_at)
  a:alu('neg', 0, 0)
  kernel_sums.add_wide(a, one.negative_at - one.cell_at)
  add_bucket(a, buckets_at + BUCKETS)
end

--- Generates the program of an event.
local function generate(self, a, source, places, one, index)
  local sums, value_at = {}, one.hist and a:take(WORD)
  if one.condition then compile.condition(a, one.condition.tree, { source = source }, { none = 'without' }) end
  for i, part in ipairs(one.sum_parts) do
    local none, known = a:new_label(), a:new_label()
    sums[i] = a:take(WORD)
    part.store(a, source, sums[i], none)
    a:go(known)
    a:label(none)
    a:store_value(8, FRAME, sums[i], 0)
    a:label(known)
  end
  if one.hist then one.hist_part.store(a, source, value_at, 'without') end
  if one.hashed > 0 then
    local key_at = store_key(self, a, source, places, one, index)
    find_row(self, a, source, places, one, key_at)
    if one.hist then
      load_value(self, a, one, value_at, false)
      kernel_sums.number(a, 0, 3)
      find_bucket(self, a, places, key_at)
      load_value(self, a, one, value_at, true)
      kernel_sums.add_wide(a, self.hist_at)
      increment(a, 8, 0)
    end
    add_event(self, a, one, sums)
    a:go 'done'
  end
  a:label 'full'
  cells(self, a, places, one.cell_at)
  a:alu_r('mov', 7, 0)
  add_event(self, a, one, sums)
  if one.hist then add_to_cell(self, a, one, value_at) end
  a:go 'done'
  a:label 'without'
  cells(self, a, places, one.without_at)
  increment(a, 0, 0)
end

-- Reading -----------------------------------------------------------------------------------------

local NO_KEY = 0xffffffffffffffffULL

--- Reads the cells and slots of a side and clears them.
---@param side integer
---@param each fun(index: integer, cpu: integer, row: ffi.cdata*, without: number) for each event
---@param each_slot fun(index: integer, cpu: integer, row: ffi.cdata*, key: ffi.cdata*) for each slot in use
function Tally:read_cells(side, each, each_slot)
  local key = ffi.new 'uint64_t[1]'
  for cpu = 0, self.nr_cpus - 1 do
    local at = self.cells.bytes + ((side - 1) * self.nr_cpus + cpu) * self.stride
    for i, one in ipairs(self.list) do
      each(i, cpu, at + one.cell_at, tonumber(ffi.cast(words, at + one.without_at)[0]))
      for slot = 0, one.slots_at and SLOTS - 1 or -1 do
        local from = at + one.slots_at + slot * self.slot
        key[0] = ffi.cast(words, from)[0] - 1
        if key[0] ~= NO_KEY then each_slot(i, cpu, from + WORD, ffi.cast('uint8_t *', key)) end
      end
    end
    ffi.fill(at, self.stride)
  end
end

--- Takes the rows of the hash of a side.
---@param side integer
---@param each fun(index: integer, cpu: integer, row: ffi.cdata*, key: ffi.cdata*)
function Tally:take_rows(side, each)
  if not self.rows then return end
  program.take(self.rows[side], function(key, row)
    local tail = ffi.cast('uint32_t *', key + self.key_size - WORD)
    each(tail[0], tail[1], row, key)
  end)
end

--- Takes the buckets of the rows of a side.
---@param side integer
---@param each fun(index: integer, cpu: integer, number: integer, count: number, key: ffi.cdata*)
function Tally:take_buckets(side, each)
  if not self.buckets then return end
  program.take(self.buckets[side], function(key, count)
    local tail = ffi.cast('uint32_t *', key + self.key_size - WORD)
    each(tail[0], tail[1], tail[2], tonumber(ffi.cast(words, count)[0]), key)
  end)
end

--- The number of events of a row.
function Tally:count(row) return tonumber(ffi.cast(words, row + COUNT)[0]) end -- luacheck: no self

--- The time of the first event of a row with a key.
function Tally:time(row) return ffi.cast(words, row + TIME)[0] end -- luacheck: no self

--- The name of a row.
function Tally:name(row, index) return self.list[index].name_part.read(row + self.name_at) end

--- The sum i of a row, as two numbers which add up to it: the sum of numbers of Lua may be rounded.
function Tally:sum(row, i)
  local sum = ffi.cast(words, row + self.sums_at + (i - 1) * SUM)
  local high = ffi.cast('int64_t', sum[1] + bit.rshift(sum[0], 32))
  return tonumber(high) * 2 ^ 32, tonumber(sum[0] % 2 ^ 32)
end

--- Adds the histogram of a cell to histogram `slot` of each of the sets.
---@param row ffi.cdata*
---@param index integer
---@param set HistSet
---@param negative? HistSet
---@param slot integer
function Tally:add_hist(row, index, set, negative, slot)
  local one = self.list[index]
  local function add(to, stats_at, buckets_at)
    local counts = ffi.cast(words, row + buckets_at)
    local n = kernel_sums.values_in(counts)
    if n > 0 then C.hist_set_add_sums(to, slot, kernel_sums.narrow(row + stats_at, n), counts) end
  end
  local buckets_at = one.buckets_at - one.cell_at
  add(set, self.hist_at, buckets_at)
  if one.signed then add(negative, one.negative_at - one.cell_at, buckets_at + BUCKETS) end
end

--- Adds the statistics of a row with a key to a histogram.
function Tally:add_stats(row, set, slot)
  C.hist_set_add_sums(set, slot, kernel_sums.narrow(row + self.hist_at, self:count(row)), nil)
end

local none = ffi.new 'struct hist_sums'

--- Adds counts by number of bucket to a histogram, whose statistics add_stats() adds.
---@param counts table<integer, number>
---@param set HistSet
---@param slot integer
function Tally:add_buckets(counts, set, slot)
  self._counts = self._counts or ffi.new('uint64_t[?]', C.HIST_BUCKETS)
  for number, count in pairs(counts) do self._counts[number] = count end
  C.hist_set_add_sums(set, slot, none, self._counts)
  for number in pairs(counts) do self._counts[number] = 0 end
end

-- Setting up --------------------------------------------------------------------------------------

--- Returns a tally, with its maps. Refuses what cannot be counted in the kernel.
---@param list TallyEvent[]
---@param settings { nr_cpus: integer, sides: integer, max_keys: integer, env: table<string, function> }
---@return KernelTally
function tally.new(list, settings)
  local self, has_hist = setmetatable({ list = list, nr_cpus = settings.nr_cpus, sides = settings.sides, key_size = 0 },
    Tally), false
  for _, one in ipairs(list) do
    local fields = one.fields
    split_key(one, fields, settings.env)
    one.sum_parts = {}
    for i, text in ipairs(one.sums) do one.sum_parts[i] = numeric_part(fields, text, settings.env) end
    one.hist_part = one.hist and numeric_part(fields, one.hist, settings.env)
    if one.filter then
      local wrong
      one.condition, wrong = expr.compile(one.filter, fields, { form = 'filter' })
      if not one.condition then asm.refuse('%s', wrong.message) end
    end
    one.name_part = one.name and part_of(fields, one.name, settings.env)
    if one.signed and one.hashed > 0 then asm.refuse 'histograms of negative numbers have no keys there' end
    has_hist = has_hist or one.hist ~= nil and one.hashed > 0
    if one.hashed > 0 then self.key_size = math.max(self.key_size, one.key_size + WORD) end
  end
  if self.key_size > MAX_KEY then asm.refuse 'its keys are too long' end
  lay_out(self)
  self.cells = program.mapped(self.sides * self.nr_cpus * self.stride, 'count_cells')
  if self.key_size == 0 then return self end
  self.rows = switch.maps(settings.sides, function()
    return program.hash(self.key_size, self.row, settings.max_keys, 'count_rows')
  end)
  self.buckets = has_hist and switch.maps(settings.sides, function()
    return program.hash(self.key_size + WORD, WORD, settings.max_keys * BUCKETS_PER_KEY, 'count_buckets')
  end)
  return self
end

--- Returns the body of the program of event i, see probe.load().
---@param i integer
---@return fun(a: Asm, source: Source, places: ProbePlaces)
function Tally:body(i)
  return function(a, source, places) generate(self, a, source, places, self.list[i], i) end
end

return tally
