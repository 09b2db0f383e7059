-- SPDX-License-Identifier: GPL-2.0-only
--- Sums by stack and task, such as bytes allocated or time waited.
---
---   local sums = stacks.new(session, { 'bytes', 'calls' })
---   sums:add(ev._stack, ev._comm, ev.bytes_alloc, 1)
---   sums:print(out, { limit = 10 })   -- the ten stacks with the most bytes
---
--- Only printed stacks are symbolized.
local array = require 'lib.array'
local check = require 'bindings.base.check'
local intern = require 'lib.intern'
local tables = require 'lib.table'
local text = require 'bindings.base.text'
local units = require 'lib.units'

local stacks = {}

local MAX_KEYS = 65536 -- of stack and task
local MAX_VALUES = 3
local OTHER = '(other)'

--- Sums by stack and task.
---@class StackSums
---@field add fun(self: StackSums, stack: integer, comm: string, ...: number) adds a number to each value
local StackSums = {}
StackSums.__index = StackSums

--- Returns the source of add with a fixed number of arguments: LuaJIT does not compile varargs.
local function add_source(n)
  local names, code = {}, {}
  for i = 1, n do
    names[i] = 'v' .. i
    code[i] = ('sums_%d[i] = sums_%d[i] + tonumber(v%d)'):format(i, i, i)
  end
  return ([[
local id, sums_1, sums_2, sums_3 = ...
return function(_, stack, comm, %s) local i = id(stack, comm) %s end]]):format(table.concat(names, ', '),
    table.concat(code, ' '))
end

--- Creates empty sums. Stacks beyond `max_keys` share one entry, '(other)'.
---@param session Session
---@param values string[] names of 1 to 3 values; entries are sorted by the first
---@param settings? { name?: string, max_keys?: integer } name: name of the table in JSON and CSV; max_keys: default
--- 65536
---@return StackSums
function stacks.new(session, values, settings)
  settings = settings or {}
  check.settings(settings, { 'name', 'max_keys' }, 'stacks.new')
  if #values < 1 or #values > MAX_VALUES then error('stacks.new takes 1 to 3 names of values', 2) end
  local max_keys = settings.max_keys or MAX_KEYS
  local self = setmetatable({ _session = session, _values = values, _sums = {}, _keys = intern.new(2, max_keys) },
    StackSums)
  local columns = { { name = 'stack' }, { name = 'comm' } }
  for i, name in ipairs(values) do
    self._sums[i] = array.new(max_keys + 1)
    columns[#columns + 1] = { name = name, align = 'right', metric = 'counter' }
  end
  self._spec = tables.new(settings.name or 'stacks', columns)
  self.add = assert(loadstring(add_source(#values), '=stacks.add'))(self._keys.id, unpack(self._sums))
  return self
end

--- Removes all entries.
function StackSums:clear()
  for _, sums in ipairs(self._sums) do
    for id = 0, self._keys:count() - 1 do sums[id] = 0 end
    sums[self._keys.max] = 0
  end
  self._keys:clear()
end

--- Returns all entries, largest first: { stack =, comm =, [name of a value] = ... }.
---@return table[]
function StackSums:entries()
  local list = {}
  local function entry(id, stack, comm)
    local one = { stack = stack, comm = comm }
    for i, name in ipairs(self._values) do one[name] = self._sums[i][id] end
    list[#list + 1] = one
  end
  for id = 0, self._keys:count() - 1 do entry(id, self._keys:part(id, 1), self._keys:part(id, 2)) end
  local first = self._values[1]
  table.sort(list, function(a, b)
    local x, y = math.abs(a[first]), math.abs(b[first])
    if x ~= y then return x > y end
    if a.comm ~= b.comm then return a.comm < b.comm end
    return a.stack < b.stack
  end)
  if self._keys:overflow() > 0 then entry(self._keys.max, OTHER, OTHER) end
  return list
end

--- Subtracts earlier sums with the same values, which leaves the change since then.
---@param before StackSums
function StackSums:subtract(before)
  for _, entry in ipairs(before:entries()) do
    if entry.stack ~= OTHER then
      local values = {}
      for i, name in ipairs(self._values) do values[i] = -entry[name] end
      self:add(entry.stack, entry.comm, unpack(values))
    end
  end
end

--- Returns the rows of the table.
local function rows_of(self, limit)
  local rows = {}
  for _, entry in ipairs(self:entries()) do
    local lines = entry.stack == OTHER and { OTHER } or nil
    if #rows < limit and entry[self._values[1]] ~= 0 then
      entry.stack = lines or self._session.stack_lines(entry.stack)
      rows[#rows + 1] = entry
    end
  end
  return rows
end

--- Shows the entries to --prometheus, --otlp and --serve, without printing them.
---@param out Output
function StackSums:offer(out) out:offer(self._spec, rows_of(self, math.huge)) end

--- Prints the entries, largest first value first. Entries whose first value is 0 are left out.
---@param out Output
---@param settings? { limit?: integer } limit: print at most this many entries
function StackSums:print(out, settings)
  check.is(out, 'table', 'stacks:print takes out, the second argument of start')
  check.settings(settings, { 'limit' }, 'stacks:print')
  local rows = rows_of(self, settings and settings.limit or math.huge)
  out:table(self._spec, rows, nil, function()
    local lines = {}
    for _, row in ipairs(rows) do
      local values = {}
      for i, name in ipairs(self._values) do values[i] = ('%s %s'):format(name, units.short(row[name])) end
      lines[#lines + 1] = ('%s: %s\n'):format(text.safe(row.comm), table.concat(values, ', '))
      for _, line in ipairs(row.stack) do lines[#lines + 1] = '    ' .. line .. '\n' end
    end
    return table.concat(lines)
  end)
end

return stacks
