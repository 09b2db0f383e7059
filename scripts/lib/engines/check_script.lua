-- SPDX-License-Identifier: GPL-2.0-only
--- `profscript check FILE...`: loads scripts without starting them, which finds what depends on no event.
local scripts = require 'bindings.options.scripts'
local sys = require 'bindings.base.sys'

local check_script = {}

--- Checks one script.
---@param given string name or path
---@return string? problem the lines of all mistakes found; nil: none
function check_script.problem(given)
  local script, message = scripts.new(sys, arg.data_dir):load(given)
  if message and message:find(scripts.MODULE, 1, true) then return end -- which scripts require
  return not script and (message:gsub('^profscript: ', '')) or nil
end

return check_script
