-- SPDX-License-Identifier: GPL-2.0-only
--- Rows of pairs: the times of the pairs with the same key, or with the same value of their first event, or both.
local events = require 'bindings.select.events'
local expr = require 'bindings.expr.compile'
local ffi = require 'ffi'

local cast = ffi.cast
local pair_rows = {}

local PARTS = { key = true, value = true }

--- Checks `rows` of a configuration, and returns a copy.
---@param config PairsConfig
---@return PairRows
function pair_rows.checked(config)
  local given, rows = config.rows, {}
  local function refuse(...) error('pairs.new: rows' .. (...), 4) end
  if type(given) ~= 'table' then refuse ' must be a table' end
  for name, value in pairs(given) do rows[name] = value end
  local by = rows.by
  if type(by) ~= 'table' or #by == 0 or #by > 2 or by[1] == by[2] or by[2] == 'key' then
    refuse ".by must be { 'key' }, { 'value' } or { 'key', 'value' }"
  end
  for _, part in ipairs(by) do
    if not PARTS[part] then refuse ".by must be { 'key' }, { 'value' } or { 'key', 'value' }" end
  end
  if by[#by] == 'value' and not config.value then refuse ' by value need the setting `value`' end
  if type(rows.ids) ~= 'table' or type(rows.ids.id) ~= 'function' then refuse '.ids must be of lib.intern' end
  if rows.hists == nil then refuse ' need hists, a set of lib.hist' end
  if rows.failed ~= nil and (type(rows.same) ~= 'string' or rows.failures == nil) then
    refuse '.failed needs same and failures'
  end
  return rows
end

--- Compiles `failed` for an event; nil if it has not that field.
---@param rows PairRows
---@param event Event
---@return Compiled?
function pair_rows.failed(rows, event)
  return event.fields[rows.same] and events.compile(event, rows.failed, 'failed', 'filter') or nil
end

--- Returns a function that adds a pair to its row, and returns whether it counts.
---@param rows PairRows
---@param config PairsConfig
---@param env table<string, function> functions that expressions can call
---@return fun(p: Pair, second: Ev): boolean
function pair_rows.adder(rows, config, env)
  local id_of, hists, kinds, failures, same, any = rows.ids.id, rows.hists, rows.kinds or 1, rows.failures, rows.same,
    rows.any
  local by_key, by_value = rows.by[1] == 'key', rows.by[#rows.by] == 'value'
  local with_fields, failed, payload = -1, nil, nil
  for _, event in ipairs(config.stages[#config.stages]) do
    if same and event.fields[same] then
      with_fields, payload = event.class, event.view.payload
      failed = rows.failed and expr.load(pair_rows.failed(rows, event), env)
    end
  end
  local has_kinds = rows.kinds ~= nil
  local pointer = ffi.typeof 'struct event *'
  return function(p, second)
    local value, has_failed = p.first_value, false
    if p.second_class == with_fields then
      local other = second[same]
      if other ~= value and other ~= any then return false end
      if failed then
        local e = cast(pointer, second)
        has_failed = failed(e, cast(payload, e.raw), e.raw, e.raw_size)
      end
    end
    local id
    if by_key and by_value then
      id = id_of(tonumber(p.key), value)
    elseif by_value then
      id = id_of(value)
    else
      id = id_of(p.key + 0ULL) -- keys are unsigned
    end
    hists:add(has_kinds and id * kinds + p.kind or id, p.ns)
    if has_failed then failures[id] = failures[id] + 1 end
    return true
  end
end

return pair_rows
