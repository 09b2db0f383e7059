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

return typed_events
