-- SPDX-License-Identifier: GPL-2.0-only
--- Firefox Profiler: version 24 of Gecko's JSON, which the profiler converts from its own importer of perf's text and
--- therefore reads in all its versions.
---
--- - An event is a marker of its thread, with its fields; a pair is a marker with a duration.
--- - A stack is a sample of its thread.
--- - A loss is a range in which the profiler was paused, and a marker of its CPU.
--- - Times are ms since the first event.
local chrome = require 'lib.export.formats.chrome'
local ffi = require 'ffi'
local fields = require 'lib.export.fields'
local stacks = require 'lib.export.stacks'
local text = require 'bindings.base.text'
local threads = require 'lib.export.threads'
local units = require 'bindings.base.units'
local version = require 'bindings.base.version'

local C = ffi.C
local firefox = { suffixes = { '.profile.json' } }

local MAX_BYTES = 2 ^ 29 -- of markers, which stay in memory until the end; browsers cannot open more either
local MS = 6 -- digits of ns in a ms
local USER, KERNEL, OTHER = 0, 1, 2 -- categories
local INSTANT, INTERVAL = 0, 1 -- phases
local FORMATS = { ns = 'nanoseconds', bytes = 'bytes' } -- of the values of a unit

local function put(b, s) C.bytes_put(b, s, #s) end

--- What is collected of one thread.
---@class FirefoxThread
---@field thread ExportThread
---@field markers ffi.cdata* struct bytes *: JSON
---@field strings table<string, integer> and the list of them
---@field nr_strings integer

---@class Firefox : Exporter
local Firefox = {}
Firefox.__index = Firefox

---@param target ExportTarget
---@return Firefox
function firefox.new(target)
  local self = setmetatable({ target = target, tree = stacks.tree(target), columns = stacks.columns(), list = {},
    schemas = {}, ranges = {}, size = 0 }, Firefox)
  self.threads = threads.new(target, function(thread)
    thread.state = { thread = thread, markers = ffi.gc(C.bytes_new(), C.bytes_free), strings = {}, nr_strings = 0 }
    self.list[thread.index] = thread.state
  end)
  return self
end

--- Returns the index of a string in the table of a thread.
local function intern(state, s)
  local found = state.strings[s]
  if not found then
    found = state.nr_strings
    state.strings[s], state.nr_strings = found, found + 1
    state.strings[found + 1] = s
  end
  return found
end

--- Begins a marker, whose data is still open. to: nil: an instant.
local function put_head(state, name, from, to)
  local b = state.markers
  put(b, b.size > 0 and ',\n[' or '[')
  C.json_uint(b, intern(state, name))
  put(b, ',')
  C.json_time(b, from, MS)
  put(b, ',')
  if to then C.json_time(b, to, MS) else put(b, 'null') end
  put(b, ',')
  C.json_uint(b, to and INTERVAL or INSTANT)
  put(b, ',')
  C.json_uint(b, OTHER)
  return b
end

--- Describes the fields of a marker; unit_of(i): of a value, if it is known.
function Firefox:add_schema(name, keys, unit_of)
  local parts = {}
  for i, key in ipairs(keys) do
    parts[i] = ('{"key":%s,"label":%s,"format":"%s"}'):format(text.json(key), text.json(key),
      FORMATS[unit_of and unit_of(i)] or 'string')
  end
  self.schemas[#self.schemas + 1] = ('{"name":%s,"display":["marker-chart","marker-table"],"data":[%s]}'):format(
    text.json(name), table.concat(parts, ','))
end

function Firefox:event(event)
  local b_of, keys, name = {}, { 'cpu' }, event.name
  local head, all = (',{"type":%s,"cpu":'):format(text.json(name)), self.threads
  for i, field in ipairs(fields.of(event)) do keys[i + 1] = field.name == 'type' and 'type_' or field.name end
  self:add_schema(name, keys, function(i) return units.of_field(keys[i]) end)
  return function(e)
    if self.size > MAX_BYTES then return false end
    local thread = all:of(e)
    local members = b_of[thread]
    if not members then
      members = chrome.members(event, thread.state.markers)
      b_of[thread] = members
    end
    local b = put_head(thread.state, name, e.time)
    local before = b.size
    put(b, head)
    C.json_int(b, e.cpu)
    members(e)
    put(b, '}]')
    self.size = self.size + tonumber(b.size - before)
  end
end

function Firefox:slice(source)
  local names, all, put_key = {}, self.threads, fields.pair_key(',{"type":"pair","key":', source)
  self:add_schema('pair', { 'key' })
  return function(p, second)
    if self.size > MAX_BYTES then return false end
    local name = names[p.kind]
    if not name then
      name = source.name(p)
      names[p.kind] = name
    end
    local thread = source.by == 'tid' and all:known(tonumber(p.key)) or second and all:of(second)
    if not thread and source.by == 'tid' then
      thread = all:named(tonumber(p.key), self.target.last_name(tonumber(p.key)))
    end
    thread = thread or all:cpu(source.by == 'cpu' and tonumber(p.key) or -1, 0)
    local b = put_head(thread.state, name, p.first_time, p.second_time)
    local before = b.size
    put_key(b, p)
    put(b, '}]')
    self.size = self.size + tonumber(b.size - before)
    return true
  end
end

function Firefox:sample()
  local tree, all, columns = self.tree, self.threads, self.columns
  return function(e, stack) return columns:add(e.time, tree:leaf(stack), all:of(e).index, 1) end
end

function Firefox:lost(e)
  if not self.has_lost then
    self.has_lost = true
    self:add_schema('lost', { 'lost' })
  end
  local from, to = e.time, math.max(tonumber(e.key), e.time)
  self.ranges[#self.ranges + 1] = ('{"startTime":%.6f,"endTime":%.6f,"reason":"profiler-paused"}'):format(from / 1e6,
    to / 1e6)
  local b = put_head(self.threads:of(e).state, 'lost events', from, to)
  put(b, ('%s%.0f}]'):format(',{"type":"lost","lost":', tonumber(e.period)))
end

--- Writes the tables of the stacks of one thread, and returns the numbers of the nodes in it.
function Firefox:put_stacks(state, samples)
  local file, tree, columns = self.target.file, self.tree, self.columns
  local number, order, frames, used = { [0] = 'null' }, {}, {}, {}
  local function add(node)
    if number[node] then return end
    add(tree.parent[node])
    number[node] = #order
    order[#order + 1] = node
    local frame = tree.frame[node]
    if not frames[frame] then
      frames[frame] = #used
      used[#used + 1] = frame
    end
  end
  for _, i in ipairs(samples) do add(columns.node[i]) end
  file:put '"stackTable":{"schema":{"prefix":0,"frame":1},"data":['
  for i, node in ipairs(order) do
    file:put(('%s[%s,%d]'):format(i > 1 and ',' or '', number[tree.parent[node]], frames[tree.frame[node]]))
    file:poll()
  end
  file:put(']},\n"frameTable":{"schema":{"location":0,"relevantForJS":1,"innerWindowID":2,"implementation":3,'
    .. '"optimizations":4,"line":5,"column":6,"category":7,"subcategory":8},"data":[')
  for i, frame in ipairs(used) do
    local one = tree.frames[frame]
    local name = one.dso ~= '' and ('%s (in %s)'):format(one.name, one.dso:match '[^/]*$') or one.name
    file:put(('%s[%d,false,0,null,null,%s,null,%d,null]'):format(i > 1 and ',' or '', intern(state, name),
      one.line or 'null', one.in_kernel and KERNEL or USER))
    file:poll()
  end
  file:put ']},\n'
  return number
end

--- Writes a thread. The first one gets samples without a stack at the begin and end of the run: the profiler shows only
--- what lies between samples.
function Firefox:put_thread(state, samples, run_end)
  local file, columns, thread = self.target.file, self.columns, state.thread
  file:put(('{"processType":"default","processName":%s,"name":%s,"pid":%d,"tid":%d,"registerTime":0,'
    .. '"unregisterTime":null,\n'):format(text.json(thread.process or thread.name), text.json(thread.name), thread.pid,
    thread.tid))
  local number, is_first = self:put_stacks(state, samples), not run_end
  file:put '"samples":{"schema":{"stack":0,"time":1,"responsiveness":2},"data":['
  if run_end then file:put '[null,0,0]' end
  for _, i in ipairs(samples) do
    file:put(('%s[%s,'):format(is_first and '' or ',', number[columns.node[i]]))
    C.json_time(file.bytes, columns.time[i], MS)
    file:put ',0]'
    file:poll()
    is_first = false
  end
  if run_end then
    file:put ',[null,'
    C.json_time(file.bytes, run_end, MS)
    file:put ',0]'
  end
  file:put(']},\n"markers":{"schema":{"name":0,"startTime":1,"endTime":2,"phase":3,"category":4,"data":5},"data":[\n')
  file:flush()
  C.bytes_put(file.bytes, state.markers.data, state.markers.size)
  file:put ']},\n"stringTable":['
  for i = 1, state.nr_strings do file:put((i > 1 and ',' or '') .. text.json(state.strings[i])) end
  file:put ']}'
  file:poll()
end

function Firefox:finish(time)
  local file, clock = self.target.file, self.target.clock()
  self.threads:rename()
  file:put(('{"meta":{"interval":1,"processType":0,"product":%s,"importedFrom":"profscript %s","stackwalk":1,"debug":0,'
    .. '"gcpoison":0,"asyncstack":1,"startTime":%.3f,"shutdownTime":null,"version":24,"presymbolicated":true,'
    .. '"categories":['):format(text.json(self.target.name), version, (clock.wall or 0) * 1000))
  for i, category in ipairs { { 'User', 'yellow' }, { 'Kernel', 'orange' }, { 'Other', 'grey' } } do
    file:put(('%s{"name":"%s","color":"%s","subcategories":["Other"]}'):format(i > 1 and ',' or '', category[1],
      category[2]))
  end
  file:put(('],"markerSchema":[%s]},\n"libs":[],"processes":[],"pausedRanges":[%s],\n"threads":[\n'):format(
    table.concat(self.schemas, ',\n'), table.concat(self.ranges, ',')))
  local by_row = self.columns:by_row(#self.list)
  for i, state in ipairs(self.list) do
    if i > 1 then file:put ',\n' end
    self:put_thread(state, by_row[i], i == 1 and math.max(time, 0))
  end
  file:put ']}\n'
end

return firefox
