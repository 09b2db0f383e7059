-- SPDX-License-Identifier: GPL-2.0-only
--- Commands that profscript proposes: with the name by which it was called, so that they can be pasted.
local libc = require 'bindings.base.libc'
local sys = require 'bindings.base.sys'

local invocation = {}

--- Returns the name by which profscript was called, such as './profscript'.
---@return string
function invocation.name()
  local name = (sys.read '/proc/self/cmdline' or ''):match '^%Z+' or 'profscript'
  return name:find '[^%w_./-]' and ("'%s'"):format(name:gsub("'", [['\'']])) or name
end

--- Returns what starts a command line that traces: root needs no sudo, and may have none.
---@return string
function invocation.tracing() return (libc.geteuid() == 0 and '' or 'sudo ') .. invocation.name() end

return invocation
