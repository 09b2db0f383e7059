-- SPDX-License-Identifier: GPL-2.0-only
--- Where file systems are mounted.
local fs = require 'lib.fs'

local mounts = {}

local function unescaped(path)
  return (path:gsub('\\(%d%d%d)', function(octal) return string.char(tonumber(octal, 8)) end))
end

--- Returns the mounts that a process sees, in their order.
---@param pid integer|'self'
---@return { device: string, root: string, path: string }[] list device: '8:1'; root: the part of the file system
function mounts.of(pid)
  local list = {}
  for line in (fs.read(('/proc/%s/mountinfo'):format(pid)) or ''):gmatch '[^\n]+' do
    local device, root, path = line:match '^%S+ %S+ (%S+) (%S+) (%S+)'
    if path then list[#list + 1] = { device = device, root = root, path = unescaped(path) } end
  end
  return list
end

return mounts
