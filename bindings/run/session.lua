-- SPDX-License-Identifier: GPL-2.0-only
--- Creates and frees the session of a run.
local ffi = require 'ffi'
local failure = require 'bindings.base.failure'
local machines = require 'bindings.select.machines'

local C = ffi.C
local session = {}

local function open_source(input, secret)
  local err = ffi.new 'struct error'
  if input and machines.is_address(input) then return machines.connect(input, secret) end
  local source = input and C.recording_open(input, err) or not input and C.live_new(err)
  if source == nil then failure.raise('%s', ffi.string(err.text)) end
  return source
end

--- Calls use(session, ...) with a new session. Afterwards frees the session and removes its probes, also on errors.
--- Removes probes left by killed runs.
---@param input? string the recording, or the address of a machine that sends events; nil: live events
---@param secret? string file with the secret that it asks for
---@param use fun(session: ffi.cdata*, ...): integer
---@return integer result of use()
function session.with(input, secret, use, ...)
  C.probes_sweep(nil)
  local new = C.session_new(open_source(input, secret))
  if new == nil then failure.raise 'out of memory' end
  local ok, result = xpcall(use, failure.traceback, new, ...)
  C.session_free(new)
  if not ok then error(result, 0) end
  return result
end

return session
