-- SPDX-License-Identifier: GPL-2.0-only
-- Programs that pair events, compared with runtime/relations/pairs.c on random events: the same pairs, latencies and
-- counters, and the same outliers. The programs are run on synthetic events, with the times of these.
local bit = require 'bit'
local ffi = require 'ffi'
local asm = require 'bpf.gen.asm'
local capture = require 'bpf.gen.capture'
local expr = require 'bindings.expr.compile'
local hist = require 'bindings.base.hist'
local kernel_pairs = require 'bpf.gen.pairs'
local libc = require 'bindings.base.libc'
local outliers = require 'bpf.gen.sent_pairs'
local run_bpf = require 'tests.unit.bpf.gen.run_bpf'
local targets = require 'bpf.gen.targets'

local C = ffi.C

ffi.cdef [[
struct pair_record {
  int64_t key, value; int64_t prev_state;
  int32_t pid, target_cpu, common_pid, prev_pid, next_pid, role;
  int64_t time, cpu, side;
};
]]
local record_type = ffi.typeof 'struct pair_record'
local function at(name) return ffi.offsetof(record_type, name) end

local fields, list = {}, {}
for name, size in pairs { key = 8, value = 8, prev_state = 8, pid = 4, target_cpu = 4, common_pid = 4, prev_pid = 4,
  next_pid = 4, role = 4 } do
  fields[name] = { name = name, offset = at(name), size = size, elem_size = size, count = 1, flags = C.FIELD_SIGNED,
    type = 'int' }
  list[#list + 1] = fields[name]
end

local compiled = {}
local function value(text)
  compiled[text] = compiled[text] or assert(expr.compile(text, fields))
  return compiled[text]
end

local CPUS, TASKS = 3, 12

local on = run_bpf.on(record_type, CPUS)
local run = on.run

--- Returns the program of a rule. is_alone: it writes without locks.
local function load(pairs_, rule, is_alone) return on.load(pairs_:body(rule, true, is_alone)) end

--- Returns the program of a thread that gets another id: next_pid instead of prev_pid.
local function load_move(pairs_)
  return on.load(function(a, source, places)
    a:load(4, 7, asm.CONTEXT, at 'prev_pid')
    a:load(4, 8, asm.CONTEXT, at 'next_pid')
    a:jump_r('==', 7, 8, 'done')
    pairs_:move_body()(a, source, places)
  end)
end

--- Keys of which many have the same place: multiples of the inverse of the hash's multiplier differ only in bits that
--- the place does not have.
local function hashed_keys()
  local keys, by_place = { -1LL, 0LL, -2LL, 1LL, bit.lshift(1LL, 40) }, {}
  local n = 0
  for key = 1, 100000 do
    local place = tonumber(bit.rshift(key * 0x9e3779b97f4a7c15ULL, 48))
    if by_place[place] then
      keys[#keys + 1], keys[#keys + 2] = by_place[place] + 0LL, key + 0LL
      by_place[place] = nil
      n = n + 1
      if n == 15 then break end
    else
      by_place[place] = key
    end
  end
  return keys
end

local MASK = 0x7f

local ROWS = { { 'key' }, { 'value' }, { 'key', 'value' } }
local MOST_ROWS = 20

local function random_rows(random)
  if random(2) == 1 then return nil end
  local kinds = random(2) == 1 and 16 or nil
  return { by = ROWS[random(3)], most = random(2) == 1 and MOST_ROWS or 2000, kinds = kinds,
    buckets = kinds ~= nil or random(2) == 1 }
end

local function random_plan(random)
  local stages = random(1, 4)
  local plan = { stages = stages, cycle = stages == 1 or random(2) == 1, rules = {},
    threshold = random(2) == 1 and 20 or -1, sides = 2, rows = random_rows(random),
    clock = function(a) a:load(8, 0, asm.CONTEXT, at 'time') end }
  local has_roles, is_sched = random(2) == 1, stages == 2 and not plan.cycle and random(3) > 1
  plan.direct = (is_sched or random(2) == 1) and 40 or nil
  for stage = 0, stages - 1 do
    for place = 0, random(1, 2) - 1 do
      local key = not is_sched and 'key' or stage == 1 and 'next_pid' or 'pid'
      table.insert(plan.rules, { stage = stage, place = place, key = value(key), key_field = key,
        role = has_roles and value 'role' or nil })
      if plan.rows then
        local rule = plan.rules[#plan.rules]
        rule.value = value 'value'
        rule.same = random(2) == 1 and { value = value 'common_pid', any = 3 } or nil
        rule.failed = random(2) == 1 and value 'prev_state < 100' or nil
      end
    end
  end
  if is_sched then
    local wakeup, switch = plan.rules[1], plan.rules[#plan.rules]
    wakeup.wakeup = { task = value 'pid', target = value 'target_cpu', waker = value 'common_pid' }
    switch.switch = { task = value 'next_pid', before = value 'prev_pid' }
    switch.ends = { key = value 'prev_pid', bits = value 'prev_state', mask = MASK }
    if #plan.rules > 2 and plan.rules[2].stage == 0 and random(2) == 1 then
      plan.rules[2].is_derived, switch.ends.awake = true, plan.rules[2]
    end
  end
  return plan
end

-- Outliers ---------------------------------------------------------------------------------------

local EVENT, ID = 'raw_syscalls:sys_enter', 1234
local SAMPLE, SAMPLE_TIME, SAMPLE_RAW = 9, 24, 44
local words = ffi.typeof 'uint64_t *'

--- Rings with a function that returns the outliers in them, and empties them.
local function new_rings()
  local rings = capture.rings(4, 50)
  local each = C.CAPTURE_DATA + rings.size + C.CAPTURE_MARGIN
  local memory = libc.mmap(nil, each * rings.nr_cpus, libc.PROT_READ + libc.PROT_WRITE, libc.MAP_SHARED,
    rings.map.fd, 0)
  local bytes = ffi.cast('uint8_t *', memory)
  local function word(cpu, at_) return ffi.cast(words, bytes + cpu * each + at_) end
  for cpu = 0, rings.nr_cpus - 1 do word(cpu, C.CAPTURE_ENABLED)[0] = 1 end
  return rings, function()
    local found = {}
    for cpu = 0, rings.nr_cpus - 1 do
      local head, tail = word(cpu, C.CAPTURE_HEAD)[0], word(cpu, C.CAPTURE_TAIL)
      while tail[0] < head do
        local record = bytes + cpu * each + C.CAPTURE_DATA + tonumber(tail[0] % rings.size)
        assert.equal(SAMPLE, ffi.cast('uint32_t *', record)[0])
        assert.equal(ID, tonumber(ffi.cast(words, record)[1]))
        found[#found + 1] = { time = tonumber(ffi.cast(words, record + SAMPLE_TIME)[0]), raw = record + SAMPLE_RAW,
          size = ffi.cast('uint16_t *', record + 6)[0],
          pair = ffi.cast('struct outlier *', record + SAMPLE_RAW + capture.raw_size(list)) }
        tail[0] = tail[0] + ffi.cast('uint16_t *', record + 6)[0]
      end
    end
    return found
  end
end

local all_rings, take_outliers

--- Lets the programs of a plan send outliers.
local function add_outliers(plan, than, lower)
  if not all_rings then all_rings, take_outliers = new_rings() end
  plan.outliers = { than = than, lower = lower, rings = all_rings, size = outliers.size(list), number = 0 }
  for _, rule in ipairs(plan.rules) do
    rule.sample = { event = EVENT, list = list, type = 1, number = 0, id = ID }
  end
end

--- Returns whether an event that was kept has the fields of a record.
local function is_record(kept, r)
  return ffi.string(kept.raw + 8, at 'time' - 8) == ffi.string(ffi.cast('uint8_t *', r) + 8, at 'time' - 8)
end

--- Asserts that just these outliers were sent: none, or the one that ends with record r.
---@param out ffi.cdata*? struct pair
---@param candidates ffi.cdata*[] records that may be the first event
local function check_outliers(out, candidates, r, tag)
  local found = take_outliers()
  assert.equal(out and 1 or 0, #found)
  if not out then return end
  local one = found[1].pair
  assert.equal(tonumber(r.time), found[1].time)
  assert.same({ out.ns, tostring(out.key), out.kind, tag, out.first_time },
    { tonumber(one.ns), tostring(one.key), one.kind, one.tag, tonumber(one.time) })
  local is_one = false
  for _, candidate in ipairs(candidates) do is_one = is_one or is_record(one, candidate) end
  assert.is_true(is_one, 'the fields of the first event')
end

--- Asserts that just record r was sent, as a captured event, or none.
local function check_passed(is_sent, r)
  local found = take_outliers()
  assert.equal(is_sent and 1 or 0, #found)
  if not is_sent then return end
  assert.same({ tonumber(r.time), SAMPLE_RAW + capture.raw_size(list) }, { found[1].time, found[1].size })
  assert.is_true(is_record(found[1], r), 'the fields of the second event')
end

--- Returns a plan with the same rules that adds up nothing, and sends only the second events of outliers.
local function only_outliers(plan)
  local own = {}
  for name, one in pairs(plan) do own[name] = one end
  own.rows, own.only_outliers, own.outliers.size = nil, true, nil
  return own
end

local MOVE = C.EVENT_FIRST + 60

--- Returns the matcher in C for the same plan. The class of rule i is EVENT_FIRST + i - 1.
local function matcher(plan)
  local config = ffi.new('struct pairs_config', { stages = plan.stages, cycle = plan.cycle and 1 or 0 })
  local p = ffi.gc(C.pairs_new(config), C.pairs_free)
  local class_of = {}
  for i, rule in ipairs(plan.rules) do class_of[rule] = C.EVENT_FIRST + i - 1 end
  for _, rule in ipairs(plan.rules) do
    local class = class_of[rule]
    C.pairs_add_class(p, class, rule.stage)
    local key = fields[rule.key_field]
    C.pairs_set_key(p, class, key.offset, key.size, 1)
    C.pairs_set_value(p, class, at 'value', 8, 1)
    if rule.wakeup then C.pairs_set_wakeup(p, class, 0, at 'pid', at 'target_cpu', at 'common_pid') end
    if rule.switch then C.pairs_set_switch(p, class, 0, at 'next_pid', at 'prev_pid') end
    if rule.ends then
      C.pairs_set_end(p, class, at 'prev_pid', at 'prev_state', 8, MASK)
      if rule.ends.awake then C.pairs_set_awake(p, class, class_of[rule.ends.awake]) end
    end
  end
  C.pairs_set_exec(p, MOVE, 0, false, at 'next_pid', at 'prev_pid')
  return p, class_of
end

local ROLE_FLAGS = { [0] = C.EVENT_NO_FIRST + C.EVENT_NO_SECOND, C.EVENT_NO_SECOND, C.EVENT_NO_FIRST, 0 }

--- Sums by name: what one of the two has found.
local Sums = {}
Sums.__index = Sums

local function new_sums(plan)
  return setmetatable({ plan = plan, ids = {}, n = 0, failed = {},
    hists = hist.set(4096, plan.threshold >= 0 and plan.threshold or nil) }, Sums)
end

--- Returns the number of a histogram by its name.
function Sums:id(name)
  if not self.ids[name] then
    self.ids[name], self.n = self.n, self.n + 1
  end
  return self.ids[name]
end

local function name_of(plan, key, kind)
  local parts = {}
  for i in ipairs(plan.rows.by) do parts[i] = tostring(key[i - 1] + 0LL) end
  return ('%s of kind %s'):format(table.concat(parts, ' '), kind or 'any')
end

function Sums:add(name, ns, failed)
  self.hists:add(self:id(name), ns)
  if failed then self.failed[name] = (self.failed[name] or 0) + 1 end
end

--- Returns what was found by name. Without kinds, there are no quantiles, but perhaps counts by power of two.
function Sums:summaries()
  local texts = {}
  for name, id in pairs(self.ids) do
    local h = self.hists:get(id)
    local s = h and h:stats()
    if s and s.count > 0 then
      texts[name] = ('%d %d %d %d %d, %d failed'):format(s.count, s.sum, s.min, s.max, s.over, self.failed[name] or 0)
      if not self.plan.rows or self.plan.rows.kinds then
        texts[name] = ('%s: %d %d %d'):format(texts[name], h:quantile(0.2), h:quantile(0.5), h:quantile(0.9))
      elseif self.plan.rows.buckets then
        for _, row in ipairs(h:log2()) do
          if row.count > 0 then texts[name] = ('%s, %s: %d'):format(texts[name], row.exponent, row.count) end
        end
      end
    end
  end
  return texts
end

--- Adds what a side of the maps holds.
local function read(in_kernel, side, got)
  local plan = in_kernel.plan
  local function add(name, sums, buckets)
    assert.equal(0, C.hist_set_add_sums(got.hists, got:id(name), sums, buckets))
    if sums.failed > 0 then got.failed[name] = (got.failed[name] or 0) + tonumber(sums.failed) end
  end
  in_kernel:take(side, function(kind, sums, buckets) add('kind ' .. kind, sums, buckets) end,
    function(key, kind, sums, buckets)
      if not key then got.others = (got.others or 0) + tonumber(sums.count) end
      if key then add(name_of(plan, key, kind), sums, buckets) end
    end,
    function(key, kind, bucket, count)
      assert.equal(0, C.hist_set_add_bucket(got.hists, got:id(name_of(plan, key, kind)), bucket, count))
    end)
end

--- Adds a pair of the matcher, as bindings/pairs/rows.lua does. Returns whether it counts.
local function add_pair(sums, plan, rule, out, r)
  if not plan.rows then
    sums:add('kind ' .. out.kind, out.ns)
    return true
  end
  local same = rule.same
  if same and out.first_value ~= r.common_pid and r.common_pid ~= same.any then return false end
  local key = ffi.new 'int64_t[2]'
  for i, part in ipairs(plan.rows.by) do key[i - 1] = part == 'key' and out.key or out.first_value end
  local name = name_of(plan, key, plan.rows.kinds and out.kind)
  sums:add(name, out.ns, rule.failed and r.prev_state < 100)
  return true
end

local all_threads

--- Lets only some tasks count in a plan.
local function add_threads(plan, random)
  all_threads = all_threads or targets.threads(false, false)
  for task = 1, TASKS do all_threads.marks.bytes[task] = random(3) > 1 and 1 or 0 end
  plan.threads = all_threads
end

--- Counts the switch of record r if one before it is missing, and it is about a plan's threads.
local function watch_switch(watch, plan, r)
  local cpu, marks = tonumber(r.cpu), plan.threads.marks.bytes
  local task = watch[cpu]
  if task and task ~= r.prev_pid and marks[task] + marks[r.prev_pid] > 0 then watch.missing = watch.missing + 1 end
  watch[cpu] = r.next_pid
end

--- Lets a thread that may wait with a start get another id. Returns how many starts are gone.
local function move_thread(c, program, e, plan, keys, watch)
  local r, ids = ffi.new 'struct pair_record', {}
  for i = 1, 2 do
    repeat ids[i] = plan.direct and math.random(0, 39) or tonumber(keys[math.random(#keys)]) until ids[i] >= 0
      and ids[i] < 2 ^ 31
  end
  ffi.copy(r, e.raw, ffi.sizeof(record_type))
  r.prev_pid, r.next_pid = ids[1], ids[2]
  if watch and watch[e.cpu] == ids[1] then watch[e.cpu] = ids[2] end
  local other, pair, before, after = ffi.new('struct event', e), ffi.new 'struct pair', ffi.new 'struct pairs_stats',
    ffi.new 'struct pairs_stats'
  other.class, other.raw = MOVE, ffi.cast('uint8_t *', r)
  C.pairs_read_stats(c, before)
  assert.equal(0, C.pairs_feed(c, other, 1, pair))
  C.pairs_read_stats(c, after)
  run(program, r)
  return tonumber(after.ended - before.ended)
end

---@param passes? boolean the programs only send the events that end outliers
local function compare(seed, keys, passes)
  math.randomseed(seed)
  local random = math.random
  local plan = random_plan(random)
  local is_derived = false
  for _, rule in ipairs(plan.rules) do is_derived = is_derived or rule.is_derived and rule end
  if not is_derived and plan.rules[1].wakeup and random(3) == 1 then add_threads(plan, random) end
  local watch = plan.threads and { missing = 0 }
  local sends = passes or random(is_derived and 2 or 6) == 1
  local than, lower = sends and random(3) > 1 and random(0, 20) or nil, sends and random(3) == 1 and 2 or nil
  if sends then add_outliers(plan, than, lower) end
  local firsts, sent, derived = {}, 0, 0
  local in_kernel = kernel_pairs.new(passes and only_outliers(plan) or plan, CPUS)
  local c, class_of = matcher(plan)
  local programs, taken, tag_of = {}, {}, {}
  for rule, class in pairs(class_of) do tag_of[tonumber(class)] = rule.tag end
  for _, rule in ipairs(plan.rules) do
    if not rule.is_derived then
      programs[rule] = load(in_kernel, rule, random(2) == 1)
      taken[#taken + 1] = rule
    end
  end
  -- A kept event may be overwritten where the key that moves is in the hash map.
  local moves = random(3) == 1 and (plan.direct or not sends)
  local move, moved = moves and load_move(in_kernel), 0
  local wanted, got = new_sums(plan), new_sums(plan)
  local records, now, side = ffi.new('struct pair_record[400]'), 1000, 1
  local e, out = ffi.new 'struct event', ffi.new 'struct pair'
  for i = 0, 399 do
    local r, rule = records[i], taken[random(#taken)]
    now = now + random(0, 3) * (random(10) == 1 and 1000000 or 1)
    r.time = random(20) == 1 and now - random(0, 5) or now
    r.key = plan.direct and random(0, 39) or keys[random(#keys)]
    r.value = random(4) == 1 and random(-3, 3000) or random(0, 5)
    r.cpu, r.side, r.role = random(0, CPUS - 1), side, random(0, 3)
    r.pid, r.prev_pid, r.next_pid = random(0, TASKS), random(0, TASKS), random(0, TASKS)
    r.common_pid, r.target_cpu = random(0, TASKS), random(-1, CPUS - 1)
    r.prev_state = random(2) == 1 and 0 or random(0, 256)
    e.time, e.class, e.cpu, e.tid = tonumber(r.time), class_of[rule], tonumber(r.cpu), r.common_pid
    e.flags = rule.role and ROLE_FLAGS[r.role] or 0
    if plan.threads and plan.threads.marks.bytes[r[rule.key_field]] == 0 then e.flags = ROLE_FLAGS[0] end
    if watch and rule.switch then watch_switch(watch, plan, r) end
    e.raw, e.raw_size = ffi.cast('uint8_t *', r), ffi.sizeof(record_type)
    if moves and random(5) == 1 then moved = moved + move_thread(c, move, e, plan, keys, watch) end
    run(programs[rule], r)
    local has_pair = C.pairs_feed(c, e, 1, out) == 1 and add_pair(wanted, plan, rule, out, r)
    if sends then
      local is_sent = has_pair and (than and out.ns > than or lower and out.ns < lower) or false
      local first = has_pair and ('%d %d'):format(out.first_class, out.first_time)
      if passes then
        check_passed(is_sent, r)
      else
        check_outliers(is_sent and out or nil, firsts[first], r, has_pair and tag_of[out.first_class])
      end
      for _, one in ipairs { rule, rule.ends and rule.ends.awake } do
        local name = ('%d %d'):format(class_of[one], e.time)
        firsts[name] = firsts[name] or {}
        table.insert(firsts[name], r)
      end
      if is_sent and tonumber(out.first_class) == class_of[is_derived] then derived = derived + 1 end
      if is_sent then sent = sent + 1 end
    end
    if random(100) == 1 and not passes then
      read(in_kernel, side, got)
      side = 3 - side
    end
  end
  if not passes then read(in_kernel, side, got) end
  if passes then
    assert.equal(0, in_kernel.pairs)
  elseif not got.others then
    assert.same(wanted:summaries(), got:summaries(), ('seed %d'):format(seed))
  else
    assert.equal(MOST_ROWS, plan.rows.most)
  end
  local stats, counted = ffi.new 'struct pairs_stats', in_kernel:stats()
  C.pairs_read_stats(c, stats)
  assert.equal(400, counted.events)
  if not passes then assert.equal(tonumber(stats.pairs), counted.pairs, ('pairs of seed %d'):format(seed)) end
  for _, name in ipairs { 'replaced', 'unstarted', 'mismatched', 'ended', 'unneeded', 'evicted', 'unreported',
    'stored' } do
    local expected = watch and name == 'unreported' and watch.missing or tonumber(stats[name])
    assert.equal(expected, counted[name], ('%s of seed %d'):format(name, seed))
  end
  counted.sent, counted.derived, counted.missing = sent, derived, watch and counted.unreported or 0
  counted.moved = moved
  counted.others, counted.rows = got.others or 0, plan.rows and got.n or 0
  return counted
end

describe('pairs in the kernel', function()
  local missing = run_bpf.missing()
  if missing then
    pending(missing)
    return
  end

  it('are those of the matcher', function()
    local keys, sum = hashed_keys(), {}
    for seed = 1, 300 do
      for name, n in pairs(compare(seed, keys)) do sum[name] = (sum[name] or 0) + n end
    end
    for _, name in ipairs { 'pairs', 'replaced', 'unstarted', 'mismatched', 'ended', 'unneeded', 'unreported',
      'stored', 'rows', 'others', 'sent', 'missing', 'moved' } do
      assert.is_true(sum[name] > 100, name)
    end
    assert.is_true(sum.derived > 20, 'pairs that were sent with a derived event')
  end)

  it('pass on only the events that end outliers', function()
    local keys, sum = hashed_keys(), { sent = 0, unmatched = 0 }
    for seed = 1, 100 do
      for name, n in pairs(compare(seed, keys, true)) do sum[name] = (sum[name] or 0) + n end
    end
    assert.is_true(sum.sent > 100 and sum.unmatched > 20, 'some are sent, and some do not count')
  end)

  it('are not sent with an event that another start has overwritten', function()
    local plan = { stages = 2, cycle = false, threshold = -1, sides = 2, direct = 40, rules = {
      { stage = 0, place = 0, key = value 'key' }, { stage = 1, place = 0, key = value 'key' } },
      clock = function(a) a:load(8, 0, asm.CONTEXT, at 'time') end }
    add_outliers(plan, 0)
    local in_kernel, r = kernel_pairs.new(plan, CPUS), ffi.new 'struct pair_record'
    local first, second = load(in_kernel, plan.rules[1]), load(in_kernel, plan.rules[2])
    r.key, r.side = 7, 1
    for i, tag in ipairs { plan.rules[1].tag, 0 } do
      r.time = 1000 * i
      run(first, r)
      local starts = in_kernel.starts
      if tag == 0 then ffi.cast(words, starts.map.bytes + 7 * starts.size + starts.more)[0] = 0 end
      r.time = r.time + 10
      run(second, r)
      local found = take_outliers()
      assert.equal(1, #found)
      assert.equal(tag, found[1].pair.tag)
      assert.equal(10, tonumber(found[1].pair.ns))
    end
  end)

  it('are left where the exit of a task ends them', function()
    local keys = hashed_keys()
    local a, b = keys[#keys - 1], keys[#keys] -- of the same place
    for _, direct in ipairs { 40, false } do
      local plan = { stages = 2, cycle = false, threshold = -1, direct = direct or nil, rules = {
        { stage = 0, place = 0, key = value 'key' }, { stage = 1, place = 0, key = value 'key' } },
        clock = function(asm_) asm_:load(8, 0, asm.CONTEXT, at 'time') end }
      add_outliers(plan, 5)
      plan.outliers.leaves, plan.rules[2].sample = true, nil
      local in_kernel, r = kernel_pairs.new(plan, CPUS), ffi.new 'struct pair_record'
      local first, exit = load(in_kernel, plan.rules[1]), load(in_kernel, plan.rules[2])
      local room = ffi.new('uint8_t[?]', 1000)
      local left = ffi.cast('struct outlier *', room)
      local function step(loaded, key, time)
        r.key, r.time, r.side, r.value = key, time, 1, time
        run(loaded, r)
      end
      local function take(key) return in_kernel:take_left(plan.rules[2], tonumber(key), left) end
      local function unkept() return in_kernel:stats().unkept end
      local one, other = direct and 7 or a, direct and 8 or b
      step(first, one, 1000)
      assert.is_false(take(one))
      step(exit, one, 1010)
      assert.is_true(take(one))
      assert.same({ 10, tonumber(one), 1, 0, 1000 },
        { tonumber(left.ns), tonumber(left.key), left.tag, left.kind, tonumber(left.time) })
      assert.equal(1000, tonumber(ffi.cast('struct pair_record *', left.raw).value))
      assert.is_false(take(one))
      step(first, one, 2000)
      step(exit, one, 2004)
      assert.is_false(take(one), 'not an outlier')
      step(first, one, 3000)
      step(exit, one, 3010)
      step(first, one, 3020)
      assert.is_true(take(one))
      assert.equal(0, left.tag, 'overwritten')
      step(first, other, 4000)
      step(exit, other, 4010)
      assert.equal(direct and 0 or 1, unkept())
      assert.equal(direct ~= false, take(other))
      assert.same({}, take_outliers())
    end
  end)
end)
