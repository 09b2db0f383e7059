-- SPDX-License-Identifier: GPL-2.0-only
--- Pairs as scripts see them (struct pair of runtime/relations/pairs.h): opaque like events, so that a
--- script that keeps one reads another pair or none, but no memory that is gone.
local ffi = require 'ffi'

local C = ffi.C
local cast, copy, tonumber, typeof = ffi.cast, ffi.copy, tonumber, ffi.typeof
local pair = {}

local PAIR, EVENT_SIZE, FILTERED = typeof 'struct pair *', ffi.sizeof 'struct event', C.EVENT_FILTERED

local serial = 0
local is_pair = {} -- by the number of the type

--- The pair as C has it.
---@param p any what a script was given as a pair
---@param what string that wants it, for the message
---@return ffi.cdata* struct pair *
function pair.of(p, what)
  if type(p) ~= 'cdata' or not is_pair[tonumber(typeof(p))] then
    error(('%s takes a pair, not a %s'):format(what, type(p)), 3)
  end
  return cast(PAIR, p)
end

--- Room for pairs, and what scripts get of them.
---@class PairRoom
---@field out ffi.cdata* struct pair[], of which the script sees element i as view(i)
---@field view fun(i: integer): ffi.cdata*
---@field forget fun(i: integer) the script has seen it: what it has kept of the first event leads nowhere

---@param most integer
---@param any ffi.ctype* what scripts get of an event
---@return PairRoom
function pair.room(most, any)
  local out = ffi.new('struct pair[?]', most)
  local firsts = ffi.new('struct event[?]', most) -- of those that the script has asked for
  serial = serial + 1
  local name = 'struct profscript_pair_' .. serial
  ffi.cdef(name .. ';')
  ffi.metatype(name, {
    __index = function(p, k)
      local q = cast(PAIR, p)
      if k == 'ns' then return q.ns end
      if k == 'key' then return q.key end
      if k == 'kind' then return q.kind end
      if k == 'first_time' then return q.first_time end
      if k == 'second_time' then return q.second_time end
      if k == 'first_class' then return q.first_class end
      if k == 'second_class' then return q.second_class end
      if k == 'first_tid' then return q.first_tid end
      if k == 'first_cpu' then return q.first_cpu end
      if k ~= 'first_event' then error(("pairs have no field '%s'"):format(tostring(k)), 2) end
      if q.first_event == nil then return nil end
      local first = firsts + (q - out)
      copy(first, q.first_event, EVENT_SIZE)
      return cast(any, first)
    end,
    __newindex = function() error('pairs cannot be changed', 2) end,
  })
  local view = typeof(name .. ' *')
  is_pair[tonumber(view)] = true
  return {
    out = out,
    view = function(i) return cast(view, out + i) end,
    forget = function(i)
      local first = firsts[i]
      first.class, first.raw_size, first.raw, first.chain = FILTERED, 0, nil, nil
      out[i].first_event = nil
    end,
  }
end

return pair
