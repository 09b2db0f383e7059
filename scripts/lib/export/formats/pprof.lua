-- SPDX-License-Identifier: GPL-2.0-only
--- pprof's protobuf profile: stacks with sums, by thread and CPU, which are labels. The first value of a sample is 1;
--- each event has another one: ns of clock events, periods of other events of perf, counts of tracepoints. The file is
--- always compressed. Field numbers are those of proto/profile.proto.
local ffi = require 'ffi'
local stacks = require 'lib.export.stacks'
local threads = require 'lib.export.threads'

local C = ffi.C
local pprof = { suffixes = { '.pb.gz', '.pprof' } }

local CPUS = 4096 -- more than there can be

---@class Pprof : Exporter
local Pprof = {}
Pprof.__index = Pprof

---@param target ExportTarget
---@return Pprof
function pprof.new(target)
  target.file.is_compressed = true
  return setmetatable({ target = target, bytes = target.file.bytes, tree = stacks.tree(target),
    threads = threads.new(target), types = {}, strings = { n = 0 } }, Pprof)
end

function Pprof:sample(event)
  local unit = stacks.unit(event)
  local type = { name = event.name, unit = unit or 'count', sums = {}, counts = {} }
  self.types[#self.types + 1] = type
  local tree, all, sums, counts = self.tree, self.threads, type.sums, type.counts
  return function(e, stack)
    local by_place = (all:of(e).index * CPUS + (e.cpu + 1) % CPUS)
    local by_node = sums[by_place]
    if not by_node then
      by_node = {}
      sums[by_place], counts[by_place] = by_node, {}
    end
    local node, of_place = tree:leaf(stack), counts[by_place]
    by_node[node] = (by_node[node] or 0) + (unit and tonumber(e.period) or 1)
    of_place[node] = (of_place[node] or 0) + 1
  end
end

function Pprof:lost(e) self.lost_events = (self.lost_events or 0) + tonumber(e.period) end

--- Returns the index of a string. They are written at the end.
function Pprof:string(s)
  local strings = self.strings
  if not strings[s] then
    strings.n = strings.n + 1
    strings[s] = strings.n
    strings[strings.n] = s
  end
  return strings[s]
end

function Pprof:message(field, write)
  local at = C.proto_open(self.bytes, field)
  write()
  C.proto_close(self.bytes, at)
end

function Pprof:put_type(field, name, unit)
  local b = self.bytes
  self:message(field, function()
    C.proto_uint(b, 1, self:string(name))
    C.proto_uint(b, 2, self:string(unit))
  end)
end

function Pprof:put_label(key, text, number)
  local b = self.bytes
  self:message(3, function()
    C.proto_uint(b, 1, self:string(key))
    if text then C.proto_uint(b, 2, self:string(text)) else C.proto_uint(b, 3, number) end
  end)
end

--- Writes the samples of one thread on one CPU.
function Pprof:put_samples(number, place, sums, counts)
  local b, cpu = self.bytes, place % CPUS - 1
  local thread = self.threads.list[(place - cpu - 1) / CPUS]
  for node, sum in pairs(sums) do
    self:message(2, function()
      for _, frame in ipairs(self.tree:path(node)) do C.proto_uint(b, 1, frame + 1) end
      C.proto_uint(b, 2, counts[node])
      for i = 1, #self.types do C.proto_uint(b, 2, i == number and sum or 0) end
      self:put_label('comm', thread.name)
      self:put_label('pid', nil, thread.pid)
      self:put_label('tid', nil, thread.tid)
      if cpu >= 0 then self:put_label('cpu', nil, cpu) end
    end)
    self.target.file:poll()
  end
end

--- Writes a location, which is a function here, and the file of its code as a mapping.
function Pprof:put_frames()
  local b, mappings, n = self.bytes, {}, 0
  for i = 0, self.tree.nr_frames - 1 do
    local frame = self.tree.frames[i]
    local dso = frame.dso
    if dso ~= '' and not mappings[dso] then
      n = n + 1
      mappings[dso] = n
      self:message(3, function()
        C.proto_uint(b, 1, n)
        C.proto_uint(b, 5, self:string(dso))
        C.proto_uint(b, 7, 1)
        if frame.line then C.proto_uint(b, 9, 1) end
      end)
    end
    self:message(4, function()
      C.proto_uint(b, 1, i + 1)
      if dso ~= '' then C.proto_uint(b, 2, mappings[dso]) end
      self:message(4, function()
        C.proto_uint(b, 1, i + 1)
        if frame.line then C.proto_uint(b, 2, frame.line) end
      end)
    end)
    self:message(5, function()
      C.proto_uint(b, 1, i + 1)
      C.proto_uint(b, 2, self:string(frame.name))
      C.proto_uint(b, 3, self:string(frame.name))
      if frame.file then C.proto_uint(b, 4, self:string(frame.file)) end
    end)
    self.target.file:poll()
  end
end

function Pprof:finish(time)
  local b, wall = self.bytes, self.target.clock().wall
  self.threads:rename()
  self:put_type(1, 'samples', 'count')
  for _, type in ipairs(self.types) do self:put_type(1, type.name, type.unit) end
  for number, type in ipairs(self.types) do
    for place, sums in pairs(type.sums) do self:put_samples(number, place, sums, type.counts[place]) end
  end
  self:put_frames()
  if wall then C.proto_uint(b, 9, wall * 1e9) end
  C.proto_uint(b, 10, math.max(time, 0))
  local shown = self.types[1] -- what pprof shows at first: time, if there is some
  for _, type in ipairs(self.types) do
    if type.unit == 'nanoseconds' and shown.unit ~= 'nanoseconds' then shown = type end
  end
  if shown then
    self:put_type(11, shown.name, shown.unit)
    C.proto_uint(b, 14, self:string(shown.name))
  end
  local comment = self.lost_events and ('lost %d events'):format(self.lost_events)
  if comment then C.proto_uint(b, 13, self:string(comment)) end
  C.proto_text(b, 6, '', 0)
  for i = 1, self.strings.n do C.proto_text(b, 6, self.strings[i], #self.strings[i]) end
end

return pprof
