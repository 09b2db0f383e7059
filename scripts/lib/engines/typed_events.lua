-- SPDX-License-Identifier: GPL-2.0-only
--- Whether the events of a run can have structures of the kernel (`ev.sk.sk_family`), and memory of programs. They are
--- not in recordings, and not sent.
local btf = require 'bindings.bpf.btf'

local typed_events = {}

--- Returns whether programs in the kernel take the events of a run, as far as its options say.
---@param opt table
---@return boolean
function typed_events.has_programs(opt) return not (opt.input or opt.record or opt.push or opt.capture == 'perf') end

--- Returns whether the events of a tracepoint can have structures of the kernel.
---@param opt table
---@param session Session
---@param tracepoint string
---@return boolean
function typed_events.has(opt, session, tracepoint)
  return typed_events.has_programs(opt) and session.supports(tracepoint) and btf.kernel() ~= nil
end

--- Returns whether a structure of the running kernel has a member. Only valid where has() is true.
---@param struct string
---@param name string
---@return boolean
function typed_events.has_member(struct, name)
  local kernel = btf.kernel()
  local id = kernel:find(struct, btf.KIND.STRUCT)
  for _, member in ipairs(id and kernel:members(id) or {}) do
    if member.name == name then return true end
  end
  return false
end

return typed_events
