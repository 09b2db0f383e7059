-- SPDX-License-Identifier: GPL-2.0-only
--- Handler plans: finds the handlers that only count, of which the bytecode says that they do nothing but add to
--- objects of the library and to variables (bpf/handlers/code.lua). BPF programs can do that in their
--- place, if no other code looks at these objects and variables while events arrive: only `interval` and `stop`, before
--- which they are updated. Handlers that share some of them are taken together, or not at all.
local array = require 'bindings.base.array'
local asm = require 'bpf.gen.asm'
local countable = require 'bindings.base.countable'
local handler_code = require 'bpf.handlers.code'
local handler_joins = require 'bpf.ways.join'
local handler_terms = require 'bpf.ways.terms'
local mentions = require 'bpf.handlers.mentions'
local tally = require 'bpf.ways.count'

local handler_plans = {}

--- A handler of a script.
---@class HandlerPlan
---@field handler function
---@field events Event[]
---@field code? handler_code.Code nil: it is not a function of a script
---@field reason? string why it runs in Lua
---@field is_declared? boolean the script has declared as data what it counts (session.tally)
---@field offer? HandlerOffer
---@field without? Offer if this one takes the events, the handler need not be called

---@class HandlerOffer: Offer
local HandlerOffer = { way = 'count' }
HandlerOffer.__index = HandlerOffer

local AFTER = { interval = true, draw = true, stop = true } -- called when all has been counted

-- In the kernel -----------------------------------------------------------------------------------

--- Returns what is counted of a sum, `total = total + ev.len`. Afterwards, the variable is updated.
local function count_sum(handler, statement, terms)
  local term, into = terms[1], array.new(1)
  if not term.value then asm.refuse 'it adds what is not a number' end
  if not term.key then asm.refuse("'%s' becomes a fraction", statement.name) end
  if term.type ~= 'i32' and term.type ~= 'u32' then
    asm.refuse("'%s' may become a 64-bit integer; lib.aggregate has sums", statement.name)
  end
  local function after()
    local _, value = debug.getupvalue(handler, statement.upvalue)
    if into[0] ~= 0 then debug.setupvalue(handler, statement.upvalue, value + (term.constant or 1) * into[0]) end
    into[0] = 0
  end
  return { sums = { { into = into, width = 1, at = 0, value = not term.constant and term.value or nil } },
    after = after }
end

--- Returns the object or the variable's value that a statement changes.
local function object_of(plan, statement)
  if statement.object then return statement.object end
  return (select(2, debug.getupvalue(plan.handler, statement.upvalue)))
end

--- Returns a tally: the one of these keys, if there are any.
local function tally_of(self, keys)
  local found = keys and self._of_keys[keys]
  if found then return found end
  local new = tally.of(self._services, keys)
  table.insert(self._tallies, new)
  if keys then self._of_keys[keys] = new end
  return new
end

--- Adds what a handler does to tallies.
---@param view? HandlerView what it sees of the event, if it has joins
local function count(self, plan, event, view)
  for _, statement in ipairs(plan.code.statements) do
    if statement.join then
      self._joins:add(view, plan, statement)
    else
      local within, terms = view and handler_joins.within(view, plan, statement), {}
      local filter = not within and handler_terms.filter(plan.handler, event, statement.conditions) or nil
      for i, term in ipairs(statement.arguments) do
        terms[i] = handler_terms.resolve(plan.handler, view or event, term)
      end
      local described, why
      if statement.method then
        local object = object_of(plan, statement)
        described, why = countable.of(object).count(object, terms)
        if not described then asm.refuse('line %d: %s', statement.line, why) end
      else
        described = count_sum(plan.handler, statement, terms)
      end
      described.filter, described.handler = filter, plan.handler
      tally_of(self, described.keys):add_event(event, described, within)
      if described.after then table.insert(self._after, described.after) end
    end
  end
end

--- Returns the facts of the offer, see OfferFacts.
function HandlerOffer:facts() return { asks = {} } end -- luacheck: no self

--- Loads the programs: see Offer in bpf/run/in_kernel.lua.
---@param kernel InKernel
function HandlerOffer:load(kernel)
  local nr_cpus, views = kernel.switch.nr_cpus, {}
  self._tallies, self._of_keys, self._after, self._joins = {}, {}, {}, handler_joins.new(self.plans)
  self._services = kernel.run.services
  for i, plan in ipairs(self.plans) do
    views[i] = {}
    for j, event in ipairs(plan.events) do views[i][j] = self._joins:view(plan, event, nr_cpus) or false end
  end
  self._joins:prepare(kernel)
  for i, plan in ipairs(self.plans) do
    for j, event in ipairs(plan.events) do count(self, plan, event, views[i][j] or nil) end
  end
  for _, one in ipairs(self._tallies) do one:load(kernel) end
  self._joins:load(kernel)
end

---@param side integer
function HandlerOffer:turn(side)
  for _, one in ipairs(self._tallies) do one:turn(side) end
  for _, after in ipairs(self._after) do after() end
  self._joins:update()
end

--- Each event counts once, although it may have several programs. Some may leave out events.
function HandlerOffer:by_event()
  local found = self._joins:by_event()
  for _, one in ipairs(self._tallies) do
    for event, n in pairs(one:by_event()) do found[event] = math.max(found[event] or 0, n) end
  end
  return found
end

--- Returns the account of the histograms of keys of all handlers; nil: there are none.
---@return Figures?
function HandlerOffer:figures()
  local all
  for _, one in ipairs(self._tallies) do
    local found = one:figures()
    if found and all then
      all.fired, all.read = all.fired + found.fired, all.read + found.read
    else
      all = all or found
    end
  end
  return all
end

HandlerOffer.running = HandlerOffer.figures

---@param event Event
---@return boolean
function HandlerOffer:sees_all(event)
  for _, one in ipairs(self._tallies) do
    if one:sees_all(event) then return true end
  end
  return false
end

-- Which handlers ----------------------------------------------------------------------------------

--- Returns the objects and variables that a handler changes, with their names; or why it cannot run in the kernel.
---@param plan HandlerPlan
---@return table<any, string>? states
---@return string? reason
local function states_of(plan)
  local code, states = plan.code, {}
  if not code then return nil, 'it is not a function of a script' end
  if code.refusal then return nil, ('line %d %s'):format(code.refusal.line, code.refusal.text) end
  for _, statement in ipairs(code.statements) do
    local value = object_of(plan, statement)
    if statement.method then
      local how = countable.of(value)
      local call = ('line %d calls %s:%s()'):format(statement.line, statement.name, statement.method)
      local is_known = statement.method == 'add'
      if how and how.join then
        is_known = statement.method == 'start' or statement.method == 'finish'
        statement.join = value
      end
      if not how or not is_known then return nil, call end
      if how.refuse then return nil, ('line %d: %s'):format(statement.line, how.refuse) end
      states[value] = statement.name
      for _, member in next, type(value) == 'table' and value or {} do
        if type(member) == 'function' then states[member] = statement.name end
      end
    elseif type(value) ~= 'number' then
      return nil, ("line %d: '%s' is not a number"):format(statement.line, statement.name)
    else
      states[debug.upvalueid(plan.handler, statement.upvalue)] = statement.name
    end
  end
  return states
end

--- Returns the joins among what handlers change.
---@return { plan: HandlerPlan, state: table, name: string, of: CountedJoin }[]
local function joins_of(plans)
  local list = {}
  for _, plan in ipairs(plans) do
    for state, name in pairs(plan.states or {}) do
      local how = countable.of(state)
      if how and how.join then
        list[#list + 1] = { plan = plan, state = state, name = name, of = how.join(state) }
      end
    end
  end
  return list
end

--- Refuses handlers with joins in which the last handlers may start or finish something, too.
local function refuse_late(joins, checked, is_closed)
  local function is_use(text, is_code) return is_code and (text == 'start' or text == 'finish') end
  for name in pairs(#joins > 0 and AFTER or {}) do -- a search takes milliseconds
    local root = { checked.life[name] }
    local is_user = root[1] and mentions.any(root, is_use, nil, is_closed)
    for _, one in ipairs(is_user and joins or {}) do
      if one.plan.states and mentions.reaches(root, { [one.state] = true }, is_closed) then
        one.plan.states, one.plan.reason = nil, ("'%s' is also used by the handler %s"):format(one.name, name)
      end
    end
  end
end

--- Refuses handlers whose states other code may look at.
local function refuse_shared(run, plans, checked)
  local roots, is_closed, joins, of_joins = {}, mentions.leads_to(run), joins_of(plans), {}
  for _, one in ipairs(joins) do -- programs lose no events, and follow threads to their new ids
    of_joins[one.of.lost] = true
    if one.of.moved then of_joins[one.of.moved] = true end
  end
  for name, handler in pairs(checked.life) do
    if not AFTER[name] and not (name == 'lost' and of_joins[handler]) then
      roots[#roots + 1] = { handler, 'the handler ' .. name }
    end
  end
  for _, consumer in ipairs(checked.consumers) do roots[#roots + 1] = { consumer, 'an entry of the handlers' } end
  local function refuse(root)
    for _, plan in ipairs(plans) do
      for state, name in pairs(plan.states or {}) do
        if mentions.reaches({ root[1] }, { [state] = true }, is_closed) then
          plan.states, plan.reason = nil, ("'%s' is also used by %s"):format(name, root[2])
          break
        end
      end
    end
  end
  for _, root in ipairs(roots) do refuse(root) end
  refuse_late(joins, checked, is_closed)
  local done, again = {}, true
  while again do -- a handler that is refused may be the reason for others
    again = false
    for _, plan in ipairs(plans) do
      if not plan.states and not done[plan] and not of_joins[plan.handler] then
        done[plan], again = true, true
        refuse { plan.handler, plan.code and ('the handler at line %d'):format(plan.code.first) or 'another handler' }
      end
    end
  end
end

--- Returns a offer for each group of handlers that share states.
local function group(plans)
  local offer_of, offers = {}, {}
  for _, plan in ipairs(plans) do
    if plan.states then
      local offer = setmetatable({ events = {}, handlers = {}, plans = {}, attributes = {} }, HandlerOffer)
      local joined = {}
      for state in pairs(plan.states) do
        if offer_of[state] then joined[offer_of[state]] = true end
        offer_of[state] = offer
      end
      for other in pairs(joined) do
        for _, one in ipairs(other.plans) do table.insert(offer.plans, one) end
        offers[other] = nil
      end
      table.insert(offer.plans, plan)
      for state, other in pairs(offer_of) do
        if joined[other] then offer_of[state] = offer end
      end
      offers[offer] = true
    end
  end
  local list = {}
  for _, plan in ipairs(plans) do
    for offer in pairs(offers) do
      if offer.plans[1] == plan then list[#list + 1] = offer end
    end
  end
  for _, offer in ipairs(list) do
    for _, plan in ipairs(offer.plans) do
      plan.offer = offer
      for _, event in ipairs(plan.events) do
        table.insert(offer.events, event)
        offer.handlers[event] = plan.handler
      end
    end
  end
  return list
end

--- Lets offers also see the threads that get other ids, in place of the handlers that joins have for them.
local function spare_moves(plans)
  for _, one in ipairs(joins_of(plans)) do
    local offer = one.plan.offer
    for _, plan in ipairs(offer and plans or {}) do
      if plan.handler == one.of.moved then plan.without, offer.spares = offer, plan.events end
    end
  end
end

--- Returns the plan of each event that has only one handler.
local function only_plans(plans)
  local only, seen = {}, {}
  for _, plan in ipairs(plans) do
    for _, event in ipairs(plan.events) do
      only[event] = not seen[event] and plan or nil
      seen[event] = true
    end
  end
  return only
end

--- Finds the handlers that only count, and offers them to the kernel.
---@param run Run
---@param checked contract.Handlers
---@return HandlerPlan[] plans of all handlers of events, in the script's order
function handler_plans.offer(run, checked)
  local plans, by_handler, others = {}, {}, {}
  for _, offer in ipairs(run.in_kernel.offers) do
    for _, handler in pairs(offer.handlers or {}) do others[handler] = offer end
  end
  for _, entry in ipairs(checked.events) do
    local plan = by_handler[entry.handler]
    if not plan then
      plan = { handler = entry.handler, events = {}, code = handler_code.read(entry.handler, run.profiler.start) }
      by_handler[entry.handler], plans[#plans + 1] = plan, plan
      local other = others[entry.handler]
      plan.is_declared = other and other.way == 'count'
      if not plan.is_declared then
        plan.without, plan.states, plan.reason = other, states_of(plan)
      end
    end
    for _, event in ipairs(entry.found) do table.insert(plan.events, event) end
  end
  refuse_shared(run, plans, checked)
  local offers = group(plans)
  spare_moves(plans)
  run.in_kernel:offer_handlers(offers, only_plans(plans))
  return plans
end

return handler_plans
