-- SPDX-License-Identifier: GPL-2.0-only
--- Paths of files by their device and inode, as events of the kernel have them.
local fs = require 'lib.fs'

local inodes = {}

local MINORS = 2 ^ 20 -- of a device's number

---@class Inodes
local Inodes = {}
Inodes.__index = Inodes

--- Creates the names of a run.
---@param is_live boolean whether the inodes are those of this machine, as it is now
---@return Inodes
function inodes.new(is_live) return setmetatable({ is_live = is_live, mounts = {}, names = {} }, Inodes) end

--- Returns where the file system of a device is mounted; '': it is not known.
local function mount_of(self, dev)
  local found = self.mounts[dev]
  if found then return found end
  local numbers = ('%d:%d'):format(math.floor(dev / MINORS), dev % MINORS)
  found = ''
  for line in (self.is_live and fs.read '/proc/self/mountinfo' or ''):gmatch '[^\n]+' do
    local of, root, mount = line:match '^%S+ %S+ (%S+) (%S+) (%S+)'
    if of == numbers and root == '/' and found == '' then found = mount end
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
      mount ~= '' and mount or ('%d:%d'):format(math.floor(dev / MINORS), dev % MINORS))
    of_dev[inode] = name
  end
  return name
end

return inodes
