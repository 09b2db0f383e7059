-- SPDX-License-Identifier: GPL-2.0-only
--- Watch: tells when files are saved, also by editors that write a new file and rename it. It watches the folders,
--- because a watch of a file would end with the file.
local bit = require 'bit'
local failure = require 'bindings.base.failure'
local ffi = require 'ffi'
local libc = require 'bindings.base.libc'
local sys = require 'bindings.base.sys'

local watch = {}

local BUFFER = 4096 -- bytes; an event has at most 272

---@class FileWatch
---@field fd integer readable when something may have been saved
local FileWatch = {}
FileWatch.__index = FileWatch

--- Returns the path without symbolic links.
local function real(path)
  local found = libc.realpath(path, nil)
  if found == nil then return path end
  local text = ffi.string(found)
  libc.free(found)
  return text
end

---@return FileWatch
function watch.new()
  local fd = libc.inotify_init1(bit.bor(libc.IN_NONBLOCK, libc.IN_CLOEXEC))
  if fd < 0 then failure.raise('inotify: %s', sys.strerror(ffi.errno())) end
  return setmetatable({ fd = fd, _folders = {}, _names = {}, _buffer = ffi.new('uint8_t[?]', BUFFER) }, FileWatch)
end

--- Watches these files, too. A symbolic link is watched at both ends.
---@param paths string[]
---@return boolean? ok
---@return string? message
function FileWatch:add(paths)
  for _, path in ipairs(paths) do
    for _, one in ipairs { path, real(path) } do
      local folder, name = one:match '^(.*)/([^/]*)$'
      folder, name = folder == '' and '/' or folder or '.', name or one
      self._names[name] = true
      local mask = bit.bor(libc.IN_CLOSE_WRITE, libc.IN_MOVED_TO)
      if not self._folders[folder] and libc.inotify_add_watch(self.fd, folder, mask) < 0 then
        return nil, ('%s: %s'):format(folder, sys.strerror(ffi.errno()))
      end
      self._folders[folder] = true
    end
  end
  return true
end

--- Returns whether one of the files may have been saved since the last call. Does not wait.
---@return boolean
function FileWatch:changed()
  local changed = false
  while true do
    local n = tonumber(libc.read(self.fd, self._buffer, BUFFER))
    if n <= 0 then return changed end
    local at = 0
    while at < n do -- watch, mask, cookie, size of the name, name
      local words = ffi.cast('uint32_t *', self._buffer + at)
      local name = words[3] > 0 and ffi.string(self._buffer + at + 16) or ''
      changed = changed or self._names[name] == true
      at = at + 16 + words[3]
    end
  end
end

function FileWatch:close() libc.close(self.fd) end

return watch
