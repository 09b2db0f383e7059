-- SPDX-License-Identifier: GPL-2.0-only
--- speedscope's JSON: a profile for each thread and event, with its samples in the order of time. Weights are ns of
--- clock events, and counts of other ones.
local ffi = require 'ffi'
local stacks = require 'lib.export.stacks'
local text = require 'bindings.base.text'
local threads = require 'lib.export.threads'
local version = require 'bindings.base.version'

local C = ffi.C
local speedscope = { suffixes = { '.speedscope.json' } }

local SCHEMA = 'https://www.speedscope.app/file-format-schema.json'

---@class Speedscope : Exporter
local Speedscope = {}
Speedscope.__index = Speedscope

---@param target ExportTarget
---@return Speedscope
function speedscope.new(target)
  return setmetatable({ target = target, tree = stacks.tree(target), threads = threads.new(target),
    columns = stacks.columns(), rows = {} }, Speedscope)
end

function Speedscope:sample(event)
  local tree, all, columns, rows, unit = self.tree, self.threads, self.columns, self.rows, stacks.unit(event)
  local by_thread = {}
  return function(e, stack)
    local thread = all:of(e)
    local row = by_thread[thread]
    if not row then
      row = #rows + 1
      rows[row], by_thread[thread] = { thread = thread, event = event, unit = unit }, row
    end
    return columns:add(e.time, tree:leaf(stack), row, unit and tonumber(e.period) or 1)
  end
end

function Speedscope:put_frames()
  local file = self.target.file
  for i = 0, self.tree.nr_frames - 1 do
    local frame = self.tree.frames[i]
    file:put(('%s{"name":%s'):format(i > 0 and ',\n' or '', text.json(frame.name)))
    local source = frame.file or frame.dso
    if source ~= '' then file:put(',"file":' .. text.json(source)) end
    if frame.line then file:put((',"line":%d'):format(frame.line)) end
    file:put '}'
    file:poll()
  end
end

--- Writes one profile. Its values add up the weights: the time of a sample is not that of the run.
function Speedscope:put_profile(row, samples)
  local file, tree, columns = self.target.file, self.tree, self.columns
  local total = 0
  for _, i in ipairs(samples) do total = total + columns.weight[i] end
  local thread = row.thread
  file:put(('{"type":"sampled","name":%s,"unit":"%s","startValue":0,"endValue":%.0f,"samples":['):format(
    text.json(('%s %d %s'):format(thread.name, thread.tid, row.event.name)),
    row.unit == 'nanoseconds' and 'nanoseconds' or 'none', total))
  for at, i in ipairs(samples) do
    file:put(at > 1 and ',[' or '[')
    local path = tree:path(columns.node[i])
    for k = #path, 1, -1 do
      C.json_uint(file.bytes, path[k])
      if k > 1 then file:put ',' end
    end
    file:put ']'
    file:poll()
  end
  file:put '],"weights":['
  for at, i in ipairs(samples) do
    if at > 1 then file:put ',' end
    C.json_uint(file.bytes, columns.weight[i])
    file:poll()
  end
  file:put ']}'
end

function Speedscope:finish()
  local file = self.target.file
  self.threads:rename()
  file:put(('{"$schema":"%s","exporter":"profscript %s","name":%s,"activeProfileIndex":0,\n"shared":{"frames":[')
    :format(SCHEMA, version, text.json(self.target.name)))
  self:put_frames()
  file:put ']},\n"profiles":['
  local by_row = self.columns:by_row(#self.rows)
  local order = {}
  for i = 1, #self.rows do order[i] = i end
  table.sort(order, function(a, b) -- the busiest thread first, which the viewer shows
    if #by_row[a] ~= #by_row[b] then return #by_row[a] > #by_row[b] end
    return a < b
  end)
  for at, row in ipairs(order) do
    if at > 1 then file:put ',\n' end
    self:put_profile(self.rows[row], by_row[row])
  end
  file:put ']}\n'
end

return speedscope
