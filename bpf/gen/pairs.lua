-- SPDX-License-Identifier: GPL-2.0-only
--- Programs that pair events in the kernel, by the rules of runtime/relations/pairs.h, and add up the times between
--- them. Nothing is lost there, so there are no rules for losses.
---
--- In a program, r7 is the key, and r8 the time of the event.
local ffi = require 'ffi'
local asm = require 'bpf.gen.asm'
local compile = require 'bpf.gen.compile'
local kernel_sums = require 'bpf.gen.sums'
local outliers = require 'bpf.gen.sent_pairs'
local program = require 'bpf.gen.program'
local starts = require 'bpf.gen.starts'
local targets = require 'bpf.gen.targets'

local FRAME = asm.FRAME
local kernel_pairs = {}

local COUNTERS = { 'events', 'replaced', 'unstarted', 'mismatched', 'ended', 'unneeded', 'evicted', 'unreported',
  'unmatched', 'unkept', 'last_time', 'outliers' }
local PLACE_OF, COUNTERS_SIZE = {}, 128 -- bytes of each rule on each CPU
for i, name in ipairs(COUNTERS) do PLACE_OF[name] = 8 * (i - 1) end
local FIRST, SECOND = 1, 2 -- bits of a role
local MOST_TAGS = 2 ^ starts.TAG_BITS - 1
local NO_KIND = 0xff
local SMALL_ROWS = 1024 -- numbers of system calls are less
local MAX_CPUS = 4096

--- What an event is in the pairs.
---@class PairRule
---@field stage integer from 0
---@field place integer in its stage, from 0
---@field key Compiled|'cpu'|'tid'
---@field role? Compiled
---@field value? Compiled of a first event
---@field is_derived? boolean no program: another event is also this one
---@field wakeup? { task: Compiled, target: Compiled, waker: Compiled }
---@field switch? { task: Compiled, before: Compiled }
---@field ends? { key: Compiled, bits: Compiled, mask: integer, awake?: PairRule }
---@field same? { value: Compiled, any?: integer } a pair counts only if this is the value of the first event, or `any`
---@field failed? Compiled whether the pair is one that failed
---@field sample? OutlierEvent with PairPlan.outliers; the exit of a task has none

---@class PairPlan
---@field stages integer
---@field cycle boolean
---@field rules PairRule[] by stage and place
---@field direct? integer all keys are less
---@field are_threads? boolean all keys are threads
---@field clock? fun(a: Asm) puts the time into r0; default: the time of perf's events
---@field threshold integer negative: none
---@field sides integer see Switch
---@field outliers? OutlierPlan pairs to send
---@field only_outliers? boolean nothing is added up
---@field threads? Targets keys are threads, and only these count
---@field rows? { by: string[], most: integer, kinds?: integer, buckets: boolean } by 'key', 'value': rows instead of
--- histograms by kind; with kinds, each has a histogram for each of them; without buckets, they are sums only

---@class KernelPairs
---@field plan PairPlan
---@field nr_cpus integer
---@field pairs integer that were read so far
---@field over integer of these, those over the threshold
local KernelPairs = {}
KernelPairs.__index = KernelPairs

local function number_rules(plan)
  local places, tags, kind = {}, 0, 0
  for _, rule in ipairs(plan.rules) do places[rule.stage] = (places[rule.stage] or 0) + 1 end
  for stage = 0, plan.stages - 1 do
    local next = (stage + 1) % plan.stages
    for _, rule in ipairs(plan.rules) do
      if rule.stage == stage then
        rule.kind = kind + rule.place * places[next]
        rule.previous = (stage - 1) % plan.stages
        rule.finds = stage > 0 or plan.cycle
        rule.stores = stage < plan.stages - 1 or plan.cycle
        if rule.stores then
          tags = tags + 1
          rule.tag = tags
        end
      end
    end
    if stage < plan.stages - 1 or plan.cycle then kind = kind + places[stage] * places[next] end
  end
  if tags > MOST_TAGS then asm.refuse('more than %d events start a pair', MOST_TAGS) end
  return kind
end

--- Makes a table of the kinds of pairs: a byte for each rule and each tag of a start. The kernel's verifier follows one
--- path for all of them, where jumps would make it follow one for each.
local function make_kinds(plan)
  local kinds = program.mapped(#plan.rules * (MOST_TAGS + 1), 'pair_kinds')
  ffi.fill(kinds.bytes, kinds.size, NO_KIND)
  for i, rule in ipairs(plan.rules) do
    for _, first in ipairs(rule.finds and plan.rules or {}) do
      if first.stores and first.stage == rule.previous then
        kinds.bytes[(i - 1) * (MOST_TAGS + 1) + first.tag] = first.kind + rule.place
      end
    end
  end
  return kinds
end

--- Makes the maps. Refuses what BPF cannot do.
---@param plan PairPlan
---@param nr_cpus integer
---@return KernelPairs
function kernel_pairs.new(plan, nr_cpus)
  local self = setmetatable({ plan = plan, nr_cpus = nr_cpus, pairs = 0, over = 0 }, KernelPairs)
  local kinds = number_rules(plan)
  if kinds >= NO_KIND then asm.refuse('there are more than %d kinds of pairs', NO_KIND) end
  self.kinds, self.nr_kinds = make_kinds(plan), kinds
  self.starts = starts.new(plan.direct, plan.outliers and outliers.more(plan.outliers))
  self.counters = program.mapped(nr_cpus * #plan.rules * COUNTERS_SIZE, 'pair_counts')
  self.running = program.mapped(8 * math.min(nr_cpus, MAX_CPUS), 'pair_running')
  if plan.rows then
    local has_kinds, buckets = plan.rows.kinds ~= nil, plan.rows.buckets
    local is_small = #plan.rows.by == 1 and not has_kinds and (not buckets or kernel_sums.fits(SMALL_ROWS + 1, nr_cpus))
    self.rows = kernel_sums.rows(#plan.rows.by + (has_kinds and 1 or 0), {
      threshold = plan.threshold, nr_cpus = nr_cpus, sides = plan.sides, most = plan.rows.most, kinds = plan.rows.kinds,
      buckets = buckets,
      small = is_small and SMALL_ROWS or nil,
    })
  elseif not plan.only_outliers then
    self.cells = kernel_sums.cells(kinds, nr_cpus, { threshold = plan.threshold, buckets = true })
  end
  return self
end

-- Parts of a program --------------------------------------------------------------------------------

--- The program of a rule while it is generated.
---@class PairProgram
---@field a Asm
---@field source Source
---@field places ProbePlaces
---@field of KernelPairs
---@field number integer of the rule, from 1
---@field is_alone boolean see probe.is_alone()
---@field is_counted boolean see KernelPairs:body()
---@field ring? integer see outliers.begin()
local Program = {}
Program.__index = Program

--- Generates r0 = the value of an expression. Uses all but r6 to r8.
function Program:value(compiled, none)
  compile.value(self.a, compiled.tree, { source = self.source, registers = { 9 } }, { none = none or 'done' })
end

--- Generates code that counts. Uses r1, and leaves the address of the counter in r2.
function Program:count(name)
  local a, nr_rules = self.a, #self.of.plan.rules
  a:load(8, 1, FRAME, self.places.cpu)
  a:alu('mul', 1, nr_rules * COUNTERS_SIZE)
  a:map_value(2, self.of.counters, (self.number - 1) * COUNTERS_SIZE + PLACE_OF[name])
  a:alu_r('add', 2, 1)
  if not self.is_alone then
    a:alu('mov', 1, 1)
    return a:atomic_add(8, 2, 0, 1)
  end
  a:load(8, 1, 2, 0)
  a:alu('add', 1, 1)
  a:store(8, 2, 0, 1)
end

--- Generates r9 = the address of the task that runs on the CPU in r0, plus 1. Jumps if there is no such CPU.
function Program:running(none)
  local a = self.a
  a:jump('>=', 0, math.min(self.of.nr_cpus, MAX_CPUS), none)
  a:alu('lsh', 0, 3)
  a:map_value(9, self.of.running, 0)
  a:alu_r('add', 9, 0)
end

--- Generates code that forbids an unnecessary wakeup to start a pair.
function Program:judge(wakeup, can)
  local a = self.a
  local unneeded, done = a:new_label(), a:new_label()
  self:value(wakeup.task)
  a:alu_r('mov', 7, 0)
  self:value(wakeup.waker)
  a:jump_r('==', 0, 7, unneeded)
  self:value(wakeup.target)
  self:running(done)
  a:load(8, 1, 9, 0)
  a:alu('sub', 1, 1)
  a:jump_r('!=', 1, 7, done)
  a:label(unneeded)
  self:count 'unneeded'
  a:load(8, 1, FRAME, can)
  a:alu('and', 1, SECOND)
  a:store(8, FRAME, can, 1)
  a:label(done)
end

--- Generates code that notes which task the CPU switches to. A switch is missing if the CPU leaves another task than
--- the last one; with threads, only if one of the two is among them.
function Program:follow(switch)
  local a = self.a
  local known, missing, done = a:new_label(), a:new_label(), a:new_label()
  self:value(switch.before)
  a:alu_r('mov', 7, 0)
  a:load(8, 0, FRAME, self.places.cpu)
  self:running(done)
  a:load(8, 1, 9, 0)
  a:jump('==', 1, 0, known)
  a:alu('sub', 1, 1)
  a:jump_r('!=', 1, 7, missing)
  a:label(known)
  local slot = a:take(8)
  a:store(8, FRAME, slot, 9)
  self:value(switch.task)
  a:alu('add', 0, 1)
  a:load(8, 9, FRAME, slot)
  a:store(8, 9, 0, 0)
  a:give(slot, 8)
  a:go(done)
  a:label(missing)
  targets.check_missing(a, self.of.plan.threads, known)
  self:count 'unreported'
  a:go(known)
  a:label(done)
end

--- Generates code that ends the wait of a task that goes to sleep, and notes whether it does.
function Program:end_wait(ends, asleep)
  local a = self.a
  local is_asleep, done = a:new_label(), a:new_label()
  a:store_value(8, FRAME, asleep, 0)
  self:value(ends.bits)
  a:jump('&', 0, ends.mask, is_asleep)
  a:go(done)
  a:label(is_asleep)
  a:store_value(8, FRAME, asleep, 1)
  self:value(ends.key)
  a:alu_r('mov', 7, 0)
  self.of.starts:find(a, done)
  a:alu('rsh', 1, starts.TAG_BITS)
  a:jump_r('>=', 1, 8, done)
  self.of.starts:take(a)
  a:jump('==', 1, 0, done)
  self:count 'ended'
  a:label(done)
end

--- Generates code that stores the event as a start with the key in r7.
---@param value? integer place on the stack for values of starts
function Program:store(rule, value)
  local a = self.a
  local full, done = a:new_label(), a:new_label()
  if rule.value then
    self:value(rule.value)
    a:store(8, FRAME, value, 0)
  end
  local function count(name) self:count(name) end
  local plan = self.of.plan.outliers
  local keep = plan and plan.size
    and outliers.keeper(a, self.source, self.places, rule.sample, self.of.starts.more, function()
      starts.word(a, rule.tag)
    end)
  self.of.starts:store(a, rule.tag, rule.value and value, { full = full, late = done }, count, keep)
  a:go(done)
  a:label(full)
  self:count 'evicted'
  a:label(done)
end

--- Generates code that jumps to `done` if a pair does not count. Uses all but r6 to r8.
function Program:compare(rule, value, done)
  if not rule.same then return end
  local a = self.a
  local is_same, differs = a:new_label(), a:new_label()
  self:value(rule.same.value, differs)
  a:load(8, 1, FRAME, value)
  a:jump_r('==', 0, 1, is_same)
  if rule.same.any then a:jump('==', 0, rule.same.any, is_same) end
  a:label(differs)
  self:count 'unmatched'
  a:go(done)
  a:label(is_same)
end

--- Generates code that adds the time in r3 to the row of the pair, whose kind is in r4.
function Program:add_row(rule, value, done)
  local a, of = self.a, self.of
  local by = of.plan.rows.by
  local ns, failed, key = a:take(8), a:take(8), a:take(of.rows:key_size())
  a:store(8, FRAME, ns, 3)
  if of.rows.kinds then a:store(8, FRAME, key + 8 * #by, 4) end
  self:compare(rule, value, done)
  a:store_value(8, FRAME, failed, 0)
  if rule.failed then
    local succeeded = a:new_label()
    compile.condition(a, rule.failed.tree, { source = self.source, registers = { 9 } }, { none = succeeded })
    a:store_value(8, FRAME, failed, 1)
    a:label(succeeded)
  end
  for i, part in ipairs(by) do
    if part == 'value' then a:load(8, 1, FRAME, value) end
    a:store(8, FRAME, key + 8 * (i - 1), part == 'value' and 1 or 7)
  end
  a:load(8, 3, FRAME, ns)
  of.rows:add(a, self.places, key, failed)
  a:give(ns, 8)
  a:give(failed, 8)
  a:give(key, of.rows:key_size())
end

--- Generates code for a pair with the start at r9 whose word is in r1, and whose value is on the stack.
function Program:finish(rule, value)
  local a, of = self.a, self.of
  local add, mismatched, done = a:new_label(), a:new_label(), a:new_label()
  local found = of.plan.outliers and outliers.note(a)
  a:alu_r('mov', 2, 1)
  a:alu('and', 2, MOST_TAGS)
  a:alu('rsh', 1, starts.TAG_BITS)
  a:alu_r('mov', 3, 8)
  a:alu_r('sub', 3, 1)
  a:jump('s<=', 3, 0, mismatched)
  a:map_value(4, of.kinds, (self.number - 1) * (MOST_TAGS + 1))
  a:alu_r('add', 4, 2)
  a:load(1, 4, 4, 0)
  a:jump('!=', 4, NO_KIND, add)
  a:label(mismatched)
  self:count 'mismatched'
  a:go(done)
  a:label(add)
  a:jump('>=', 4, of.nr_kinds, done) -- never, but the verifier wants to know that
  if found then
    a:store(8, FRAME, found.ns, 3)
    a:store(8, FRAME, found.kind, 4)
  end
  if of.rows then
    self:add_row(rule, value, done)
  elseif of.cells then
    of.cells:add(a, self.places, nil, self.is_alone)
  else
    self:compare(rule, value, done)
  end
  local function count() self:count 'outliers' end
  if found and rule.sample then
    outliers.send(a, self.source, self.places, of.plan.outliers, rule.sample, found, self.ring, of.starts.more, count)
  elseif found and of.plan.outliers.size then
    local unkept = a:new_label()
    outliers.leave(a, of.plan.outliers, found, of.starts, unkept, count)
    a:go(done)
    a:label(unkept)
    self:count 'unkept'
  end
  a:label(done)
end

--- Generates code that jumps unless the event may be a first or second one.
local function unless(a, can, bit, target)
  if not can then return end
  a:load(8, 1, FRAME, can)
  a:alu('and', 1, bit)
  a:jump('==', 1, 0, target)
end

function Program:find(rule, can, value)
  local a, of = self.a, self.of
  local unstarted, done = a:new_label(), a:new_label()
  unless(a, can, SECOND, done)
  of.starts:find(a, unstarted)
  of.starts:take(a, value)
  a:jump('==', 1, 0, unstarted)
  self:finish(rule, value)
  a:go(done)
  a:label(unstarted)
  if self.is_counted then self:count 'unstarted' end -- otherwise, it is the exit of a task that was killed
  a:label(done)
end

--- Generates r7 = the key of the event.
function Program:key(rule)
  local a = self.a
  if rule.key == 'cpu' then return a:load(8, 7, FRAME, self.places.cpu) end
  if rule.key == 'tid' then
    local kind, reason = self.source:variable(a, '_tid')
    if not kind then asm.refuse('%s', reason) end
  else
    self:value(rule.key)
  end
  a:alu_r('mov', 7, 0)
end

function Program:generate(rule)
  local a, plan = self.a, self.of.plan
  if plan.outliers and rule.finds then self.ring = outliers.begin(a, plan.outliers, rule.sample) end
  if self.places.time then
    a:load(8, 0, FRAME, self.places.time)
  elseif plan.clock then
    plan.clock(a)
  else
    a:call 'ktime_get_ns'
  end
  a:alu_r('mov', 8, 0)
  if self.is_counted then
    self:count 'events'
    a:store(8, 2, PLACE_OF.last_time - PLACE_OF.events, 8)
  end
  local can = (rule.role or rule.wakeup) and a:take(8)
  local value, asleep = self.of.has_values and a:take(8), rule.ends and a:take(8)
  if rule.role then
    self:value(rule.role)
    a:store(8, FRAME, can, 0)
  elseif can then
    a:store_value(8, FRAME, can, FIRST + SECOND)
  end
  if rule.wakeup then self:judge(rule.wakeup, can) end
  if rule.switch then self:follow(rule.switch) end
  if rule.ends then self:end_wait(rule.ends, asleep) end
  self:key(rule)
  if plan.threads then plan.threads:check_id(a, 7, 'done') end
  if rule.finds then self:find(rule, can, value) end
  if rule.stores then
    local skipped = a:new_label()
    unless(a, can, FIRST, skipped)
    self:store(rule, value)
    a:label(skipped)
  end
  if rule.ends and rule.ends.awake then
    a:load(8, 1, FRAME, asleep)
    a:jump('!=', 1, 0, 'done')
    self:value(rule.ends.key)
    a:alu_r('mov', 7, 0)
    a:jump('s<=', 7, 0, 'done')
    self:store(rule.ends.awake, value)
  end
end

--- Returns the body of a rule's program, for probe.load().
---@param rule PairRule
---@param is_counted boolean the event counts as one
---@param is_alone boolean see probe.is_alone()
---@return fun(a: Asm, source: Source, places: ProbePlaces)
function KernelPairs:body(rule, is_counted, is_alone)
  local number
  for i, one in ipairs(self.plan.rules) do
    self.has_values = self.has_values or one.value ~= nil
    if one == rule then number = i end
  end
  return function(a, source, places)
    setmetatable({ a = a, source = source, places = places, of = self, number = number, is_alone = is_alone,
      is_counted = is_counted }, Program):generate(rule)
  end
end

--- Generates code for a thread that gets the id in r8 instead of the one in r7: its start goes on with the new key, and
--- the start of the thread that had it before is removed.
function Program:move(value)
  local a, of, other = self.a, self.of, self.a:new_label()
  a:load(8, 0, FRAME, self.places.cpu)
  self:running(other)
  a:load(8, 1, 9, 0)
  a:alu('sub', 1, 1)
  a:jump_r('!=', 1, 7, other)
  a:alu_r('mov', 1, 8)
  a:alu('add', 1, 1)
  a:store(8, 9, 0, 1)
  a:label(other)
  local size = of.plan.outliers and of.plan.outliers.size
  of.starts:move(a, value, function(name) self:count(name) end,
    size and function(place) outliers.move_kept(a, of.plan.outliers, place, of.starts.more) end)
end

--- Returns the body of the program for InKernel:probe_id_changes(), if all keys are threads.
---@return fun(a: Asm, source: Source, places: ProbePlaces)
function KernelPairs:move_body()
  return function(a, source, places)
    setmetatable({ a = a, source = source, places = places, of = self, number = 1, is_alone = false }, Program)
      :move(self.has_values and a:take(8))
  end
end

-- What was counted ----------------------------------------------------------------------------------

---@package
function KernelPairs:note(sums)
  self.pairs, self.over = self.pairs + tonumber(sums.count), self.over + tonumber(sums.over)
end

--- Reads what was written to a side since it was read last.
---@param side integer
---@param add_cell fun(kind: integer, sums: ffi.cdata*, buckets: ffi.cdata*, cpu: integer) without rows
---@param add_row fun(key: ffi.cdata*?, kind?: integer, sums: ffi.cdata*, buckets?: ffi.cdata*) see KernelRows:take()
---@param add_count fun(key: ffi.cdata*, kind?: integer, bucket: integer, count: integer)
function KernelPairs:take(side, add_cell, add_row, add_count)
  if not self.rows then
    self.cells:take(side, function(kind, cpu, sums, buckets)
      self:note(sums)
      add_cell(kind, sums, buckets, cpu)
    end)
    return
  end
  self.rows:take(side, function(key, kind, sums, buckets)
    self:note(sums)
    add_row(key, kind, sums, buckets)
  end, add_count)
end

--- Takes the pair that the exit of a task has ended, if it is an outlier.
---@param rule PairRule of exits
---@param key integer
---@param out ffi.cdata* struct outlier *
---@return boolean found see outliers.take_left()
function KernelPairs:take_left(rule, key, out)
  if not outliers.take_left(self.plan.outliers, self.starts, key, out) then return false end
  for i, one in ipairs(self.plan.rules) do
    if one == rule then out.kind = self.kinds.bytes[(i - 1) * (MOST_TAGS + 1) + out.tag] end
  end
  return true
end

--- Returns the counters of one of the rules on one of the CPUs.
local function counters_of(self, i) return ffi.cast('uint64_t *', self.counters.bytes + i * COUNTERS_SIZE) end

--- Returns the counters, named as in struct pairs_stats.
---@param is_fast? boolean without the starts that wait
---@return table<string, number>
function KernelPairs:stats(is_fast)
  local result = { dropped = 0, stored = 0 }
  for _, name in ipairs(COUNTERS) do
    local sum = 0ULL
    for i = 0, self.nr_cpus * #self.plan.rules - 1 do sum = sum + counters_of(self, i)[PLACE_OF[name] / 8] end
    result[name] = tonumber(sum)
  end
  result.pairs = self.pairs + result.unmatched
  if not is_fast then self.starts:each(function() result.stored = result.stored + 1 end) end
  return result
end

--- Returns the number of events of a rule.
---@param rule PairRule
---@return number
function KernelPairs:events(rule)
  local sum, number = 0ULL, 1
  while self.plan.rules[number] ~= rule do number = number + 1 end
  for i = number - 1, self.nr_cpus * #self.plan.rules - 1, #self.plan.rules do
    sum = sum + counters_of(self, i)[PLACE_OF.events / 8]
  end
  return tonumber(sum)
end

--- Returns the number of starts of a rule that had waited for longer than a time at the last event.
---@param rule PairRule
---@param ns number
---@return integer
function KernelPairs:overdue(rule, ns)
  local last, n = 0, 0
  for i = 0, self.nr_cpus * #self.plan.rules - 1 do
    last = math.max(last, tonumber(counters_of(self, i)[PLACE_OF.last_time / 8]))
  end
  self.starts:each(function(tag, time)
    if tag == rule.tag and last - time > ns then n = n + 1 end
  end)
  return n
end

return kernel_pairs
