-- SPDX-License-Identifier: GPL-2.0-only
--- Objects that are not freed, and their report by stack (kmemleak).
local objects = require 'lib.objects'
local tables = require 'lib.table'
local values = require 'bindings.options.values'

local leaks = {}

local MAX_OBJECTS = 2 ^ 22 -- about 300 MB
local STATUS = { 'objects', 'bytes', 'alloc', 'free' }
local TOTALS = { { name = 'alloc', metric = 'counter' }, { name = 'free', metric = 'counter' } }

--- The live objects of a run. Handlers put them into `live`, and count in `allocated` and `freed`.
---@class Leaks
---@field live Objects their kind is the index of an event in `events`
---@field events string[] names of the events that allocate
---@field unsized string[] names of those without a size
---@field has_stacks boolean one of them records stacks
---@field allocated integer
---@field freed integer
---@field known_from number the end of the last loss: lost events may have freed older objects
local Leaks = {}
Leaks.__index = Leaks

---@param opt table than, comm and verbose
---@param out Output
---@param session Session
---@return Leaks
function leaks.new(opt, out, session)
  local self = setmetatable({
    _opt = values.optional(opt), _out = out, _session = session,
    live = objects.new(MAX_OBJECTS), events = {}, unsized = {}, has_stacks = false,
    allocated = 0, freed = 0, known_from = 0,
    _totals = tables.offered('kmemleak', TOTALS), _offered = { alloc = 0, free = 0 },
    _spec = tables.new('leaks', {
      { name = 'bytes', adds_up = true },
      { name = 'objects', adds_up = true },
      { name = 'oldest_ns' },
      { name = 'newest_ns' },
      { name = 'event' },
      { name = 'comms', show = opt.comm },
      { name = 'stack' },
    }, { stamp = false }),
  }, Leaks)
  tables.record('status', STATUS)
  return self
end

--- Calls a function with each live object that is old enough, and whether lost events may have freed it.
local function each_old(self, now, use)
  local than = self._opt.than
  self.live:each(function(object)
    if not than or now - object.time > than then use(object, object.time < self.known_from) end
  end)
end

local function stack_of(object) return object.stack < 2 ^ 31 and object.stack or -1 end

local function more(a, b)
  if a.bytes ~= b.bytes then return a.bytes > b.bytes end
  if a.objects ~= b.objects then return a.objects > b.objects end
  return a.oldest and a.oldest > b.oldest or a.comm ~= nil and a.comm < b.comm
end

--- Adds an object to a sum.
local function count(sum, size) sum.bytes, sum.objects = sum.bytes + size, sum.objects + 1 end

--- Returns the sum of a key, which is made when it is first asked for.
local function entry(by_key, list, key, make)
  if not by_key[key] then
    by_key[key] = make()
    list[#list + 1] = by_key[key]
  end
  return by_key[key]
end

--- Returns the live objects by stack, or by event if they have no stack; most bytes first. The second sum is of objects
--- that lost events may have freed.
local function by_stack(self, now)
  local groups, order, sum, uncertain = {}, {}, { bytes = 0, objects = 0 }, { bytes = 0, objects = 0 }
  each_old(self, now, function(object, is_uncertain)
    local size, stack, age = tonumber(object.size), stack_of(object), now - object.time
    if is_uncertain then return count(uncertain, size) end
    count(sum, size)
    local group = entry(groups, order, stack >= 0 and stack or -tonumber(object.kind), function()
      return { bytes = 0, objects = 0, oldest = 0, newest = math.huge, comms = {}, names = {}, stack = stack,
        event = self.events[object.kind] }
    end)
    count(group, size)
    group.oldest, group.newest = math.max(group.oldest, age), math.min(group.newest, age)
    local comm = self._session.task_name(object.tid)
    count(entry(group.comms, group.names, comm, function() return { comm = comm, bytes = 0, objects = 0 } end), size)
  end)
  for _, group in ipairs(order) do
    table.sort(group.names, more)
    for i, name in ipairs(group.names) do group.names[i] = ('%s(%d/%d)'):format(name.comm, name.bytes, name.objects) end
  end
  table.sort(order, more)
  return order, sum, uncertain
end

local function frame_lines(self, stack) return stack >= 0 and self._session.stack_lines(stack) or {} end

local function print_text(self, list, sum)
  local out = self._out
  out:stamp()
  out:printf('KMEMLEAK STATS:\nTOTAL alloc %d free %d\n', self.allocated, self.freed)
  out:printf('LEAKED %d bytes in %d objects\n\n', sum.bytes, sum.objects)
  if #list > 0 then out:write 'LEAKED BYTES REPORT:\n' end
  for _, leak in ipairs(list) do
    out:printf('Leak of %d bytes in %d objects allocated %s:\n', leak.bytes, leak.objects,
      leak.stack >= 0 and 'from' or 'by ' .. leak.event)
    out:printf('    age: %.3f s to %.3f s\n', leak.newest / 1e9, leak.oldest / 1e9)
    if self._opt.comm then out:printf('    comms: %s\n', table.concat(leak.names, ' ')) end
    for _, line in ipairs(frame_lines(self, leak.stack)) do out:printf('    %s\n', line) end
  end
end

local function print_rows(self, list)
  for _, leak in ipairs(list) do
    leak.oldest_ns, leak.newest_ns = leak.oldest, leak.newest
    leak.comms, leak.stack = leak.names, frame_lines(self, leak.stack)
  end
  self._out:table(self._spec, list, nil, function() return '' end)
end

--- Warns about what the report lacks.
local function warn(self, list, uncertain)
  local replaced, no_room = self.live:stats()
  local function say(...) self._out:warn('kmemleak: ' .. (...):format(select(2, ...))) end
  if uncertain.objects > 0 then
    say('ignored %d objects (%d bytes): lost events may have freed them', uncertain.objects, uncertain.bytes)
  end
  if no_room > 0 then say('did not track %d allocations: more than %d live objects', no_room, MAX_OBJECTS) end
  if #self.unsized > 0 and #list > 0 then
    say('no size= for %s: its allocations count as 0 bytes', table.concat(self.unsized, ', '))
  end
  if self._opt.verbose > 0 then
    say('%d allocations at an address already in use', replaced)
    if not self.has_stacks then say 'use -g to record the stacks of allocations' end
  end
end

--- Prints the objects that are live now.
---@param now number
---@return table[] list the printed objects by stack
---@return { objects: integer, bytes: integer } uncertain what may have been freed
function Leaks:print(now)
  local out = self._out
  local list, sum, uncertain = by_stack(self, now)
  if out.format == 'text' then print_text(self, list, sum) end
  if out:takes_rows() then print_rows(self, list) end
  return list, uncertain
end

--- Prints the objects that are live now, and what the report lacks.
---@param now number
function Leaks:report(now)
  if self.allocated == 0 then return end
  local offered = self._offered
  self._out:offer(self._totals, { { alloc = self.allocated - offered.alloc, free = self.freed - offered.free } })
  offered.alloc, offered.free = self.allocated, self.freed
  warn(self, self:print(now))
end

--- Prints how many objects there are.
function Leaks:print_status()
  local out, all = self._out, { bytes = 0, objects = 0 }
  self.live:each(function(object) count(all, tonumber(object.size)) end)
  if out.format == 'text' then
    out:stamp()
    out:printf('KMEMLEAK STATS:\nALLOC LIST num %d mem %d\n', all.objects, all.bytes)
    out:printf('TOTAL alloc %d free %d\n', self.allocated, self.freed)
  else
    all.alloc, all.free = self.allocated, self.freed
    out:record('status', all, STATUS)
  end
end

--- Draws the live objects as a flame graph of bytes, or of objects if not all sizes are known.
---@param now number
---@param flame FlameGraph
function Leaks:draw(now, flame)
  each_old(self, now, function(object, is_uncertain)
    if is_uncertain or stack_of(object) < 0 then return end
    local tid, stack = object.tid, object.stack
    flame:add({ _stack = stack, _comm = self._session.task_name(tid), _pid = object.space, _tid = tid, _cpu = -1 },
      #self.unsized == 0 and tonumber(object.size) or 1)
  end)
  flame:finish()
end

return leaks
