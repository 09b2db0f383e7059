-- SPDX-License-Identifier: GPL-2.0-only
--- Dispatch: generates the loop over a batch of events for one session, so that LuaJIT compiles event -> typed view
--- -> handler into one trace. The loop looks up nothing by name.
local bit = require 'bit'
local ffi = require 'ffi'
local views = require 'bindings.view.views'

local C = ffi.C
local dispatch = {}

--- The handlers of one class.
---@class ClassHandlers
---@field class integer
---@field view View
---@field handlers function[]

-- LuaJIT allows 60 upvalues and 200 local variables per function. Larger sets of classes are split into groups with
-- a function each.
local MAX_BOUND = 40

-- Who rejects samples, and where the numbers of these begin in the array below.
local REJECTERS = { filter = 0, target = 1, gate = 2, limit = 3 }
local NR_CLASSES = tonumber(C.EVENT_CLASSES)
local rejected = ffi.new('double[?]', 4 * NR_CLASSES)

--- Returns code that rejects the sample `e`, which later passes do not see then.
---@param by 'filter'|'target'|'gate'|'limit'
---@return string
function dispatch.reject(by)
  return ('e.class = %d rejected[class + %d] = rejected[class + %d] + 1'):format(C.EVENT_FILTERED,
    REJECTERS[by] * NR_CLASSES, REJECTERS[by] * NR_CLASSES)
end

--- Counts the samples from number `from` on, which no later pass sees, as rejected by a limit.
---@param events ffi.cdata* struct event *
---@param from integer
---@param n integer
function dispatch.drop(events, from, n)
  local first = REJECTERS.limit * NR_CLASSES
  for i = from, n - 1 do
    local at = first + events[i].class
    rejected[at] = rejected[at] + 1
  end
end

--- Returns how many samples of a class were rejected.
---@param class integer
---@return table<string, number> by who did
function dispatch.rejected(class)
  local found = {}
  for by, place in pairs(REJECTERS) do found[by] = rejected[place * NR_CLASSES + class] end
  return found
end

--- Begins to count them anew.
function dispatch.forget_rejected() ffi.fill(rejected, ffi.sizeof(rejected)) end

local kept -- sources of loops, for who wants to see them

--- Keeps the sources of the loops that are compiled from now on.
function dispatch.keep_sources() kept = {} end

--- Returns these.
---@return { name: string, source: string, classes: integer[] }[]
function dispatch.sources() return kept or {} end

--- The code that handles the events of one class.
---@class Branch
---@field class integer
---@field code string statements that use `e` (a struct event *), its `class` and the names that chain() gives to all
--- branches
---@field bound table<string, any> values of the other names in the code
---@field same? string branches with an equal `same` run the same code; adjacent ones share one test, which keeps
--- compiled code in its loop

--- Returns an if chain for the branches, the names of its upvalues and their values.
local function chain(branches)
  local names = { 'cast', 'bor', 'bxor', 'bits64', 'batch', 'rejected' }
  local values, tests = { ffi.cast, bit.bor, bit.bxor, ffi.typeof 'uint64_t', views.batch, rejected }, {}
  for i, branch in ipairs(branches) do
    for name, value in pairs(branch.bound) do
      names[#names + 1], values[#values + 1] = name, value
    end
    local test = branch.last == branch.class and ('class == %d'):format(branch.class)
      or ('class >= %d and class <= %d'):format(branch.class, branch.last)
    tests[i] = ('%s %s then\n%s\n'):format(i == 1 and 'if' or 'elseif', test, branch.code)
  end
  return table.concat(tests) .. 'end\n', table.concat(names, ', '), values
end

--- Merges adjacent branches with the same code into one for the range class..last.
local function merge(branches)
  table.sort(branches, function(a, b) return a.class < b.class end)
  local merged = {}
  for _, branch in ipairs(branches) do
    local before = merged[#merged]
    if before and branch.same and branch.same == before.same and branch.class == before.last + 1 then
      before.last = branch.class
    else
      merged[#merged + 1] = { class = branch.class, last = branch.class, code = branch.code, bound = branch.bound,
        same = branch.same }
    end
  end
  return merged
end

--- Splits the branches into groups of adjacent branches that fit into one function each.
local function group(branches)
  local groups, bound = {}, math.huge
  for _, branch in ipairs(branches) do
    local n = 0
    for _ in pairs(branch.bound) do n = n + 1 end
    bound = bound + n
    if bound > MAX_BOUND then
      groups[#groups + 1] = {}
      bound = n
    end
    table.insert(groups[#groups], branch)
  end
  return groups
end

--- Returns the branch that calls the function of a group.
local function group_branch(i, members, call)
  local name = 'group_' .. i
  return { class = members[1].class, last = members[#members].last, code = name .. '(e, class)',
    bound = { [name] = call } }
end

local LOOP = [[
local %s = ...
return function(events, n)
  for i = 0, n - 1 do
    local e = events + i
    local class = e.class
    %s
    %s
  end
end
]]
local STOP = 'if stop[0] ~= 0 then return i + 1 end'

--- Compiles a function(events, n) that runs, for each of n events, the branch of its class.
---@param name string chunk name for error messages
---@param branches Branch[] at least one
---@param stop? ffi.cdata* int32_t[1]; a branch that sets it ends the loop, which then returns the number of events so
--- far
---@return function
function dispatch.loop(name, branches, stop)
  branches = merge(branches)
  local classes = {}
  for _, branch in ipairs(branches) do
    for class = branch.class, branch.last do classes[#classes + 1] = class end
  end
  local groups = group(branches)
  while #groups > 1 do
    for i, members in ipairs(groups) do
      local code, names, values = chain(members)
      local source = ('local %s = ...\nreturn function(e, class)\n%send\n'):format(names, code)
      if kept then kept[#kept + 1] = { name = 'group_' .. i, source = source, classes = {} } end
      branches[i] = group_branch(i, members, assert(loadstring(source, '=' .. name))(unpack(values)))
    end
    for i = #groups + 1, #branches do branches[i] = nil end
    groups = group(branches)
  end
  local body, names, values = chain(branches)
  local source = LOOP:format(stop and names .. ', stop' or names, body, stop and STOP or '')
  values[#values + 1] = stop
  if kept then kept[#kept + 1] = { name = name, source = source, classes = classes } end
  return assert(loadstring(source, '=' .. name))(unpack(values))
end

--- Returns the branches that call the handlers of events.
---@param list ClassHandlers[]
---@param lost fun(e: ffi.cdata*) called with the struct event of each EVENT_LOST
---@return Branch[]
function dispatch.handlers(list, lost)
  local branches = { { class = C.EVENT_LOST, code = 'lost(e)', bound = { lost = lost } } }
  for i, one in ipairs(list) do
    local bound = { ['type_' .. i] = one.view.type }
    local code = { ('local ev = cast(type_%d, bxor(cast(bits64, e), batch[0]))'):format(i) }
    for j, handler in ipairs(one.handlers) do
      local name = ('handler_%d_%d'):format(i, j)
      bound[name] = handler
      code[#code + 1] = name .. '(ev)'
    end
    branches[#branches + 1] = { class = one.class, code = table.concat(code, '\n'), bound = bound }
  end
  return branches
end

--- Returns the branches that mark samples rejected by a filter as EVENT_FILTERED.
---@param filters { class: integer, view: View, keep: fun(e, p, raw, size): any }[]
---@return Branch[]
function dispatch.filters(filters)
  local branches = {}
  for i, filter in ipairs(filters) do
    branches[i] = {
      class = filter.class,
      code = ('if not keep_%d(e, cast(payload_%d, e.raw), e.raw, e.raw_size) then %s end'):format(i, i,
        dispatch.reject 'filter'),
      bound = { ['payload_' .. i] = filter.view.payload, ['keep_' .. i] = filter.keep },
    }
  end
  return branches
end

--- Limits a batch of n events to at most `left` samples.
---@return integer n number of events to process
---@return integer samples number of samples among them
function dispatch.limit(events, n, left)
  local samples = 0
  for i = 0, n - 1 do
    if events[i].class >= C.EVENT_FIRST then
      samples = samples + 1
      if samples == left then return i + 1, samples end
    end
  end
  return n, samples
end

return dispatch
