-- SPDX-License-Identifier: GPL-2.0-only
--- A timeline as a web page: one file that loads nothing, with the data and the script that draws it
--- (scripts/lib/web/timeline.*). Names come from outside: they reach the page only as text (textContent, fillText), and
--- the policy in its head forbids everything that is not in the file.
---
--- - Who ran on a CPU, and who waited for it (run queues).
--- - Pairs are slices; events are ticks of their thread, with their stacks; counts are graphs; losses are marked.
--- - The page stays small enough for a browser: if there is too much of a kind, what is shorter than a minimum is left
---   out, which the page says.
local ffi = require 'ffi'
local items = require 'lib.export.timeline_items'
local lanes = require 'lib.export.lanes'
local queues = require 'lib.export.queues'
local stacks = require 'lib.export.stacks'
local switches = require 'lib.export.switches'
local text = require 'bindings.base.text'
local threads = require 'lib.export.threads'
local version = require 'bindings.base.version'

local html = { suffixes = { '.html' } }

local MAX_LOSSES = 10000

--- Returns a function that numbers values from 0, and the list of them.
local function numbered()
  local list, by_value = {}, {}
  return function(value)
    if not by_value[value] then
      list[#list + 1] = value
      by_value[value] = #list - 1
    end
    return by_value[value]
  end, list
end

---@class Html : Exporter
local Html = {}
Html.__index = Html

---@param target ExportTarget
---@return Html
function html.new(target)
  local self = setmetatable({ target = target, threads = threads.new(target), tree = stacks.tree(target), node = 0,
    switches = switches.new(), lanes = {},
    series = {}, losses = {}, lost_events = 0, runs = items.new 'slices', waits = items.new 'slices',
    pairs = items.new 'slices', events = items.new 'ticks', counts = items.new 'ticks' }, Html)
  self.name, self.names = numbered()
  self.queues = queues.new {
    waited = function(tid, cpu, from, to)
      local thread = self.threads:known(tid) or self.threads:named(tid, target.last_name(tid))
      self.waits:add(from, to, thread.index - 1, self.threads:cpu(cpu, 0).index - 1)
    end,
  }
  return self
end

--- Returns what takes the switches: who ran on a CPU from one to the next.
function Html:running(event)
  local all, runs = self.threads, self.runs
  return self.switches:of(event, function(switch, to, is_confirmed, name)
    if not is_confirmed or switch.next_pid == 0 then return end
    local thread = all:known(switch.next_pid) or all:named(switch.next_pid, ffi.string(name(switch)))
    if thread.name == threads.UNKNOWN then thread.name = ffi.string(name(switch)) end
    runs:add(switch.time, to, thread.index - 1, all:cpu(switch.cpu, 0).index - 1)
  end)
end

--- Returns what takes an event with a stack. A sample comes only here, an event of another kind to event() next.
function Html:sample(event)
  local all, events, name = self.threads, self.events, self.name(event.name)
  local is_sample = event.request.perf_event ~= 0
  return function(e, stack)
    self.node = self.tree:leaf(stack)
    if not is_sample then return end
    events:add(e.time, self.node, name, all:of(e).index - 1)
    self.node = 0
  end
end

function Html:event(event)
  local running, queue = self:running(event), self.queues:of(event)
  local all, events, name = self.threads, self.events, self.name(event.name)
  return function(e)
    local thread = all:of(e)
    if running then
      running(e)
    else
      events:add(e.time, self.node, name, thread.index - 1)
    end
    self.node = 0
    if queue then queue(e) end
  end
end

--- Returns the number of a lane.
function Html:place_lane(source, lane, key)
  local thread = lane.key and source.by == 'tid' and self.threads:known(lane.key)
    or lane.key and source.by == 'cpu' and lane.key < 4096 and self.threads:cpu(lane.key, 0) or nil
  lane.id = #self.lanes
  self.lanes[lane.id + 1] = { thread = thread,
    name = lane.key and source.key_text(key) or ('shared %d'):format(lane.number) }
  return lane.id
end

function Html:slice(source)
  local find, kinds, list = lanes.new(source.depth), {}, self.pairs
  return function(p)
    local kind = kinds[p.kind]
    if not kind then
      kind = self.name(source.name(p))
      kinds[p.kind] = kind
    end
    local lane = find(tonumber(p.key), p.first_time, p.second_time)
    if not lane then return false end
    list:add(p.first_time, p.second_time, kind, lane.id or self:place_lane(source, lane, p.key))
    return true
  end
end

function Html:counter(event, id, title, time, value)
  local key = ('%s %s %d'):format(event.alias, title, id)
  local series = self.series[key]
  if not series then
    series = #self.series
    self.series[key], self.series[series + 1] = series, key
  end
  self.counts:add(time, value, 0, series)
end

function Html:lost(e)
  self.queues.lose()
  self.lost_events = self.lost_events + tonumber(e.period)
  if #self.losses == MAX_LOSSES then return end
  local cpu = e.cpu >= 0 and self.threads:cpu(e.cpu, 0).index - 1 or -1
  self.losses[#self.losses + 1] = ('[%.0f,%.0f,%d,%.0f]'):format(e.time, math.max(tonumber(e.key), e.time), cpu,
    tonumber(e.period))
end

--- Encodes text for JSON within a script element: nothing in it can end the element.
local function json(s) return (text.json(s):gsub('<', '\\u003c')) end

local function json_list(list, encode)
  local parts = {}
  for i, value in ipairs(list) do parts[i] = encode(value) end
  return '[' .. table.concat(parts, ',\n') .. ']'
end

function Html:finish(time)
  local file, clock = self.target.file, self.target.clock()
  self.switches:finish(time)
  self.queues.finish(time)
  self.threads:rename()
  local left_out = 0
  local before, after = require('lib.web.files')['timeline.html']:match '^(.*type="application/json">\n)(.*)$'
  file:put(before)
  file:put '{'
  for _, kind in ipairs { 'runs', 'waits', 'pairs', 'events', 'counts' } do
    file:put(('"%s":'):format(kind))
    self[kind]:write(file)
    file:put ',\n'
    left_out = left_out + self[kind].left_out
  end
  file:put(('"title":%s,"version":%s,"end":%.0f,"wall":%s,"isPartial":%s,"lostEvents":%.0f,\n'):format(
    json(self.target.name), json(version), math.max(time, 0), clock.wall and ('%.3f'):format(clock.wall) or 'null',
    tostring(self.queues.is_partial), self.lost_events))
  file:put(('"losses":%s,\n'):format('[' .. table.concat(self.losses, ',') .. ']'))
  file:put(('"names":%s,\n"series":%s,\n'):format(json_list(self.names, json), json_list(self.series, json)))
  file:put(('"lanes":%s,\n'):format(json_list(self.lanes, function(lane)
    return ('[%s,%d]'):format(json(lane.name), lane.thread and lane.thread.index - 1 or -1)
  end)))
  local tree, names = self.tree, {}
  for i = 0, tree.nr_frames - 1 do names[i + 1] = tree.frames[i].name end
  file:put(('"stacks":{"parent":[%s],"frame":[%s],"names":%s},\n'):format(table.concat(tree.parent, ','),
    table.concat(tree.frame, ','), json_list(names, json)))
  file:put(('"threads":%s}'):format(json_list(self.threads.list, function(one)
    if one.is_cpu then return ('[%s,-1,%d]'):format(json(one.name), one.tid - threads.CPUS - 1) end
    return ('[%s,%d,%d]'):format(json(one.name), one.pid, one.tid)
  end)))
  file:put(after)
  return left_out
end

return html
