-- SPDX-License-Identifier: GPL-2.0-only
--- Files and directories, such as those of /proc and /sys.
local check = require 'bindings.base.check'
local sys = require 'bindings.base.sys'

local fs = {}

--- Reads a whole file.
---@param path string
---@return string? text nil: see message
---@return string? message
function fs.read(path)
  check.is(path, 'string', 'fs.read takes a path')
  return sys.read(path)
end

--- Reads the first line of a file.
---@param path string
---@return string? line nil: there is none
function fs.line(path) return (fs.read(path) or ''):match '^[^\n]+' end

--- Returns the names in a directory, without '.' and '..'.
---@param path string
---@return string[]? names nil: see message
---@return string? message
function fs.list(path)
  check.is(path, 'string', 'fs.list takes a path')
  return sys.readdir(path)
end

--- Returns where a symbolic link leads.
---@param path string
---@return string? target nil: it is none, or cannot be read
function fs.link(path)
  check.is(path, 'string', 'fs.link takes a path')
  return sys.link(path)
end

--- Returns the path of a file by its inode, for file systems with the handles of ext4, if the kernel knows it.
---@param mount string where its file system is mounted
---@param inode number
---@return string? path nil: it is not known
function fs.of_inode(mount, inode)
  check.is(mount, 'string', 'fs.of_inode takes a path')
  check.whole(inode, 0, 2 ^ 32 - 1, 'fs.of_inode takes the number of an inode')
  return sys.link(mount, inode)
end

--- Returns whether a file or directory exists.
---@param path string
---@return boolean
function fs.exists(path)
  check.is(path, 'string', 'fs.exists takes a path')
  return sys.stat(path) ~= nil
end

return fs
