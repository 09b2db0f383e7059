-- SPDX-License-Identifier: GPL-2.0-only
--- Joins of handlers (lib.join) in the kernel: what start() keeps, and what the handlers do with the results of
--- finish(). For an event with joins, one program does the statements in their order (bpf/gen/joins.lua); those
--- that have nothing to do with joins are programs of their own.
local asm = require 'bpf.gen.asm'
local countable = require 'bindings.base.countable'
local handler_terms = require 'bpf.ways.terms'
local kernel_joins = require 'bpf.gen.joins'

local handler_joins = {}

local THREADS = { _tid = true, pid = true, next_pid = true, prev_pid = true, common_pid = true }
local NS = { type = 'i32', low = 0, high = 2 ^ 53 } -- a number of Lua

-- What a handler sees -----------------------------------------------------------------------------

--- An event with the results of the finishes of one of its handlers. It takes the place of an event in handler_terms.
---@class HandlerView
---@field name string of the event
---@field fields table<string, Field>
---@field program JoinProgram
---@field parts table<handler_code.Statement, JoinPart> of finishes
local HandlerView = {}
HandlerView.__index = HandlerView

--- Returns the term of a result of a finish().
---@param finish handler_code.Statement
---@param i integer
---@return handler_terms.Term
function HandlerView:result(finish, i)
  local part, of = self.parts[finish], NS
  local field = part.ns
  if i > 1 then
    of = i == 2 and self.joins:value_of(finish.join) or nil
    if not of then asm.refuse('line %d: start() keeps no value for this result', finish.line) end
    if not part.kept then
      part.kept = kernel_joins.field('__value' .. field.name:match '%d+', of.type == 'u64')
      self.fields[part.kept.name] = part.kept
    end
    field = part.kept
  end
  local wide = of.wide and { field.name } or nil
  return { key = field.name, value = field.name, type = of.type, low = of.low, high = of.high, wide = wide,
    is_unsigned = of.is_unsigned }
end

-- What joins keep ---------------------------------------------------------------------------------

---@class HandlerJoins the joins of handlers that share what they change
local HandlerJoins = {}
HandlerJoins.__index = HandlerJoins

--- Returns the joins of handlers.
---@param plans HandlerPlan[]
---@return HandlerJoins
function handler_joins.new(plans)
  local self = setmetatable({ views = {}, uses = {}, list = {} }, HandlerJoins)
  for _, plan in ipairs(plans) do
    for _, statement in ipairs(plan.code.statements) do
      if statement.join and not self.uses[statement.join] then
        self.uses[statement.join] = {}
        table.insert(self.list, statement.join)
      end
    end
  end
  return self
end

--- Returns what a handler sees of an event; nil: it has no joins.
---@param plan HandlerPlan
---@param event Event
---@param nr_cpus integer
---@return HandlerView?
function HandlerJoins:view(plan, event, nr_cpus)
  local view
  for i, statement in ipairs(plan.code.statements) do
    if statement.join and not view then
      view = setmetatable({ name = event.name, fields = {}, parts = {}, joins = self,
        program = kernel_joins.program(nr_cpus) }, HandlerView)
      for name, field in pairs(event.fields) do view.fields[name] = field end
    end
    if statement.results then
      local part = { ns = kernel_joins.field('__ns' .. i, false) }
      view.fields[part.ns.name], view.parts[statement] = part.ns, part
    end
    if statement.join then
      table.insert(self.uses[statement.join], { plan = plan, event = event, view = view, statement = statement })
    end
  end
  if view then table.insert(self.views, { event = event, view = view }) end
  return view
end

local function term_of(use, i)
  return handler_terms.resolve(use.plan.handler, use.view, use.statement.arguments[i])
end

--- Returns the term that stands for the values of all starts of a join; nil: they have none.
---@param join table
---@return handler_terms.Term?
function HandlerJoins:value_of(join)
  self.values = self.values or {}
  local value = self.values[join]
  if value == 'unknown' then asm.refuse 'a join keeps what depends on itself' end
  if value ~= nil then return value or nil end
  self.values[join], value = 'unknown', nil
  local starts, kept = 0, 0
  for _, use in ipairs(self.uses[join]) do
    if use.statement.method == 'start' then
      starts = starts + 1
      if use.statement.arguments[3] then
        local term = term_of(use, 3)
        if not term.value then asm.refuse('line %d: a join in the kernel keeps only numbers', use.statement.line) end
        if not term.key then asm.refuse('line %d: a join in the kernel keeps no fractions', use.statement.line) end
        kept = kept + 1
        value = value or { type = term.type, low = term.low, high = term.high }
        if (value.type == 'u64') ~= (term.type == 'u64') then asm.refuse 'a join keeps signed and unsigned numbers' end
        if term.type == 'i64' then value.type = 'i64' end
        value.low, value.high = math.min(value.low, term.low), math.max(value.high, term.high)
        value.wide, value.is_unsigned = value.wide or term.wide, value.is_unsigned or term.is_unsigned
      end
    end
  end
  if kept > 0 and kept < starts then asm.refuse 'not all starts of a join keep a value' end
  self.values[join] = value or false
  return value
end

-- Programs ----------------------------------------------------------------------------------------

--- Splits the conditions of a statement into those that finishes have found a start, and comparisons.
local function split(view, statement)
  local found, comparisons = {}, {}
  for _, condition in ipairs(statement.conditions) do
    if condition.op then
      comparisons[#comparisons + 1] = condition
    else
      found[#found + 1] = view.parts[condition.left.finish]
    end
  end
  return found, comparisons
end

--- Returns whether a statement needs what a finish has found.
local function depends(term)
  if term.finish or term.choice and (depends(term.choice.left) or depends(term.choice.right)) then return true end
  for _, one in ipairs(term.terms or {}) do
    if depends(one) then return true end
  end
  return false
end

local function is_dependent(statement)
  for _, argument in ipairs(statement.arguments) do
    if depends(argument) then return true end
  end
  for _, condition in ipairs(statement.conditions) do
    if not condition.op or depends(condition.left) or depends(condition.right) then return true end
  end
  return false
end

--- Adds a part for a statement to the program of its handler.
local function add_part(view, plan, statement, part)
  local comparisons
  part.found, comparisons = split(view, statement)
  local filter = handler_terms.filter(plan.handler, view, comparisons)
  part.filter = filter and kernel_joins.compile(filter, view.fields, 'filter')
  table.insert(view.program.parts, part)
  return part
end

--- Makes a statement that counts a part of its handler's program, if it depends on a join. Returns settings for a
--- tally.
---@param view HandlerView
---@param plan HandlerPlan
---@param statement handler_code.Statement
---@return TallyProgram?
function handler_joins.within(view, plan, statement)
  if not is_dependent(statement) then return end
  local part = add_part(view, plan, statement, {})
  return { fields = view.fields, add = function(body) part.body = body end }
end

--- Makes the keys of a join. Returns whether all of them are threads.
local function compile_keys(uses)
  local all_threads, is_unsigned, is_negative = true, false, false
  for _, use in ipairs(uses) do
    local key, time = use.statement.arguments[1], use.statement.arguments[2]
    local line = use.statement.line
    if not key or not time or time.field ~= '_time' then asm.refuse('line %d: the time is not ev._time', line) end
    if (use.statement.results or 0) > 2 then asm.refuse('line %d: a join in the kernel keeps one value', line) end
    local term = term_of(use, 1)
    if not term.value then asm.refuse('line %d: the key of a join is text', line) end
    if not term.key then asm.refuse('line %d: the key may be a fraction', line) end
    use.key = kernel_joins.compile(term.value, use.view.fields)
    all_threads = all_threads and THREADS[key.field] or false
    is_unsigned, is_negative = is_unsigned or term.type == 'u64', is_negative or term.low < 0
  end
  if is_unsigned and is_negative then asm.refuse 'the keys of a join are signed and unsigned numbers' end
  return all_threads
end

--- Makes the maps, and completes the parts of starts and finishes.
---@param kernel InKernel
function HandlerJoins:prepare(kernel)
  self.kernel = {}
  for _, join in ipairs(self.list) do
    local uses = self.uses[join]
    local how = countable.of(join).join(join)
    if how.refuse then asm.refuse('%s', how.refuse) end
    local direct, has_value = compile_keys(uses) and kernel:thread_places() or nil, false
    for _, use in ipairs(uses) do has_value = has_value or (use.statement.results or 0) > 1 end
    has_value = has_value and self:value_of(join) ~= nil
    local made = kernel_joins.new { expires = how.expires, direct = direct, has_value = has_value,
      nr_cpus = kernel.switch.nr_cpus }
    table.insert(self.kernel, { made = made, update = how.update })
    if how.moved then kernel:probe_id_changes(made:move_body()) end
    for _, use in ipairs(uses) do use.made = made end
  end
end

--- Adds a start() or finish() to the program of its handler.
---@param view HandlerView
---@param plan HandlerPlan
---@param statement handler_code.Statement
function HandlerJoins:add(view, plan, statement)
  for _, use in ipairs(self.uses[statement.join]) do
    if use.view == view and use.statement == statement then
      local part = add_part(view, plan, statement, view.parts[statement] or {})
      part.key, part[statement.method] = use.key, use.made
      if statement.method == 'start' and use.made.has_value then
        part.value = kernel_joins.compile(term_of(use, 3).value, view.fields)
      end
      part.ns = part.ns or statement.method == 'finish' and kernel_joins.field('__ns', false) or nil
    end
  end
end

--- Loads the programs, when all parts are known.
---@param kernel InKernel
function HandlerJoins:load(kernel)
  for _, one in ipairs(self.views) do kernel:probe(one.event, one.view.program:body()) end
end

--- Returns how many events there were of those that have joins.
---@return table<Event, number>
function HandlerJoins:by_event()
  local events = {}
  for _, one in ipairs(self.views) do events[one.event] = one.view.program:events() end
  return events
end

--- Tells the joins what was counted.
function HandlerJoins:update()
  for _, one in ipairs(self.kernel or {}) do
    one.update(one.made:counts(), function() return one.made:waiting() end)
  end
end

return handler_joins
