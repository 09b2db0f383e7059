-- SPDX-License-Identifier: GPL-2.0-only
--- Chrome's trace event format: JSON with an object for each event.
---
--- - An event is an instant (ph i) of its thread, with its fields as args.
--- - Who ran on a CPU (sched_switch) is a complete event (X) of a thread "CPU N" of a process "CPUs".
--- - How many tasks wait for a CPU is a counter (C).
--- - A pair is an async slice (b, e) of its key, and a flow (s, f) between the threads of its events.
--- - A stack is a sample (P) that refers to the frames at the end of the file.
--- - Times are us since the first event.
local exports = require 'lib.export.export'
local ffi = require 'ffi'
local fields = require 'lib.export.fields'
local lanes = require 'lib.export.lanes'
local queues = require 'lib.export.queues'
local stacks = require 'lib.export.stacks'
local switches = require 'lib.export.switches'
local text = require 'bindings.base.text'
local threads = require 'lib.export.threads'
local version = require 'bindings.base.version'

local C = ffi.C
local member = exports.member
local chrome = { suffixes = { '.json' } }

local PAIRS = threads.CPUS + 5e5 -- the process of slices that belong to no thread

---@class Chrome : Exporter
local Chrome = {}
Chrome.__index = Chrome

local function put(b, s) C.bytes_put(b, s, #s) end

---@param target ExportTarget
---@return Chrome
function chrome.new(target)
  local self = setmetatable({ target = target, bytes = target.file.bytes, processes = {}, switches = switches.new(),
    nr_flows = 0, nr_lanes = 0 }, Chrome)
  self.threads = threads.new(target, function(thread) self:announce(thread) end)
  self.queues = self:new_queues()
  self:put('{"displayTimeUnit":"ns","otherData":{"exporter":"profscript ', version, '"},"traceEvents":[\n')
  self:put '{"ph":"M","name":"process_sort_index","pid":9000000,"args":{"sort_index":-1}}'
  return self
end

function Chrome:put(...)
  for i = 1, select('#', ...) do
    local s = select(i, ...)
    C.bytes_put(self.bytes, s, #s)
  end
end

local function metadata(name, pid, tid, value)
  return (',\n{"ph":"M","name":"%s","pid":%d,"tid":%d,"args":{"name":%s}}'):format(name, pid, tid, text.json(value))
end

function Chrome:announce(thread)
  self:put(metadata('thread_name', thread.pid, thread.tid, thread.name))
  if thread.process and not self.processes[thread.pid] then
    self.processes[thread.pid] = true
    self:put(metadata('process_name', thread.pid, thread.pid, thread.process))
  end
end

--- Returns what writes the fields of an event as members of an object that has others before them.
---@param event Event
---@param b ffi.cdata* struct bytes *
---@return fun(e: ffi.cdata*)
function chrome.members(event, b)
  return fields.writer(event, {
    fixed = C.json_fields,
    bytes = b,
    key = function(name) return (',%s:'):format(text.json(name == 'type' and 'type_' or name)) end,
    text = function(key, s, size)
      put(b, key)
      C.json_text(b, s, size)
    end,
    list = function(key, values, size, is_signed, count)
      put(b, key)
      C.json_list(b, values, size, is_signed, count)
    end,
  })
end

local function new_place(thread)
  thread.place = (',"pid":%d,"tid":%d,"ts":'):format(thread.pid, thread.tid)
  return thread.place
end

local function put_int(b, key, value) C.json_member_int(b, key, #key, value) end
local function put_time(b, key, time) C.json_member_time(b, key, #key, time, 3) end

--- Writes the end of a record's head: its thread and time.
local function put_place(b, thread, time) put_time(b, thread.place or new_place(thread), time) end

--- Returns what writes who ran on a CPU between two switches.
function Chrome:running(event)
  local b = self.bytes
  return self.switches:of(event, function(switch, to, is_confirmed, name)
    if switch.next_pid == 0 or not is_confirmed then return end
    local thread, comm, size = self.threads:cpu(switch.cpu, 0), name(switch)
    put(b, ',\n{"ph":"X","cat":"running","name":')
    C.json_text(b, comm, size)
    put_place(b, thread, switch.time)
    put_time(b, ',"dur":', to - switch.time)
    put_int(b, ',"args":{"tid":', switch.next_pid)
    put(b, '}}')
  end)
end

--- Returns run queues that write their lengths.
function Chrome:new_queues()
  local b, heads = self.bytes, {}
  return queues.new { length = function(cpu, time, length)
    local head = heads[cpu]
    if not head then
      head = (',\n{"ph":"C","name":"waiting for CPU %d","pid":%d,"ts":'):format(cpu, threads.CPUS)
      heads[cpu] = head
    end
    put_time(b, head, time)
    put_int(b, ',"args":{"tasks":', length)
    put(b, '}}')
  end }
end

function Chrome:event(event)
  local b, members, running = self.bytes, chrome.members(event, self.bytes), self:running(event)
  local queue = self.queues:of(event)
  local head = (',\n{"ph":"i","s":"t","name":%s,"cat":%s'):format(text.json(event.name),
    text.json(event.system or 'perf'))
  local all, heads, by_tid = self.threads, {}, {} -- by thread: all that comes before the time
  local function find_head(e)
    local thread = all:of(e)
    local own = heads[thread] or head .. (thread.place or new_place(thread))
    heads[thread] = own
    if thread.real_tid then by_tid[thread.real_tid] = own end
    return own
  end
  return function(e)
    local own = member(e) == 0 and by_tid[e.tid] or find_head(e)
    put_time(b, own, e.time)
    put_int(b, ',"args":{"cpu":', e.cpu)
    members(e)
    put(b, '}}')
    if running then running(e) end
    if queue then queue(e) end
  end
end

function Chrome:sample(event)
  self.tree = self.tree or stacks.tree(self.target)
  local b, tree, all = self.bytes, self.tree, self.threads
  local head = (',\n{"ph":"P","cat":"stack","name":%s'):format(text.json(event.name))
  return function(e, stack)
    local thread, leaf = all:of(e), tree:leaf(stack)
    put(b, head)
    put_place(b, thread, e.time)
    if leaf ~= 0 then
      put(b, ',"sf":')
      C.json_uint(b, leaf)
    end
    put_int(b, ',"args":{"cpu":', e.cpu)
    put(b, ',"period":')
    C.json_uint(b, e.period)
    put(b, '}}')
  end
end

--- Returns the process of a lane's slices, and describes the lane.
function Chrome:place_lane(source, lane, key)
  self.nr_lanes = self.nr_lanes + 1
  lane.id, lane.begins, lane.ends = self.nr_lanes, {}, {}
  local thread = lane.key and source.by == 'tid' and self.threads:known(lane.key)
    or lane.key and source.by == 'cpu' and lane.key < 4096 and self.threads:cpu(lane.key, 0) or nil
  lane.pid, lane.tid = thread and thread.pid or PAIRS, thread and thread.tid or PAIRS
  lane.key_text = lane.key and source.key_text(key)
  if not thread and not self.processes[PAIRS] then
    self.processes[PAIRS] = true
    self:put(metadata('process_name', PAIRS, PAIRS, 'pairs'))
  end
end

function Chrome:slice(source)
  local b, find, kinds = self.bytes, lanes.new(source.depth), {}
  local put_key = fields.pair_key(',"args":{"key":', source)
  local value = source.value and (',%s:'):format(text.json(source.value))
  -- What comes before the time is the same for all slices of a lane and kind, and for all flows of a thread.
  local function new_heads(lane, kind, name)
    local rest = ('","id":%d%s%s'):format(lane.id, name, lane.place or new_place(lane))
    lane.begins[kind], lane.ends[kind] = ',\n{"cat":"pairs","ph":"b' .. rest, ',\n{"cat":"pairs","ph":"e' .. rest
  end
  local flows = { s = {}, f = {} }
  local function put_flow(phase, time, thread, id)
    local head = flows[phase][thread]
    if not head then
      head = (',\n{"cat":"pairs","name":"pair","ph":"%s"%s%s'):format(phase, phase == 'f' and ',"bp":"e"' or '',
        thread.place or new_place(thread))
      flows[phase][thread] = head
    end
    put_time(b, head, time)
    put(b, ',"id":')
    C.json_uint(b, id)
    put(b, '}')
  end
  return function(p, second)
    local name = kinds[p.kind]
    if not name then
      name = (',"name":%s'):format(text.json(source.name(p)))
      kinds[p.kind] = name
    end
    local lane = find(tonumber(p.key), p.first_time, p.second_time)
    if not lane then return false end
    if not lane.id then self:place_lane(source, lane, p.key) end
    if not lane.begins[p.kind] then new_heads(lane, p.kind, name) end
    put_time(b, lane.begins[p.kind], p.first_time)
    put_key(b, p)
    if value then
      put_int(b, value, p.first_value)
    end
    put(b, '}}')
    put_time(b, lane.ends[p.kind], p.second_time)
    put(b, '}')
    if not second then return true end
    self.nr_flows = self.nr_flows + 1
    put_flow('s', p.first_time, self.threads:known(p.first_tid) or self.threads:cpu(p.first_cpu, 0), self.nr_flows)
    put_flow('f', p.second_time, self.threads:of(second), self.nr_flows)
    return true
  end
end

function Chrome:counter(event, id, title, time, value)
  self:put(',\n{"ph":"C","name":', text.json(('%s %s %d'):format(event.alias, title, id)))
  put_place(self.bytes, { pid = threads.CPUS, tid = threads.CPUS }, time)
  local unit = stacks.unit(event) == 'nanoseconds' and 'ns' or 'count'
  self:put((',"args":{"%s":%.17g}}'):format(unit, value))
end

function Chrome:lost(e)
  self.queues.lose()
  local thread = self.threads:of(e)
  self:put ',\n{"ph":"i","s":"p","cat":"lost","name":"lost events"'
  put_place(self.bytes, thread, e.time)
  self:put(('%s%.0f,"ns":%.0f}}'):format(',"args":{"lost":', tonumber(e.period), tonumber(e.key) - e.time))
end

function Chrome:finish(time)
  self.switches:finish(time)
  for _, thread in ipairs(self.threads:rename()) do
    self.processes[thread.pid] = thread.pid ~= thread.tid
    self:announce(thread)
  end
  self:put '\n]'
  if self.tree then
    self:put ',\n"stackFrames":{'
    for node, frame in ipairs(self.tree.frame) do
      local one = self.tree.frames[frame]
      local parent = self.tree.parent[node]
      self:put(('%s"%d":{"category":%s,"name":%s'):format(node > 1 and ',\n' or '\n', node, text.json(one.dso),
        text.json(one.name)), parent ~= 0 and (',"parent":"%d"}'):format(parent) or '}')
      self.target.file:poll()
    end
    self:put '\n}'
  end
  if self.target.partial then self:put(',\n"partial":', text.json(self.target.partial)) end
  self:put '}\n'
end

return chrome
