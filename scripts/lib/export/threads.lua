-- SPDX-License-Identifier: GPL-2.0-only
--- Threads as formats with plain pids and tids know them. Those of other machines get numbers beyond any of this
--- machine, and CPUs are threads of a process that does not exist.
local exports = require 'lib.export.export'

local threads = {}

local MACHINE = 1e7 -- more than there can be threads
threads.CPUS = 9e6 -- the process of the CPUs
threads.UNKNOWN = '<...>' -- the name of a thread whose name is unknown (runtime/session/tasks.h)

---@class ExportThread
---@field pid integer
---@field tid integer
---@field name string
---@field process? string name of its process
---@field real_tid? integer a thread of this machine, whose name may change
---@field is_cpu? boolean
---@field is_guess? boolean the pid is unknown; that of the thread stands for it

---@class ExportThreads
---@field list ExportThread[]
local Threads = {}
Threads.__index = Threads

---@param target ExportTarget
---@param announce? fun(thread: ExportThread) is called for each new thread
---@return ExportThreads
function threads.new(target, announce)
  return setmetatable({ list = {}, _target = target, _announce = announce, _by_key = {} }, Threads)
end

function Threads:_add(key, thread)
  self.list[#self.list + 1], self._by_key[key] = thread, thread
  thread.index = #self.list
  if self._announce then self._announce(thread) end
  return thread
end

--- Returns a CPU as a thread.
---@return ExportThread
function Threads:cpu(cpu, member)
  local key = -1 - cpu - 1 - member * MACHINE
  local found = self._by_key[key]
  if found then return found end
  local host = self._target.host(member)
  local base = member * MACHINE + threads.CPUS
  return self:_add(key, { pid = base, tid = base + 1 + cpu, is_cpu = true,
    process = host and 'CPUs of ' .. host or 'CPUs', name = cpu < 0 and 'unknown CPU' or ('CPU %d'):format(cpu) })
end

function Threads:_new(e, member)
  local pid, name = e.pid > 0 and e.pid or e.tid, self._target.task_name(e)
  local host = self._target.host(member)
  local process = pid == e.tid and name or not host and self._target.last_name(pid) or nil
  if host then process = ('%s (%s)'):format(process or pid, host) end
  return self:_add(member * MACHINE + e.tid, { pid = member * MACHINE + pid, tid = member * MACHINE + e.tid,
    name = name, process = process, real_tid = not host and e.tid or nil })
end

--- Returns the thread of an event, or its CPU if it has none.
---@param e ffi.cdata* struct event *
---@return ExportThread
function Threads:of(e)
  local member = exports.member(e)
  if e.tid <= 0 then return self:cpu(e.cpu, member) end
  local found = self._by_key[member * MACHINE + e.tid]
  if not found then return self:_new(e, member) end
  if found.is_guess and e.pid > 0 then found.pid, found.is_guess = e.pid, nil end
  return found
end

--- Returns a thread of this machine of which maybe only the name is known. Then its pid is that of its first event.
---@param tid integer
---@param name string
---@return ExportThread
function Threads:named(tid, name)
  return self._by_key[tid] or self:_add(tid, { pid = tid, tid = tid, name = name, real_tid = tid, is_guess = true })
end

--- Returns a thread of this machine that has had an event; nil if it had none.
---@param tid integer
---@return ExportThread?
function Threads:known(tid) return self._by_key[tid] end

--- Updates the names of threads that have changed them, such as by execve().
---@return ExportThread[] changed
function Threads:rename()
  local changed = {}
  for _, thread in ipairs(self.list) do
    local name = thread.real_tid and self._target.last_name(thread.real_tid)
    if name and name ~= threads.UNKNOWN and name ~= thread.name then
      thread.name = name
      if thread.pid == thread.tid then thread.process = name end
      changed[#changed + 1] = thread
    end
  end
  return changed
end

return threads
