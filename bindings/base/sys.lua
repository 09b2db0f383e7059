-- SPDX-License-Identifier: GPL-2.0-only
--- System calls that Lua lacks.
local bit = require 'bit'
local failure = require 'bindings.base.failure'
local ffi = require 'ffi'
local libc = require 'bindings.base.libc'

local sys = { getenv = os.getenv }

sys.PIDS_MAX = ffi.C.PIDS_MAX -- all pids and tids are smaller
sys.CPUS_MAX = ffi.C.CPUS_MAX -- all CPU numbers are smaller

--- Returns the bound of the thread ids that this machine uses at the moment: all are less.
---@return integer
function sys.pid_max()
  return math.min(tonumber((sys.read '/proc/sys/kernel/pid_max')) or sys.PIDS_MAX, sys.PIDS_MAX)
end

--- Returns the message for a positive errno.
---@param code integer
---@return string
function sys.strerror(code) return ffi.string(libc.strerror(code)) end

local function error_text() return sys.strerror(ffi.errno()) end

--- Returns the names in a directory, without "." and "..".
---@param path string
---@return string[]? names, string? message
function sys.readdir(path)
  local dir = libc.opendir(path)
  if dir == nil then return nil, error_text() end
  local names = {}
  while true do
    local entry = libc.readdir(dir)
    if entry == nil then break end
    local name = ffi.string(entry.name)
    if name ~= '.' and name ~= '..' then names[#names + 1] = name end
  end
  libc.closedir(dir)
  return names
end

---@param path string
---@param flags? integer of statx(2)
---@return { mode: integer, uid: integer, size: integer, inode: number, isdir: boolean }? st, string? message
function sys.stat(path, flags)
  local st = ffi.new 'struct statx'
  if libc.statx(libc.AT_FDCWD, path, flags or 0, libc.STATX_BASIC_STATS, st) ~= 0 then return nil, error_text() end
  return { mode = st.mode, uid = st.uid, size = tonumber(st.size), inode = tonumber(st.ino),
    isdir = bit.band(st.mode, libc.S_IFMT) == libc.S_IFDIR }
end

--- Fails if a file system is missing without which nothing can be traced: its absence would be reported as that of an
--- event or a feature.
function sys.check_mounts()
  for name, path in pairs { proc = '/proc/self', sysfs = '/sys/devices' } do
    if not sys.stat(path) then
      failure.unavailable('%s is not mounted; mount it with: mount -t %s %s %s', name, name, name, path:match '^/%w+')
    end
  end
end

--- Returns where a symbolic link leads, or the path of an inode on the file system that is mounted at the path.
---@param path string
---@param inode? number
---@return string? target nil: there is none, or it cannot be read
function sys.link(path, inode)
  local target, size = ffi.new 'char[4096]', 4096
  local n = inode and ffi.C.inode_path(path, inode, target, size) or libc.readlink(path, target, size)
  return n >= 0 and ffi.string(target, n) or nil
end

--- Returns whether what is written to a path can be written to another file first, which then gets the name of the
--- path. A symbolic link, a pipe or a device must not be replaced.
---@param path string
---@return boolean
function sys.is_replaceable(path)
  local st = sys.stat(path, libc.AT_SYMLINK_NOFOLLOW)
  return not st or bit.band(st.mode, libc.S_IFMT) == libc.S_IFREG
end

local PLANTED = 'it is a symbolic link of another user'
local MODE = 420 -- 0644, less the umask

--- Opens a file for writing, but not through the link of another user in a folder like /tmp.
---@param path string
---@param flags integer of open(2)
---@return integer? fd
---@return string? message
function sys.open(path, flags)
  local fd = ffi.C.own_file_open(path, flags, MODE)
  if fd >= 0 then return fd end
  if fd == -libc.ELOOP then return nil, PLANTED end
  return nil, sys.strerror(-fd)
end

--- Returns why a file that exists cannot be written.
---@param path string
---@return string? message
function sys.why_not_writable(path)
  if ffi.C.own_file_check(path) < 0 then return PLANTED end
  if sys.stat(path) and libc.access(path, libc.W_OK) ~= 0 then return error_text() end
end

--- Creates or empties a file as io.open() with 'w' does.
---@param path string
---@return file*? file
---@return string? message
function sys.create(path)
  local fd, message = sys.open(path, libc.O_WRONLY + libc.O_CREAT + libc.O_TRUNC + libc.O_CLOEXEC)
  if not fd then return nil, ('%s: %s'):format(path, message) end
  local file, file_message = io.open('/proc/self/fd/' .. fd, 'w')
  libc.close(fd)
  return file, file_message
end

--- Returns the first bytes of what a descriptor reads from: a file, or a pipe, in which they stay.
---@param fd integer
---@param n integer
---@return string bytes as far as there are any; none of terminals and sockets
function sys.peek(fd, n)
  local bytes, pipe = ffi.new('char[?]', n), ffi.new 'int[2]'
  local got = libc.pread(fd, bytes, n, 0)
  if got < 0 and libc.pipe(pipe) == 0 then
    got = libc.tee(fd, pipe[1], n, 0)
    if got > 0 then got = libc.read(pipe[0], bytes, n) end
    libc.close(pipe[0])
    libc.close(pipe[1])
  end
  return ffi.string(bytes, math.max(tonumber(got), 0))
end

--- Creates a directory unless it exists.
---@param path string
---@return boolean? ok, string? message
function sys.mkdir(path)
  local st = sys.stat(path)
  if st and st.isdir then return true end
  if libc.mkdir(path, 0x1ff) ~= 0 then return nil, error_text() end -- less the umask
  return true
end

--- Returns the contents of a file.
---@param path string
---@return string? text, string? message
function sys.read(path)
  local file, message = io.open(path, 'rb')
  if not file then return nil, message end
  local text
  text, message = file:read '*a'
  file:close()
  return text, message
end

local INIT_PID_NAMESPACE = 0xeffffffc -- PROC_PID_INIT_INO of the kernel

--- Returns whether the thread ids that BPF programs see are not those of this process's pid namespace.
---@return boolean
function sys.has_foreign_pids()
  local namespace = sys.stat '/proc/self/ns/pid'
  return namespace ~= nil and namespace.inode ~= INIT_PID_NAMESPACE
end

--- Returns the monotonic time, which is also the clock of live events.
---@param base? number ns to subtract before the result loses precision
---@return number ns
function sys.now(base)
  local now = ffi.C.clock_monotonic()
  return tonumber(now / 1000000000ULL) * 1e9 - (base or 0) + tonumber(now % 1000000000ULL)
end

--- Returns the wall time.
---@return number sec since the epoch, number ns
function sys.wall()
  local now = ffi.new 'int64_t[2]'
  libc.clock_gettime(libc.CLOCK_REALTIME, now)
  return tonumber(now[0]), tonumber(now[1])
end

--- Returns the CPU time and memory that this process has used.
---@return { user: number, system: number, maxrss: integer } usage times in ns, memory in KiB
function sys.usage()
  local usage = ffi.new 'struct rusage'
  libc.getrusage(libc.RUSAGE_SELF, usage)
  return {
    user = tonumber(usage.user_sec) * 1e9 + tonumber(usage.user_usec) * 1e3,
    system = tonumber(usage.system_sec) * 1e9 + tonumber(usage.system_usec) * 1e3,
    maxrss = tonumber(usage.maxrss),
  }
end

--- Starts a thread of this process that makes split locks. Returns whether the processor can (runtime/os/splitlock.h).
---@return boolean
function sys.split_locks() return ffi.C.splitlock_start() == 0 end

return sys
