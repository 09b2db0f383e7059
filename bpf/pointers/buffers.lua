-- SPDX-License-Identifier: GPL-2.0-only
--- Buffers of system calls: the arguments that point to bytes whose end another argument, or the result, says. Nothing
--- ends such bytes, and what lies behind them is not the call's: passwords and keys of the program, for example.
---
--- A buffer whose end is not known when the call returns is not here and cannot be read: that of `syslog`, which fills
--- nothing for some actions, but returns a number.
local buffers = {}

--- A buffer.
---@class BufferRule
---@field length? string name of the argument with its bytes, or with the segments of a vector; nil: `bytes`
---@field bytes? integer it always has so many
---@field out? boolean the call fills it: at its end it has as many bytes as the result says, and before that none
---@field kind? 'vector'|'message' an array of struct iovec, or a struct user_msghdr
---@field by_pointer? boolean length points to the room, and after the call to the bytes that there are: more than the
--- room if they did not fit
---@field flags? string argument with the flags of a receive: with MSG_TRUNC, a call may count bytes that it drops

local function given(length, kind) return { length = length, kind = kind } end
local function filled(length, kind) return { length = length, kind = kind, out = true } end
local function received(length, kind) return { length = length, kind = kind, out = true, flags = 'flags' } end
local function measured(length) return { length = length, out = true, by_pointer = true } end

local ADDRESS = { usockaddr = measured 'usockaddr_len' }
local PEER = { upeer_sockaddr = measured 'upeer_addrlen' }

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

--- Arguments of type char * that are neither strings nor buffers with a known end.
local NO_TEXT = {
  syslog = { buf = true }, shmat = { shmaddr = true }, shmdt = { shmaddr = true },
}

--- Returns how a buffer of a system call ends; nil for other arguments.
---@param call string
---@param argument string
---@return BufferRule?
function buffers.rule(call, argument) return (RULES[call] or {})[argument] end

--- Returns whether an argument that looks like a string is none.
function buffers.is_no_text(call, argument) return NO_TEXT[call] ~= nil and NO_TEXT[call][argument] == true end

return buffers
