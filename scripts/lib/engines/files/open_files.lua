-- SPDX-License-Identifier: GPL-2.0-only
--- Open files by process and descriptor: those that the run has seen being opened, and live also those that had been
--- open before, by /proc/PID/fd.
local bit = require 'bit'
local fs = require 'lib.fs'
local intern = require 'lib.intern'
local mounts = require 'lib.engines.files.mounts'

local open_files = { NONE = 0 } -- NONE: id of what is not a file, such as a socket

local MAX_FILES = 2 ^ 20
local SELF = 'self'
local UNKNOWN = '(unknown)'
local CLOSES_ON_EXEC = 0x80000 -- O_CLOEXEC

---@class OpenFiles
local OpenFiles = {}
OpenFiles.__index = OpenFiles

---@class Process
---@field namespace string of its mounts
---@field cwd string path; '': not known
---@field files table<integer, integer> by descriptor: id of the file
---@field closes table<integer, boolean> descriptors that are closed when it executes a program

--- Creates the table of open files.
---@param is_live boolean whether /proc has the processes
---@param all boolean sockets, pipes and the like are files, too
---@return OpenFiles
function open_files.new(is_live, all)
  local self = setmetatable({ is_live = is_live, all = all, keys = intern.new(2, MAX_FILES), mounts = {},
    processes = {} }, OpenFiles)
  self.keys.id('', '') -- NONE
  return self
end

--- Returns where a link of a process in /proc leads; nil: the process is gone, or belongs to a recording.
local function link(self, pid, name) return self.is_live and fs.link(('/proc/%s/%s'):format(pid, name)) or nil end

--- Returns the namespace of a process's mounts.
local function namespace_of(self, pid)
  local namespace = link(self, pid, 'ns/mnt') or link(self, SELF, 'ns/mnt')
  if not namespace then return '' end
  if not self.mounts[namespace] then self.mounts[namespace] = mounts.of(pid) end
  return namespace
end

---@return Process
local function process_of(self, pid)
  local process = self.processes[pid]
  if not process then
    process = { namespace = namespace_of(self, pid), cwd = link(self, pid, 'cwd') or '', files = {}, closes = {} }
    self.processes[pid] = process
  end
  return process
end

--- Returns the id of what a link in /proc/PID/fd leads to.
local function id_of(self, process, target)
  local path = target:match '^/' and not target:match '^/memfd:' and target:gsub(' %(deleted%)$', '')
  if not path and not self.all then return open_files.NONE end
  return (self.keys.id(process.namespace, path or target:gsub(':%[%d+%]$', '')))
end

--- Looks up a descriptor that was open before anything was seen of it.
local function find(self, process, pid, fd)
  local target = link(self, pid, 'fd/' .. fd)
  local id = target and id_of(self, process, target) or self.keys.id(process.namespace, ('(fd %d)'):format(fd))
  local flags = target and (fs.read(('/proc/%s/fdinfo/%d'):format(pid, fd)) or ''):match 'flags:%s*(%d+)'
  process.files[fd] = id
  process.closes[fd] = flags and bit.band(tonumber(flags, 8), CLOSES_ON_EXEC) ~= 0 or nil
  return id
end

--- Returns the id of the file that is open.
---@param pid integer
---@param fd integer
---@return integer
function OpenFiles:at(pid, fd)
  local process = self.processes[pid]
  local id = process and process.files[fd]
  return id or find(self, process_of(self, pid), pid, fd)
end

--- Returns the path of a file as its process sees it, and where its file system is mounted; '': unknown.
---@param id integer
---@return string path, string mount
function OpenFiles:path(id)
  local path, longest = self.keys:part(id, 2), ''
  for _, one in ipairs(self.mounts[self.keys:part(id, 1)] or {}) do
    local mount = one.path
    local is_below = mount == '/' and path:find '^/' or path == mount or path:sub(1, #mount + 1) == mount .. '/'
    if is_below and #mount >= #longest then longest = mount end
  end
  return path, longest
end

--- Returns an absolute path for the one that a process has named, as far as that is known.
local function absolute(self, process, pid, path, folder, fd)
  local is_cut, goes_up = path:find '%.%.%.$', path:find '%.%./'
  local target = (is_cut or goes_up) and fd >= 0 and link(self, pid, 'fd/' .. fd)
  if target and (is_cut or target:match '[^/]*$' == path:match '[^/]*$') then return target end
  if path:find '^/' then return path end
  local base = process.files[folder] and self.keys:part(process.files[folder], 2) or process.cwd
  return base:find '^/' and (base .. '/' .. path):gsub('/%./', '/'):gsub('//+', '/') or path
end

--- A process has opened a file, or could not.
---@param pid integer
---@param fd integer negative: an error
---@param path? string as the process has named it; nil: it is not known
---@param folder integer descriptor of the folder in which the path begins; -1: the working directory
---@param closes? boolean whether it is closed when the process executes a program
---@return integer id
function OpenFiles:open(pid, fd, path, folder, closes)
  local process = process_of(self, pid)
  process.files[fd] = nil
  if not path then return fd < 0 and self.keys.id(process.namespace, UNKNOWN) or find(self, process, pid, fd) end
  local id = self.keys.id(process.namespace, absolute(self, process, pid, path, folder, fd))
  if fd >= 0 then process.files[fd], process.closes[fd] = id, closes or nil end
  return id
end

--- A process has got a descriptor of something else than a file.
---@param what string as its link in /proc begins
function OpenFiles:put(pid, fd, what)
  local process = process_of(self, pid)
  process.files[fd], process.closes[fd] = id_of(self, process, what), nil
end

--- A process closes a descriptor.
function OpenFiles:close(pid, fd)
  local process = self.processes[pid]
  if process then process.files[fd], process.closes[fd] = nil, nil end
end

--- A process closes all descriptors from one to another.
---@param later? boolean when it executes a program
function OpenFiles:close_range(pid, first, last, later)
  local process = self.processes[pid]
  for fd in pairs(process and process.files or {}) do
    if fd >= first and fd <= last then process.closes[fd] = true end
  end
  if process and not later then self:exec(pid, first) end
end

--- A process has a copy of a descriptor.
function OpenFiles:dup(pid, from, to, closes)
  local process = process_of(self, pid)
  process.files[to], process.closes[to] = self:at(pid, from), closes or nil
end

--- A process has another working directory.
---@param path? string as the process has named it
---@param fd? integer
function OpenFiles:chdir(pid, path, fd)
  local process = process_of(self, pid)
  process.cwd = path and absolute(self, process, pid, path, -1, -1) or (self.keys:part(self:at(pid, fd), 2))
end

--- A process executes a program.
---@param from? integer only descriptors from this one are closed
function OpenFiles:exec(pid, from)
  local process = self.processes[pid]
  for fd in pairs(process and process.closes or {}) do
    if fd >= (from or 0) then process.files[fd], process.closes[fd] = nil, nil end
  end
end

--- A process begins with the descriptors of another one.
function OpenFiles:fork(pid, parent)
  local from = self.processes[parent]
  if not from or pid == parent then return end
  local process = { namespace = from.namespace, cwd = from.cwd, files = {}, closes = {} }
  for fd, id in pairs(from.files) do process.files[fd], process.closes[fd] = id, from.closes[fd] end
  self.processes[pid] = process
end

--- A process has ended.
function OpenFiles:exit(pid) self.processes[pid] = nil end

--- Forgets what is open, after lost events.
function OpenFiles:forget() self.processes = {} end

--- Looks up all that a process has open.
---@param pid integer|'self'
function OpenFiles:look_up(pid)
  if not self.is_live then return end
  local process = process_of(self, pid)
  for _, fd in ipairs(fs.list(('/proc/%s/fd'):format(pid)) or {}) do find(self, process, pid, tonumber(fd)) end
end

--- A process begins as a child of this one that executes a program.
function OpenFiles:launched(pid)
  self:look_up(SELF)
  self:fork(pid, SELF)
  self:exec(pid)
end

--- Looks up all that any process has open.
function OpenFiles:look_up_all()
  for _, name in ipairs(self.is_live and fs.list '/proc' or {}) do
    if name:find '^%d+$' then self:look_up(tonumber(name)) end
  end
end

return open_files
