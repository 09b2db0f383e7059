-- SPDX-License-Identifier: GPL-2.0-only
--- The file of an export. It is written to FILE.tmp and renamed at the end, so that FILE is never half an export. What
--- is not a regular file, such as a pipe or a symbolic link, is written directly. Files whose names end in .gz are
--- compressed.
local failure = require 'bindings.base.failure'
local ffi = require 'ffi'
local libc = require 'bindings.base.libc'
local sys = require 'bindings.base.sys'
local zlib = require 'lib.export.zlib'

local C = ffi.C
local file = {}

local FLUSH_SIZE = 65536
local OVERWRITE = libc.O_WRONLY + libc.O_CREAT + libc.O_CLOEXEC + libc.O_TRUNC
local CREATE = libc.O_WRONLY + libc.O_CREAT + libc.O_CLOEXEC + libc.O_EXCL

--- A file that is written through a buffer.
---@class ExportFile
---@field path string
---@field is_compressed? boolean whatever its name is
---@field bytes ffi.cdata* struct bytes *: what is to be written next
local File = {}
File.__index = File

local function fail(self, errno) failure.raise("cannot write '%s': %s", self.path, sys.strerror(errno)) end

---@param path string
---@param progress Progress
---@return ExportFile
function file.new(path, progress)
  return setmetatable({ path = path, progress = progress, bytes = ffi.gc(C.bytes_new(), C.bytes_free) }, File)
end

--- Creates the file.
function File:create()
  local path = self.path == '-' and '/dev/stdout' or self.path
  local target, flags = path, OVERWRITE
  if sys.is_replaceable(path) then
    target, flags = path .. '.tmp', CREATE
    libc.unlink(target) -- of a run that was killed
  end
  local fd, message = sys.open(target, flags)
  if not fd then failure.raise("cannot write '%s': %s", self.path, message) end
  self.fd = fd
  if target ~= path then self.temporary = target end
  if self.is_compressed or path:match '%.gz$' then
    self.gz = zlib.load().gzdopen(self.fd, 'wb')
    if self.gz == nil then failure.raise("cannot write '%s': out of memory", path) end
  end
end

--- Writes what the buffer holds.
function File:flush()
  local bytes, at = self.bytes, 0
  if bytes.failed ~= 0 then fail(self, -bytes.failed) end
  local size = tonumber(bytes.size)
  while at < size do
    local n
    if self.gz then
      n = zlib.load().gzwrite(self.gz, bytes.data + at, size - at)
    else
      n = tonumber(libc.write(self.fd, bytes.data + at, size - at))
    end
    if n > 0 then
      at = at + n
    elseif ffi.errno() ~= libc.EINTR or C.signals_must_end() then
      fail(self, ffi.errno())
    end
  end
  bytes.size = 0
  self.progress:step(size, 'B')
end

--- Writes the buffer if it is large.
function File:poll()
  if self.bytes.size >= FLUSH_SIZE then self:flush() end
end

--- Appends text.
---@param text string
function File:put(text) C.bytes_put(self.bytes, text, #text) end

--- Ends the file, which then has its name.
function File:close()
  self:flush()
  local code = self.gz and zlib.load().gzclose(self.gz) or libc.close(self.fd)
  self.fd, self.gz = -1, nil
  if code ~= 0 then fail(self, ffi.errno()) end
  if self.temporary and libc.rename(self.temporary, self.path) ~= 0 then fail(self, ffi.errno()) end
end

--- Removes the file, after a failure.
function File:discard()
  if self.temporary then libc.unlink(self.temporary) end
end

return file
