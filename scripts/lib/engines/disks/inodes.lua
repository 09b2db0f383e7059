-- SPDX-License-Identifier: GPL-2.0-only
--- Paths of files by their device and inode, as events of the kernel have them.
local fs = require 'lib.fs'
local mounts = require 'lib.engines.files.mounts'

local inodes = {}

local MINORS = 2 ^ 20 -- of a device's number

---@class Inodes
local Inodes = {}
Inodes.__index = Inodes

--- Creates the names of a run.
---@param is_live boolean whether the inodes are those of this machine, as it is now
---@return Inodes
function inodes.new(is_live) return setmetatable({ is_live = is_live, mounts = {}, names = {} }, Inodes) end

--- Returns a device as the list of mounts has it.
local function device_of(dev) return ('%d:%d'):format(math.floor(dev / MINORS), dev % MINORS) end

--- Returns where the file system of a device is mounted; '': it is not known.
local function mount_of(self, dev)
  local found = self.mounts[dev]
  if found then return found end
  local device = device_of(dev)
  found = ''
  for _, mount in ipairs(self.is_live and mounts.of 'self' or {}) do
    if mount.device == device and mount.root == '/' and found == '' then found = mount.path end
  end
  self.mounts[dev] = found
  return found
end

--- Returns the path of a file, or its inode if the kernel does not know the path.
---@param dev integer
---@param inode number
---@return string
function Inodes:name(dev, inode)
  local of_dev = self.names[dev] or {}
  self.names[dev] = of_dev
  local name = of_dev[inode]
  if not name then
    local mount = mount_of(self, dev)
    local path = mount ~= '' and inode < 2 ^ 32 and fs.of_inode(mount, inode)
    name = path and path:gsub(' %(deleted%)$', '') or ('inode %d of %s'):format(inode,
      mount ~= '' and mount or device_of(dev))
    of_dev[inode] = name
  end
  return name
end

return inodes
