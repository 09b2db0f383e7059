-- SPDX-License-Identifier: GPL-2.0-only
--- The life of a session.
local ffi = require 'ffi'
local failure = require 'bindings.base.failure'

local C = ffi.C
local session = {}

--- Calls use(session, ...) with a new session, and frees it with the probes that it has made in the kernel,
--- however that ends.
---@param use fun(session: ffi.cdata*, ...): integer
---@return integer what use() returned
function session.with(use, ...)
  local new = C.session_new()
  local ok, result = xpcall(use, failure.traceback, new, ...)
  C.session_free(new)
  if not ok then error(result, 0) end
  return result
end

return session
