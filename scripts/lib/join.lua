-- SPDX-License-Identifier: GPL-2.0-only
--- Joins: values of a first event, by key, in the handler of a second one, with the time between them.
---
---   local calls = require('lib.join').new()
---   return { lost = calls.lost,
---     ['raw_syscalls:sys_enter'] = function(ev) calls:start(ev._tid, ev._time, ev.id) end,
---     ['raw_syscalls:sys_exit'] = function(ev)
---       local ns, id = calls:finish(ev._tid, ev._time)
---       if ns then out:print(id, ns > 0, ev.ret) end end }
---
--- A second event may start the next join, for three stages and more. lib.pairs does more (keys as expressions, kept
--- events, tasks that end), this needs no declarations.
---
--- A key has one start: a new one replaces it. Starts that wait too long are dropped, and those that a gap of lost
--- events may have falsified, if the script has the handler `lost`.
local check = require 'bindings.base.check'
local countable = require 'bindings.base.countable'
local joins = require 'bpf.handlers.joins'
local map = require 'lib.map'
local units = require 'lib.units'

local join = {}

local MAX = 65536

-- Called as functions: a trace that does not loop would look up each method again.
local methods = getmetatable(map.new()).__index
local get, set, take, count = methods.get, methods.set, methods.take, methods.count

--- Started keys.
---@class Join
---@field lost fun(gap: table) the handler `lost`: starts before the end of the gap do not count
---@field unstarted integer finishes without a start
---@field replaced integer starts that another one replaced
---@field expired integer starts that waited too long
---@field doubtful integer starts dropped because of lost events
---@field evicted integer starts dropped because there were too many
local Join = {}
Join.__index = Join

---@class JoinSettings
---@field expires? number|string time after which a start does not count, in ns or as text: '10s'; default: none
---@field max? integer open starts; default: 65536. Beyond it, those older than the average are dropped

--- Returns what a join has found. A start that finish() takes is kept to be used again.
local function found(self)
  return { found = self._found > 0 or self._free[1] ~= nil, ends = self.unstarted,
    starts = self.replaced + self.evicted + self:count() }
end

--- Returns a join.
---@param settings? JoinSettings
---@return Join
function join.new(settings)
  settings = settings or {}
  check.settings(settings, { 'expires', 'max' }, 'join.new')
  local expires, message = settings.expires or math.huge, nil
  if type(expires) == 'string' then expires, message = units.duration(expires) end
  if message then error('join.new: expires: ' .. message, 2) end
  check.is(expires, 'number', 'join.new takes expires in ns')
  check.whole(settings.max or MAX, 1, 2 ^ 24, 'join.new takes the number of open starts')
  local self = setmetatable({
    unstarted = 0, replaced = 0, expired = 0, doubtful = 0, evicted = 0,
    _expires = expires, _max = settings.max or MAX, _until = -math.huge, _open = map.new(), _free = {}, _n_free = 0,
    _found = 0,
  }, Join)
  self.lost = function(gap) self._until = math.max(self._until, gap.to) end
  joins.add(self, found)
  return self
end

local function release(self, start)
  self._n_free = self._n_free + 1
  self._free[self._n_free] = start
end

--- Drops the starts that are older than the average.
local function evict(self)
  local open, total = {}, 0
  self._open:each(function(key, start)
    open[#open + 1] = key
    total = total + start.time
  end)
  local average = total / #open
  for _, key in ipairs(open) do
    if self._open:get(key).time <= average then
      self._open:take(key)
      self.evicted = self.evicted + 1
    end
  end
end

--- Returns an unused start.
local function unused(self)
  if count(self._open) >= self._max then evict(self) end
  local n = self._n_free
  if n == 0 then return { time = 0, a = false, b = false, c = false, d = false } end
  self._n_free = n - 1
  return self._free[n]
end

--- Stores the start of a key, with up to four values.
---@param key any a number, an integer64 or a string
---@param time number `ev._time`
---@param a? any
---@param b? any
---@param c? any
---@param d? any
function Join:start(key, time, a, b, c, d)
  if type(time) ~= 'number' then
    error(('join:start takes a key and a time (ev._time), not %s as the time'):format(check.shown(time)), 2)
  end
  local start = get(self._open, key)
  if start then
    self.replaced = self.replaced + 1
  else
    start = unused(self)
    set(self._open, key, start)
  end
  start.time, start.a, start.b, start.c, start.d = time, a, b, c, d
end

--- Removes the start of a key, and returns the time since then and its values.
---@param key any
---@param time number `ev._time`
---@return number? ns at least 0; nil if the key has no start, or one that does not count
---@return any a the values of start()
---@return any b
---@return any c
---@return any d
function Join:finish(key, time)
  if type(time) ~= 'number' then
    error(('join:finish takes a key and a time (ev._time), not %s as the time'):format(check.shown(time)), 2)
  end
  local start = take(self._open, key)
  if not start then
    self.unstarted = self.unstarted + 1
    return
  end
  release(self, start)
  if start.time < self._until then
    self.doubtful = self.doubtful + 1
    return
  end
  local ns = time - start.time
  if ns > self._expires then
    self.expired = self.expired + 1
    return
  end
  return ns > 0 and ns or 0, start.a, start.b, start.c, start.d
end

--- Gives the start of a key to another key, which loses its own.
---@param before any
---@param after any
function Join:move(before, after)
  local start = take(self._open, before)
  take(self._open, after)
  if start then set(self._open, after, start) end
end

--- Lets starts go on when their thread gets another id: one that executes a program gets that of its process. For joins
--- whose keys are threads, in start():
---
---   return calls:follow(session, {
---     ['raw_syscalls:sys_enter'] = function(ev) calls:start(ev._tid, ev._time) end,
---     ...
---   })
---
--- Nothing is followed where these events are not known: in recordings and on other machines without
--- sched:sched_process_exec, and in pid namespaces.
---@param session Session
---@param handlers table to which a handler is added
---@param like? Event the threads are those of the machine that sends it (`pull=`)
---@return table handlers
function Join:follow(session, handlers, like)
  local changes, is_foreign = session.id_changes(like)
  if not changes or is_foreign then return handlers end
  self._moved = function(ev) self:move(ev.old_pid, ev.pid) end
  handlers[changes] = self._moved
  return handlers
end

--- Returns the number of open starts.
---@return integer
function Join:count() return self._open:count() + (self._waiting and self._waiting() or 0) end

countable.add(Join, {
  is_own = function(self)
    for name in next, self do
      if Join[name] ~= nil then return false end
    end
    return true
  end,
  join = function(self)
    return {
      expires = self._expires,
      refuse = self._max ~= MAX and 'the number of open starts is limited' or nil,
      lost = self.lost,
      moved = self._moved,
      update = function(counts, waiting)
        for name, n in pairs(counts) do
          local counter = name == 'found' and '_found' or name
          self[counter] = self[counter] + n
        end
        self._waiting = waiting
      end,
    }
  end,
})

return join
