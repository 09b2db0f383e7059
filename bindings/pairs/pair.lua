-- SPDX-License-Identifier: GPL-2.0-only
--- Views of pairs for scripts (struct pair in runtime/relations/pairs.h). They are opaque like events: a script that
--- keeps one by mistake may read another pair, but never freed memory.
local ffi = require 'ffi'

local C = ffi.C
local cast, copy, tonumber, typeof = ffi.cast, ffi.copy, tonumber, ffi.typeof
local pair = {}

local PAIR, ADDRESS, FILTERED = typeof 'struct pair *', typeof 'uintptr_t', C.EVENT_FILTERED
local PAIR_SIZE, EVENT_SIZE = ffi.sizeof 'struct pair', ffi.sizeof 'struct event'

local serial = 0
local is_pair = {} -- by ctype id

--- Returns the struct pair that a script passed. Errors point at the line of the caller's caller.
---@param p any
---@param what string the function that was called
---@return ffi.cdata* struct pair *
function pair.of(p, what)
  if type(p) ~= 'cdata' or not is_pair[tonumber(typeof(p))] then
    error(('%s takes a pair, not a %s'):format(what, type(p)), 3)
  end
  return cast(PAIR, p)
end

--- An array of pairs and their views.
---@class PairBuffer
---@field out ffi.cdata* struct pair[]
---@field view fun(i: integer): ffi.cdata* returns the view of element i
---@field expire fun(i: integer) invalidates the script's references to the first event of element i

---@param max integer
---@param any ffi.ctype* view type for events of any class
---@return PairBuffer
function pair.buffer(max, any)
  local out = ffi.new('struct pair[?]', max)
  local begin = cast(ADDRESS, cast(PAIR, out))
  local firsts = ffi.new('struct event[?]', max) -- filled when the script reads first_event
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
      if k == 'first_value' then return tonumber(q.first_value) end
      if k == 'first_class' then return q.first_class end
      if k == 'second_class' then return q.second_class end
      if k == 'first_tid' then return q.first_tid end
      if k == 'first_cpu' then return q.first_cpu end
      if k ~= 'first_event' then error(("pairs have no field '%s'"):format(tostring(k)), 2) end
      if q.first_event == nil then return nil end
      -- Not q - out: LuaJIT compiles that only for sizes that are powers of two.
      local first = firsts + tonumber(cast(ADDRESS, q) - begin) / PAIR_SIZE
      copy(first, q.first_event, EVENT_SIZE)
      return cast(any, first)
    end,
    __newindex = function() error('pairs are read-only', 2) end,
  })
  local view = typeof(name .. ' *')
  is_pair[tonumber(view)] = true
  return {
    out = out,
    view = function(i) return cast(view, out + i) end,
    expire = function(i)
      local first = firsts[i]
      first.class, first.raw_size, first.raw, first.chain = FILTERED, 0, nil, nil
      out[i].first_event = nil
    end,
  }
end

return pair
