-- SPDX-License-Identifier: GPL-2.0-only
--- The system calls Lua lacks.
local ffi = require 'ffi'

ffi.cdef [[
void *sys_opendir(const char *path) __asm__("opendir");
int sys_closedir(void *dir) __asm__("closedir");
struct sys_dirent { uint64_t ino; int64_t off; unsigned short reclen; unsigned char type; char name[256]; };
struct sys_dirent *sys_readdir(void *dir) __asm__("readdir");
struct sys_statx_timestamp { int64_t sec; uint32_t nsec; int32_t pad; };
struct sys_statx {
  uint32_t mask, blksize; uint64_t attributes; uint32_t nlink, uid, gid; uint16_t mode, pad;
  uint64_t ino, size, blocks, attributes_mask;
  struct sys_statx_timestamp atime, btime, ctime, mtime;
  uint32_t rdev_major, rdev_minor, dev_major, dev_minor; uint64_t spare[14];
};
int sys_statx(int dir, const char *path, int flags, unsigned int mask, struct sys_statx *st) __asm__("statx");
struct sys_rusage { int64_t user_sec, user_usec, system_sec, system_usec; long maxrss, others[13]; };
int sys_getrusage(int who, struct sys_rusage *usage) __asm__("getrusage");
int sys_clock_gettime(int clock, int64_t *sec_ns) __asm__("clock_gettime");
const char *sys_strerror(int code) __asm__("strerror");
]]

local C = ffi.C
local sys = { getenv = os.getenv }

--- Every pid and tid is smaller: the kernel's PID_MAX_LIMIT plus one.
sys.PID_END = 2 ^ 22 + 1

local AT_FDCWD = -100
local STATX_BASIC_STATS = 0x7ff
local CLOCK_REALTIME, CLOCK_MONOTONIC = 0, 1
local RUSAGE_SELF = 0
local S_IFMT, S_IFDIR = 0xf000, 0x4000

--- The words for a positive errno.
---@param code integer
---@return string
function sys.strerror(code) return ffi.string(C.sys_strerror(code)) end

local function error_text() return sys.strerror(ffi.errno()) end

--- Names in a directory, without "." and "..".
---@param path string
---@return string[]? names, string? message
function sys.readdir(path)
  local dir = C.sys_opendir(path)
  if dir == nil then return nil, error_text() end
  local names = {}
  while true do
    local entry = C.sys_readdir(dir)
    if entry == nil then break end
    local name = ffi.string(entry.name)
    if name ~= '.' and name ~= '..' then names[#names + 1] = name end
  end
  C.sys_closedir(dir)
  return names
end

---@param path string
---@return { mode: integer, uid: integer, isdir: boolean }? st, string? message
function sys.stat(path)
  local st = ffi.new 'struct sys_statx'
  if C.sys_statx(AT_FDCWD, path, 0, STATX_BASIC_STATS, st) ~= 0 then return nil, error_text() end
  return { mode = st.mode, uid = st.uid, isdir = bit.band(st.mode, S_IFMT) == S_IFDIR }
end

--- The content of a file, such as those in /proc and /sys.
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

--- A clock that only goes forward.
---@return number ns
function sys.now()
  local now = ffi.new 'int64_t[2]'
  C.sys_clock_gettime(CLOCK_MONOTONIC, now)
  return tonumber(now[0]) * 1e9 + tonumber(now[1])
end

--- The time of day.
---@return number sec since the epoch, number ns
function sys.wall()
  local now = ffi.new 'int64_t[2]'
  C.sys_clock_gettime(CLOCK_REALTIME, now)
  return tonumber(now[0]), tonumber(now[1])
end

--- What this process has used.
---@return { user: number, system: number, maxrss: integer } usage times in ns, memory in KiB
function sys.usage()
  local usage = ffi.new 'struct sys_rusage'
  C.sys_getrusage(RUSAGE_SELF, usage)
  return {
    user = tonumber(usage.user_sec) * 1e9 + tonumber(usage.user_usec) * 1e3,
    system = tonumber(usage.system_sec) * 1e9 + tonumber(usage.system_usec) * 1e3,
    maxrss = tonumber(usage.maxrss),
  }
end

return sys
