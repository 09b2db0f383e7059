-- SPDX-License-Identifier: GPL-2.0-only
--- Which file a block of a disk belongs to, from the events in which ext4 looks up where the blocks of a file are.
local fs = require 'lib.fs'
local inodes = require 'lib.engines.disks.inodes'

local file_blocks = {}

local SECTOR = 512
local GROUP = 2 ^ 21 -- bytes of a disk that share a list of extents
local MOST = 256 -- extents in a list: the oldest is forgotten
local BLOCK_SIZE_AT = 1048 -- in the device of a file system of ext4; a power of two times 1 KiB
local HAS_BLOCKS = 3 -- status: written or unwritten
local EVENTS = {
  ['ext4:ext4_es_lookup_extent_exit'] = ('found == 1 && status & %d'):format(HAS_BLOCKS),
  ['ext4:ext4_ext_map_blocks_exit'] = 'ret > 0',
  ['ext4:ext4_ind_map_blocks_exit'] = 'ret > 0',
}

---@class FileBlocks
local FileBlocks = {}
FileBlocks.__index = FileBlocks

--- Returns the size of a block of the file system on a device.
local function block_size(name)
  local file = io.open('/dev/' .. name, 'rb')
  local bytes = file and file:seek('set', BLOCK_SIZE_AT) and file:read(4)
  if file then file:close() end
  return bytes and #bytes == 4 and 1024 * 2 ^ bytes:byte(1) or 4096
end

--- Returns a file system: where its blocks are.
local function file_system(self, dev)
  local name = self.devices:name(dev)
  return { disk = self.devices.disk_of[dev] or dev, block = block_size(name),
    offset = (tonumber(fs.line(('/sys/class/block/%s/start'):format(name))) or 0) * SECTOR, last = {}, files = {} }
end

--- Creates the table of files by block.
---@param devices BlockDevices
---@param is_live boolean whether inodes can be looked up
---@return FileBlocks
function file_blocks.new(devices, is_live)
  return setmetatable({ devices = devices, inodes = inodes.new(is_live), systems = {}, groups = {}, names = {} },
    FileBlocks)
end

--- Returns the number of a file, from 1.
local function file_of(self, system, dev, inode)
  local id = system.files[inode]
  if not id then
    id = #self.names + 1
    self.names[id], system.files[inode] = self.inodes:name(dev, inode), id
  end
  return id
end

--- Adds an extent of a file to the lists of the parts of the disk that it is in.
local function add(self, disk, from, to, id)
  local groups = self.groups[disk] or {}
  self.groups[disk] = groups
  for at = math.floor(from / GROUP), math.floor((to - 1) / GROUP) do
    local list = groups[at]
    if not list then
      list = { next = 1 }
      groups[at] = list
    end
    local extent = list[list.next] or {}
    extent.from, extent.to, extent.id = from, to, id
    list[list.next], list.next = extent, list.next % MOST + 1
  end
end

--- Some blocks of a file are at a place of its device.
---@param dev integer of the file system
---@param inode integer
---@param block number of its file system
---@param n integer
function FileBlocks:put(dev, inode, block, n)
  local system = self.systems[dev]
  if not system then
    system = file_system(self, dev)
    self.systems[dev] = system
  end
  local last = system.last[inode]
  if not last then
    last = {}
    system.last[inode] = last
  end
  if last.block == block and last.n == n then return end
  last.block, last.n = block, n
  local from = block * system.block + system.offset
  add(self, system.disk, from, from + n * system.block, file_of(self, system, dev, inode))
end

--- Returns the file of a sector of a disk, whatever was the last one there; 0: it is not known.
---@param disk integer
---@param sector number
---@return integer
function FileBlocks:at(disk, sector)
  local at = sector * SECTOR
  local groups = self.groups[disk]
  local list = groups and groups[math.floor(at / GROUP)]
  if not list then return 0 end
  local newest = list.next - 1
  for i = 0, MOST - 1 do
    local extent = list[(newest - 1 - i) % MOST + 1]
    if not extent then return 0 end
    if at >= extent.from and at < extent.to then return extent.id end
  end
  return 0
end

--- Adds the handlers that follow the files.
---@param handlers table
---@param session Session
---@return boolean has_events
function FileBlocks:follow(handlers, session)
  local has_events = false
  for name, filter in pairs(EVENTS) do
    local event = session.supports(name) and session.event { name }
    if event then
      has_events = true
      event:set { filter = filter }
      handlers[event] = function(ev) self:put(ev.dev, ev.ino, ev.pblk, ev.len) end
    end
  end
  return has_events
end

return file_blocks
