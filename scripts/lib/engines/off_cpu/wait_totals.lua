-- SPDX-License-Identifier: GPL-2.0-only
--- Waits by up to four keys: how many, how long in all, and the longest.
local array = require 'lib.array'
local intern = require 'lib.intern'
local units = require 'lib.units'

local wait_totals = {}

local MAX_KEYS = 65536
wait_totals.MAX_KEYS = MAX_KEYS

---@class WaitTotals
---@field id fun(...: number): integer of four keys
---@field package _keys Intern
---@field package _totals number[] ns, by id; those for which there is no room have the id that is the greatest
---@field package _counts number[]
---@field package _longest number[] ns
local WaitTotals = {}
WaitTotals.__index = WaitTotals

---@return WaitTotals
function wait_totals.new()
  local keys = intern.new(4, MAX_KEYS)
  return setmetatable({ id = keys.id, _keys = keys, _totals = array.new(MAX_KEYS + 1),
    _counts = array.new(MAX_KEYS + 1), _longest = array.new(MAX_KEYS + 1) }, WaitTotals)
end

--- Adds waits.
---@param id integer
---@param ns number
---@param count integer
---@param longest number ns
function WaitTotals:add(id, ns, count, longest)
  local totals, counts, most = self._totals, self._counts, self._longest
  totals[id], counts[id] = totals[id] + ns, counts[id] + count
  if longest > most[id] then most[id] = longest end
end

--- Adds waits for which there is no room.
---@param ns number
function WaitTotals:leave_out(ns) self._totals[MAX_KEYS] = self._totals[MAX_KEYS] + ns end

--- Returns a key.
---@param id integer
---@param n integer from 1
---@return number
function WaitTotals:part(id, n) return (self._keys:part(id, n)) end

--- Returns the entries, longest first, with the fields count, total_ns and max_ns. Those with the same text are one.
---@param entry_of fun(id: integer): table, string returns an entry and its text
---@return table[]
function WaitTotals:entries(entry_of)
  local list, by_text, texts = {}, {}, {}
  for id = 0, self._keys:count() - 1 do
    local entry, text = entry_of(id)
    local same = by_text[text]
    if not same then
      same = entry
      same.total_ns, same.count, same.max_ns = 0, 0, 0
      by_text[text], list[#list + 1], texts[entry] = entry, entry, text
    end
    same.total_ns, same.count = same.total_ns + self._totals[id], same.count + self._counts[id]
    same.max_ns = math.max(same.max_ns, self._longest[id])
  end
  table.sort(list, function(a, b)
    if a.total_ns ~= b.total_ns then return a.total_ns > b.total_ns end
    return texts[a] < texts[b]
  end)
  return list
end

--- Says what there was no room for, and starts new totals.
---@param out Output
---@param name string of the profiler
function WaitTotals:finish(out, name)
  local totals, counts, longest = self._totals, self._counts, self._longest
  if totals[MAX_KEYS] > 0 then
    out:warn(('%s: there are more than %d entries: %s of waits are left out'):format(name, MAX_KEYS,
      units.time(totals[MAX_KEYS])))
  end
  for id = 0, self._keys:count() - 1 do totals[id], counts[id], longest[id] = 0, 0, 0 end
  totals[MAX_KEYS], counts[MAX_KEYS], longest[MAX_KEYS] = 0, 0, 0
  self._keys:clear()
end

return wait_totals
