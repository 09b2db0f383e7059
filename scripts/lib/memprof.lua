-- SPDX-License-Identifier: GPL-2.0-only
--- Allocation analysis, for profilers of pairs: the stacks that allocate memory and that free it. See lib.relation.
local array = require 'lib.array'
local intern = require 'lib.intern'
local relation = require 'lib.relation'
local tables = require 'lib.table'
local values = require 'bindings.options.values'

local memprof = {}

local MAX_KEYS = 2 ^ 18 -- pairs of a stack that allocates and one that frees
local MAX_CLASSES = 65536
local NO_STACK = -1 -- as ev._stack
local TOP = 10 -- stacks per report

--- Returns functions that return the bytes of an allocation, by class of the event: the value of size=, else the field
--- bytes_alloc.
---@return table<integer, fun(ev: any): any>? sizes nil: see message
---@return string? field the integer field that is the size of all of them; nil: there is no such field
---@return string? message
local function sizes_of(events, session)
  local sizes, common = {}, nil
  for i, event in ipairs(events) do
    local text = event.attrs.size or event.fields.bytes_alloc and 'bytes_alloc'
    if not text then
      return nil, nil, ('%s has no field bytes_alloc: give the allocated bytes with size=EXPR'):format(event.name)
    end
    sizes[event.class] = session.expression(event, text).value
    local field = event.fields[text]
    local is_number = field and (field.kind == 'unsigned' or field.kind == 'signed')
    if i == 1 then common = text end
    if not is_number or text ~= common then common = nil end
  end
  return sizes, common
end

--- Returns functions that sum up objects and bytes by id: add(id, size), list(n), which returns the sums of ids up to n
--- that are not 0, and clear(n), which resets them.
local function sums(max)
  local objects, bytes = array.new(max + 1), array.new(max + 1)
  local function add(id, size)
    objects[id] = objects[id] + 1
    bytes[id] = bytes[id] + size
  end
  local function list_of(n)
    local list = {}
    for id = 0, math.min(n, max) do
      if objects[id] > 0 then
        list[#list + 1] = { id = id, objects = objects[id], bytes = bytes[id] }
      end
    end
    return list
  end
  return add, list_of, function(n)
    for id = 0, math.min(n, max) do objects[id], bytes[id] = 0, 0 end
  end
end

local function before(a, b)
  if a.bytes ~= b.bytes then return a.bytes > b.bytes end
  if a.objects ~= b.objects then return a.objects > b.objects end
  return a.number < b.number
end

--- Adds objects and bytes to the sum of a stack in a list. Stacks are numbered in the order of their first pairs.
local function add_to_stack(list, stack, objects, bytes)
  local one = list.by_stack[stack]
  if not one then
    one = { stack = stack, objects = 0, bytes = 0, number = #list + 1 }
    list.by_stack[stack], list[#list + 1] = one, one
  end
  one.objects, one.bytes = one.objects + objects, one.bytes + bytes
end

--- Returns whether an event records stacks, and warns about those that do not.
local function check_stacks(settings, opt)
  local has_stacks = false
  for i, stage in ipairs(settings.events.stages) do
    for _, event in ipairs(stage) do
      if event.attrs.stack or event.attrs['max-stack'] or opt.call_graph then
        has_stacks = true
      else
        settings.out:warn(('%s: %s records no stacks: add //stack/ or -g to see where memory is %s'):format(
          settings.name, event.name, i == 1 and 'allocated' or 'freed'))
      end
    end
  end
  return has_stacks
end

local FIELDS = { 'start', 'end', 'what', 'bytes', 'objects', 'stack' }

--- What is printed: sums, and sums of single stacks. Both are also metrics, and on the page.
---@class MemoryPrinter
local Printer = {}
Printer.__index = Printer

local function new_printer(out, session)
  tables.record('kmemprof', FIELDS)
  local self = setmetatable({ out = out, session = session, offered = {} }, Printer)
  for i, name in ipairs { 'kmemprof', 'kmemprof-stacks' } do
    self.offered[i] = { rows = {}, spec = tables.offered(name, {
      { name = 'start' }, { name = 'end' }, { name = 'what' }, { name = 'bytes', metric = 'counter' },
      { name = 'objects', metric = 'counter' }, { name = 'stack' } }) }
  end
  return self
end

--- Offers what was printed since the last call; forgets it if it was only drawn.
---@param is_drawn? boolean
function Printer:offer(is_drawn)
  for _, one in ipairs(self.offered) do
    if not is_drawn then self.out:offer(one.spec, one.rows) end
    one.rows = {}
  end
end

function Printer:sum(record, lines)
  table.insert(self.offered[record.stack and 2 or 1].rows, record)
  if self.out.format ~= 'text' then
    self.out:put_record('kmemprof', record, FIELDS)
  else
    self.out:write(lines)
  end
end

--- Prints one side of a kind of pair: its total, then the stacks.
function Printer:side(names, what, list)
  local bytes, objects, out, session = 0, 0, self.out, self.session
  for _, one in ipairs(list) do
    bytes, objects = bytes + one.bytes, objects + one.objects
  end
  local is_alloc = what == 'alloc'
  self:sum({ start = names[1], ['end'] = names[2], what = what, bytes = bytes, objects = objects },
    ('%s total %s %d bytes on %d objects\n'):format(names[is_alloc and 1 or 2], what, bytes, objects))
  table.sort(list, before)
  local shown = 0
  for _, one in ipairs(list) do
    if one.stack >= 0 and (shown < TOP or out.format ~= 'text') then
      shown = shown + 1
      self:sum({ start = names[1], ['end'] = names[2], what = what, bytes = one.bytes, objects = one.objects,
        stack = session.stack_lines(one.stack) },
        ('%s %d (%.1f%%) bytes on %d (%.1f%%) objects:\n%s'):format(is_alloc and 'Allocate' or 'Free', one.bytes,
          100 * one.bytes / math.max(bytes, 1), one.objects, 100 * one.objects / objects,
          session.stack_text(one.stack)))
    elseif one.stack >= 0 then
      out:write(('Skipping %s numbered %d..%d\n'):format(what, TOP + 1, #list))
      break
    end
  end
end

--- Prints both sides of a kind of pair.
function Printer:kind(names, sides)
  self.out:write(('%s => %s\n'):format(names[1], names[2]))
  self:side(names, 'alloc', sides[1])
  self:side(names, 'free', sides[2])
end

--- Prints the allocations of an event that were not freed.
function Printer:left(event, one)
  self:sum({ start = event.name, what = 'left', bytes = one.bytes, objects = one.objects },
    ('%s total alloc %d bytes on %d objects but not freed\n'):format(event.name, one.bytes, one.objects))
end

--- The sums of a run. Pairs are summed up by (kind, stack that allocates, stack that frees), once per pair, or by kind
--- alone if the first event is not kept. Reports divide the sums by the two stacks. Allocations that are not freed are
--- summed up by class.
local function new_totals(n_kinds, keeps_first)
  local totals = { keeps_first = keeps_first, n_kinds = n_kinds, keys = intern.new(3, MAX_KEYS),
    classes = intern.new(1, MAX_CLASSES) }
  totals.add, totals.list, totals.clear = sums(MAX_KEYS)
  totals.add_left, totals.list_left, totals.clear_left = sums(MAX_CLASSES)
  return totals
end

--- Returns the functions of an analysis that add a pair, and an allocation that is not freed.
local function adders(totals, sizes)
  local keys, classes, add, add_left = totals.keys, totals.classes, totals.add, totals.add_left
  if not totals.keeps_first then
    return function(p) add(p.kind, p.first_value) end,
      function(p) add_left(classes.id(p.first_class), p.first_value) end
  end
  return function(p, second)
    local first = p.first_event
    if not first then return end
    add(keys.id(p.kind, first._stack, second._stack), tonumber(sizes[p.first_class](first)) or 0)
  end, function(p)
    local first = p.first_event
    if first then add_left(classes.id(p.first_class), tonumber(sizes[p.first_class](first)) or 0) end
  end
end

local function last_id(totals) return totals.keeps_first and totals.keys:count() or totals.n_kinds end

--- Returns the sums by kind of pair, each by the stacks of both sides, and the kinds in order.
local function kinds_of(totals)
  local by_kind, order, keys, keeps_first = {}, {}, totals.keys, totals.keeps_first
  for _, one in ipairs(totals.list(last_id(totals))) do
    local kind = one.id
    if keeps_first then kind = keys:part(one.id, 1) end
    if kind then
      if not by_kind[kind] then
        by_kind[kind] = { { by_stack = {} }, { by_stack = {} } }
        order[#order + 1] = kind
      end
      for side = 1, 2 do
        local stack = keeps_first and keys:part(one.id, 1 + side) or NO_STACK
        add_to_stack(by_kind[kind][side], stack, one.objects, one.bytes)
      end
    end
  end
  table.sort(order)
  return by_kind, order
end

--- Starts new sums.
local function clear(totals)
  totals.clear(last_id(totals))
  totals.clear_left(totals.classes:count())
  totals.keys:clear()
  totals.classes:clear()
end

--- Prints the sums.
local function print_sums(totals, printer, out, allocs, frees)
  local by_kind, order = kinds_of(totals)
  local lefts = totals.list_left(totals.classes:count())
  if #order + #lefts > 0 then out:stamp() end
  for _, kind in ipairs(order) do
    printer:kind({ allocs[math.floor(kind / #frees) + 1].name, frees[kind % #frees + 1].name }, by_kind[kind])
  end
  for _, one in ipairs(lefts) do
    local class = totals.classes:part(one.id, 1)
    for _, event in ipairs(allocs) do
      if event.class == class then printer:left(event, one) end
    end
  end
end

--- Returns the handlers of the profiler. The first stage allocates, the second frees.
---@param settings DelaySettings
---@return table? handlers nil: see message
---@return string? message
function memprof.run(settings)
  local opt, out, session, found = values.optional(settings.opt), settings.out, settings.session, settings.events
  if #found.stages ~= 2 then return nil, 'two -e are required: the events that allocate, then those that free' end
  if opt.cycle then return nil, '--cycle is not supported for allocations' end
  local allocs, frees = found.stages[1], found.stages[2]
  local sizes, size_field, message = sizes_of(allocs, session)
  if not sizes then return nil, message end
  -- Without stacks, the size is all that is needed of an allocation.
  local keeps_first = check_stacks(settings, opt) or not size_field
  local totals, printer = new_totals(#allocs * #frees, keeps_first), new_printer(out, session)
  local pair, left = adders(totals, sizes)
  return (relation.run(settings.name, {
    keep = keeps_first,
    value = not keeps_first and size_field or nil,
    pair = pair,
    lost = left,
    left = left,
    draw = function()
      print_sums(totals, printer, out, allocs, frees)
      printer:offer(true)
    end,
    report = function()
      print_sums(totals, printer, out, allocs, frees)
      printer:offer()
      clear(totals)
    end,
  }, found, opt, out, session))
end

return memprof
