-- SPDX-License-Identifier: GPL-2.0-only
--- The handlers of a profiler by the class of their events.
local ffi = require 'ffi'
local views = require 'bindings.view.views'

local C = ffi.C
local handlers_by_class = {}

-- The parent thread in PERF_RECORD_FORK.
local FORK_FIELDS = { { name = '_parent', type = 'pid_t', offset = 12, size = 4, elem_size = 4, count = 1,
  flags = C.FIELD_SIGNED } }

---@class HandlersByClass
---@field list ClassHandlers[]
local HandlersByClass = {}
HandlersByClass.__index = HandlersByClass

---@return HandlersByClass
function handlers_by_class.new() return setmetatable({ list = {}, _by_class = {} }, HandlersByClass) end

--- Adds a handler after those that the event has.
---@param event { class: integer, view: View }
---@param handler function
function HandlersByClass:add(event, handler)
  local known = self._by_class[event.class]
  if not known then
    known = { class = event.class, view = event.view, handlers = {} }
    self._by_class[event.class], self.list[#self.list + 1] = known, known
  end
  known.handlers[#known.handlers + 1] = handler
end

--- Adds the handlers of events that start() returned.
---@param checked contract.Handlers
---@param receivers table<Event, function> of events of which programs send only some, see InKernel
function HandlersByClass:add_events(checked, receivers)
  for _, entry in ipairs(checked.events) do
    for _, event in ipairs(entry.found) do self:add(event, receivers[event] or entry.handler) end
  end
end

--- Adds those for records of tasks, and requests the records that handlers and consumers need from the session.
---@param run Run
---@param checked contract.Handlers
function HandlersByClass:add_tasks(run, checked)
  for name, class in pairs { comm = C.EVENT_COMM, fork = C.EVENT_FORK, exit = C.EVENT_EXIT } do
    local handler = checked.life[name]
    if handler then
      C.session_want(run.session, class)
      self:add({ class = class, view = views.new(name, name == 'fork' and FORK_FIELDS or {}, run.services) }, handler)
    end
  end
  for _, consumer in ipairs(checked.consumers) do
    for _, class in ipairs(consumer.wants or {}) do C.session_want(run.session, class) end
  end
end

return handlers_by_class
