-- SPDX-License-Identifier: GPL-2.0-only
--- Buffers of system calls: the arguments that point to bytes whose end another argument, or the result, says. Nothing
--- ends such bytes, and what lies behind them is not the call's: passwords and keys of the program, for example.
---
--- Arguments that are not here and no strings are read as addresses only: structures that another call or the kernel
--- has measured, and what is in the memory of another process, as that of process_vm_readv.
local buffers = {}

--- A buffer.
---@class BufferRule
---@field length? string name of the argument with its bytes, elements or messages, or with the segments of a vector;
--- nil: `bytes`
---@field bytes? integer it always has so many
---@field out? boolean the call fills it: at its end it has as many bytes as the result says, and before that none
---@field kind? 'vector'|'message'|'messages' array of struct iovec, struct user_msghdr, array of struct mmsghdr
---@field unit? integer bytes of an element, if the length counts elements, and so does the result
---@field head? integer bytes before those that are counted
---@field is_bits? boolean the length counts bits, which are in words of 64
---@field size_at? integer offset of the bytes in the buffer itself; 0 means 64
---@field by_request? boolean the length is the request of an ioctl, which has the bytes and the direction
---@field less? { [1]: integer, [2]: integer }[] requests of which the kernel reads or writes less: the bytes
---@field action? { [1]: string, [2]: integer, [3]: integer } an argument, and the values with which the call fills it
---@field by_pointer? boolean length points to the room, and after the call to the bytes that there are: more than the
--- room if they did not fit
---@field flags? string argument with the flags of a receive: with MSG_TRUNC, a call may count bytes that it drops

local function given(length, kind) return { length = length, kind = kind } end
local function filled(length, kind) return { length = length, kind = kind, out = true } end
local function elements(length, unit) return { length = length, unit = unit } end
local function filled_elements(length, unit) return { length = length, unit = unit, out = true } end
local function received(length, kind) return { length = length, kind = kind, out = true, flags = 'flags' } end
local function measured(length) return { length = length, out = true, by_pointer = true } end

local ADDRESS = { usockaddr = measured 'usockaddr_len' }
local SET = { length = 'n', is_bits = true }
local SETS = { inp = SET, outp = SET, exp = SET }
local POLLED = { ufds = elements('nfds', 8) }
local WAITED = { events = filled_elements('maxevents', 12) }
local DONE = { events = filled_elements('nr', 32) }
local SEMAPHORES = { tsops = elements('nsops', 6) }
local PEER = { upeer_sockaddr = measured 'upeer_addrlen' }

-- Requests whose numbers say long or size_t, though the argument is an int: FS_IOC_GETFLAGS, _SETFLAGS, _GETVERSION and
-- _SETVERSION, those of ext4, BLKBSZGET and BLKBSZSET. Others say the size of a pointer to text: the filter of a perf
-- event and the path of an input device.
local LESS = { { 0x80086601, 4 }, { 0x40086602, 4 }, { 0x80087601, 4 }, { 0x40087602, 4 }, { 0x80086603, 4 },
  { 0x40086604, 4 }, { 0x80086605, 4 }, { 0x40086606, 4 }, { 0x80081270, 4 }, { 0x40081271, 4 }, { 0x40082406, 0 },
  { 0x4008556c, 0 } }

---@type table<string, table<string, BufferRule>> by system call and argument
local RULES = {
  write = { buf = given 'count' }, pwrite64 = { buf = given 'count' },
  read = { buf = filled 'count' }, pread64 = { buf = filled 'count' },
  sendto = { buff = given 'len', addr = given 'addr_len' },
  recvfrom = { ubuf = received 'size', addr = measured 'addr_len' },
  accept = PEER, accept4 = PEER, getsockname = ADDRESS, getpeername = ADDRESS,
  bind = { umyaddr = given 'addrlen' }, connect = { uservaddr = given 'addrlen' },
  setsockopt = { optval = given 'optlen' }, getsockopt = { optval = measured 'optlen' },
  writev = { vec = given('vlen', 'vector') }, readv = { vec = filled('vlen', 'vector') },
  pwritev = { vec = given('vlen', 'vector') }, preadv = { vec = filled('vlen', 'vector') },
  pwritev2 = { vec = given('vlen', 'vector') }, preadv2 = { vec = filled('vlen', 'vector') },
  process_vm_writev = { lvec = given('liovcnt', 'vector') }, process_vm_readv = { lvec = filled('liovcnt', 'vector') },
  vmsplice = { uiov = given('nr_segs', 'vector') },
  sendmsg = { msg = given('msg', 'message') }, recvmsg = { msg = received('msg', 'message') },
  sendmmsg = { mmsg = given('vlen', 'messages') }, recvmmsg = { mmsg = received('vlen', 'messages') },
  msgsnd = { msgp = { length = 'msgsz', head = 8 } }, msgrcv = { msgp = { length = 'msgsz', head = 8, out = true } },
  poll = POLLED, ppoll = POLLED, select = SETS, pselect6 = SETS,
  epoll_wait = WAITED, epoll_pwait = WAITED, epoll_pwait2 = WAITED, io_getevents = DONE, io_pgetevents = DONE,
  semop = SEMAPHORES, semtimedop = SEMAPHORES, futex_waitv = { waiters = elements('nr_futexes', 24) },
  getgroups = { grouplist = filled_elements('gidsetsize', 4) }, setgroups = { grouplist = elements('gidsetsize', 4) },
  listmount = { mnt_ids = filled_elements('nr_mnt_ids', 8) },
  move_pages = { pages = elements('nr_pages', 8), nodes = elements('nr_pages', 4) },
  syslog = { buf = { length = 'len', out = true, action = { 'type', 2, 4 } } },
  ioctl = { arg = { length = 'cmd', by_request = true, less = LESS } },
  perf_event_open = { attr_uptr = { length = 'attr_uptr', size_at = 4 } },
  landlock_create_ruleset = { attr = given 'size' }, mount_setattr = { uattr = given 'usize' },
  setxattrat = { uargs = given 'usize' }, lookup_dcookie = { buf = filled 'len' },
  kexec_file_load = { cmdline_ptr = given 'cmdline_len' },
  mq_timedsend = { u_msg_ptr = given 'msg_len' }, mq_timedreceive = { u_msg_ptr = filled 'msg_len' },
  readlink = { buf = filled 'bufsiz' }, readlinkat = { buf = filled 'bufsiz' }, getcwd = { buf = filled 'size' },
  getrandom = { ubuf = filled 'len' }, getdents = { dirent = filled 'count' },
  getdents64 = { dirent = filled 'count' },
  sched_setaffinity = { user_mask_ptr = given 'len' }, sched_getaffinity = { user_mask_ptr = filled 'len' },
  bpf = { uattr = given 'size' }, clone3 = { uargs = given 'size' }, openat2 = { how = given 'usize' },
  init_module = { umod = given 'len' },
  sethostname = { name = given 'len' }, setdomainname = { name = given 'len' },
  futex = { uaddr = { bytes = 12 } }, -- the lock, count and owner of a pthread_mutex_t
  add_key = { _payload = given 'plen' },
  setxattr = { value = given 'size' }, lsetxattr = { value = given 'size' }, fsetxattr = { value = given 'size' },
  getxattr = { value = filled 'size' }, lgetxattr = { value = filled 'size' }, fgetxattr = { value = filled 'size' },
  listxattr = { list = filled 'size' }, llistxattr = { list = filled 'size' }, flistxattr = { list = filled 'size' },
  listxattrat = { list = filled 'size' },
}

--- Strings of type char *. The kernel calls arguments so that it writes to, and those whose end a length says; so any
--- other one is none.
local STRINGS = {
  mount = { dev_name = true, dir_name = true, type = true }, umount = { name = true }, oldumount = { name = true },
  utime = { filename = true }, utimes = { filename = true },
}

--- Returns how a buffer of a system call ends; nil for other arguments.
---@param call string
---@param argument string
---@return BufferRule?
function buffers.rule(call, argument) return (RULES[call] or {})[argument] end

--- Returns whether an argument is a string.
---@param call string
---@param argument string
---@param type string in C
---@return boolean
function buffers.is_string(call, argument, type)
  return type == 'const char *' or type == 'char *' and STRINGS[call] ~= nil and STRINGS[call][argument] == true
end

return buffers
