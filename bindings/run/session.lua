-- SPDX-License-Identifier: GPL-2.0-only
--- Creates and frees the session of a run.
local ffi = require 'ffi'
local failure = require 'bindings.base.failure'
local machines = require 'bindings.select.machines'

local C = ffi.C
local session = {}

local function open_source(opt)
  local err, input = ffi.new 'struct error', opt.input
  if input and machines.is_address(input) then return machines.connect(input, opt) end
  local source = input and C.recording_open(input, err) or not input and C.live_new(err)
  if source == nil then failure.raise('%s', ffi.string(err.text)) end
  return source
end

--- Calls use(session, ...) with a new session. Afterwards frees the session and removes its probes, also on errors.
--- Removes probes left by killed runs.
---@param opt table parsed options; input: the recording, or the address of a machine that sends events; nil: live
---@param use fun(session: ffi.cdata*, ...): integer
---@return integer result of use()
function session.with(opt, use, ...)
  C.probes_sweep(nil)
  local new = C.session_new(open_source(opt))
  if new == nil then failure.raise 'out of memory' end
  local ok, result = xpcall(use, failure.traceback, new, ...)
  C.session_free(new)
  if not ok then error(result, 0) end
  return result
end

return session
