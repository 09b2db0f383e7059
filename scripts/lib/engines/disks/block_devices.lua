-- SPDX-License-Identifier: GPL-2.0-only
--- Names and numbers of block devices, and the disks that partitions are on (blktrace, iostat).
local fs = require 'lib.fs'

local block_devices = {}

local BLOCK = '/sys/class/block'

local function read(name, file)
  local text = fs.read(('%s/%s/%s'):format(BLOCK, name, file))
  return text and text:match '%S+'
end

--- Returns the kernel's number of a device, as in the events' field dev.
local function number(name)
  local major, minor = (read(name, 'dev') or ''):match '^(%d+):(%d+)$'
  return major and major * 2 ^ 20 + minor
end

--- Returns the number of the disk that a partition is on.
local function disk_under(partition)
  for _, disk in ipairs(fs.list(BLOCK) or {}) do
    if disk ~= partition and fs.exists(('%s/%s/%s'):format(BLOCK, disk, partition)) then return number(disk) end
  end
end

---@class BlockDevices
---@field names table<integer, string> by number
---@field disk_of table<integer, integer> the disk of each device: of a partition the one that it is on
local BlockDevices = {}
BlockDevices.__index = BlockDevices

--- Returns the devices of this machine.
---@return BlockDevices
function block_devices.all()
  local self = setmetatable({ names = {}, disk_of = {} }, BlockDevices)
  for _, name in ipairs(fs.list(BLOCK) or {}) do
    local dev = number(name)
    if dev then
      self.names[dev], self.disk_of[dev] = name, read(name, 'partition') and disk_under(name) or dev
    end
  end
  return self
end

---@param dev integer
---@return string
function BlockDevices:name(dev) return self.names[dev] or tostring(dev) end

--- Returns the filter of the events of a device.
---@param name string?
---@return string? filter nil: there is no such device
---@return string? message where it was sought
function BlockDevices:filter(name)
  local dev = name and number(name)
  if not dev then return nil, 'in ' .. BLOCK end
  if self.disk_of[dev] == dev then return ('dev == %d'):format(dev) end
  local first, size = tonumber(read(name, 'start')), tonumber(read(name, 'size'))
  return ('(dev == %d || dev == %d) && sector >= %d && sector < %d'):format(dev, self.disk_of[dev], first, first + size)
end

return block_devices
