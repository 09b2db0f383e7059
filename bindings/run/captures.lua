-- SPDX-License-Identifier: GPL-2.0-only
--- Captures: the events of a run that BPF programs write into rings of their own, in perf's format
--- (bindings/kernel/capture.lua). What follows does not see the difference, but the traced tasks pay less.
local ffi = require 'ffi'
local asm = require 'bindings.kernel.asm'
local capture = require 'bindings.kernel.capture'
local probe = require 'bindings.kernel.probe'
local program = require 'bindings.kernel.program'

local C = ffi.C
local captures = {}

---@class Captures
---@field rings? Rings
local Captures = {}
Captures.__index = Captures

---@param kernel InKernel
---@return Captures
function captures.new(kernel) return setmetatable({ _kernel = kernel, _programs = {} }, Captures) end

local ATTRIBUTES = { 'stack', 'max-stack', 'cpus', 'period', 'freq', 'push' }

--- Returns why an event cannot be captured; nil if it can.
---@param event Event
---@return string?
local function refuses(event)
  local request = event.request
  if not event.tracepoint or event.machine then return ('%s is not a tracepoint of this machine'):format(event.name) end
  if request.counted == 1 then return ('%s is only counted'):format(event.name) end
  if request.callchain ~= 0 then return ('%s is recorded with its stack'):format(event.name) end
  if request.bpf_array ~= 0 or request.reads ~= 0 or request.everywhere ~= 0 or request.sample ~= 0 then
    return ('the samples of %s are special'):format(event.name)
  end
  if request.attr.freq ~= 0 or request.attr.sample_period > 1 then
    return ('not every %s is sampled'):format(event.name)
  end
  for _, name in ipairs(ATTRIBUTES) do
    if event.attrs[name] then return ('%s has the attribute %s='):format(event.name, name) end
  end
  if not capture.is_exact(event.name) then
    return ('BPF cannot tell all fields of %s'):format(event.name)
  end
end

--- Loads and attaches the program of an event, and adds it to the event's request.
local function load(self, event, filters)
  local kernel, err, captured = self._kernel, ffi.new 'struct error', event.request.captured
  local opt = kernel.run.opt
  self.rings = self.rings or capture.rings(opt.mmap_pages, opt.watermark)
  local rings, id = self.rings, C.capture_new_id(err)
  if id == 0 then asm.refuse('%s', ffi.string(err.text)) end
  local loaded = probe.load(kernel:spec(event, rings, filters), function(a, source, places)
    capture.write(a, source, places, {
      event = event.name, list = event.list, id = id, rings = rings, type = tonumber(event.request.attr.config),
    })
  end)
  local link = not opt.dry_run and program.attach(loaded) or nil
  captured.rings, captured.bell, captured.program = rings.map.fd, rings.bell.fd, loaded.fd
  captured.nr_cpus, captured.size, captured.bit, captured.id = rings.nr_cpus, rings.size, rings.events, id
  rings.events = rings.events + 1
  event.captured = true
  table.insert(self._programs, { loaded, link })
  return true
end

--- Captures an event. Returns why it cannot.
---@param event Event
---@return string? reason
function Captures:add(event)
  local reason = refuses(event)
  if reason then return reason end
  if self.rings and self.rings.events == capture.MAX_EVENTS then return 'there are too many events' end
  local kernel = self._kernel
  local _, why = asm.attempt(function() return load(self, event, kernel:filters(event)) end)
  if why and event.user_filter then -- which profscript evaluates in any case
    _, why = asm.attempt(function() return load(self, event, kernel:filters(event, true)) end)
  end
  return why
end

--- Detaches the programs. Called when the session has ended the events.
function Captures:stop()
  for _, one in ipairs(self._programs) do
    if one[2] then one[2]:close() end
  end
end

return captures
