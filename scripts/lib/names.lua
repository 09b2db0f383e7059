-- SPDX-License-Identifier: GPL-2.0-only
--- Names of numbers in events: errors, signals, flags, TCP states and IP addresses as text.
---
---   local names = require 'lib.names'
---   return { ['raw_syscalls:sys_exit'] = function(ev)
---     if ev.ret < 0 then out:print(session.syscall_name(ev.id), names.errno(ev.ret)) end
---   end }
---
--- The names of system calls are in session.syscall_name(): they depend on the machine.
local bit = require 'bit'
local check = require 'bindings.base.check'
local countable = require 'bindings.base.countable'

local names = {}

local function list(text)
  local by_number = {}
  for number, name in text:gmatch '(%d+)=(%w+)' do by_number[tonumber(number)] = name end
  return by_number
end

-- asm-generic/errno.h
local ERRNO = list [[
1=EPERM 2=ENOENT 3=ESRCH 4=EINTR 5=EIO 6=ENXIO 7=E2BIG 8=ENOEXEC 9=EBADF 10=ECHILD 11=EAGAIN 12=ENOMEM 13=EACCES
14=EFAULT 15=ENOTBLK 16=EBUSY 17=EEXIST 18=EXDEV 19=ENODEV 20=ENOTDIR 21=EISDIR 22=EINVAL 23=ENFILE 24=EMFILE
25=ENOTTY 26=ETXTBSY 27=EFBIG 28=ENOSPC 29=ESPIPE 30=EROFS 31=EMLINK 32=EPIPE 33=EDOM 34=ERANGE 35=EDEADLK
36=ENAMETOOLONG 37=ENOLCK 38=ENOSYS 39=ENOTEMPTY 40=ELOOP 42=ENOMSG 43=EIDRM 60=ENOSTR 61=ENODATA 62=ETIME 63=ENOSR
66=EREMOTE 67=ENOLINK 70=ECOMM 71=EPROTO 72=EMULTIHOP 74=EBADMSG 75=EOVERFLOW 77=EBADFD 78=EREMCHG 84=EILSEQ
85=ERESTART 86=ESTRPIPE 87=EUSERS 88=ENOTSOCK 89=EDESTADDRREQ 90=EMSGSIZE 91=EPROTOTYPE 92=ENOPROTOOPT
93=EPROTONOSUPPORT 94=ESOCKTNOSUPPORT 95=EOPNOTSUPP 96=EPFNOSUPPORT 97=EAFNOSUPPORT 98=EADDRINUSE 99=EADDRNOTAVAIL
100=ENETDOWN 101=ENETUNREACH 102=ENETRESET 103=ECONNABORTED 104=ECONNRESET 105=ENOBUFS 106=EISCONN 107=ENOTCONN
108=ESHUTDOWN 109=ETOOMANYREFS 110=ETIMEDOUT 111=ECONNREFUSED 112=EHOSTDOWN 113=EHOSTUNREACH 114=EALREADY
115=EINPROGRESS 116=ESTALE 117=EUCLEAN 121=EREMOTEIO 122=EDQUOT 123=ENOMEDIUM 124=EMEDIUMTYPE 125=ECANCELED 126=ENOKEY
127=EKEYEXPIRED 128=EKEYREVOKED 129=EKEYREJECTED 130=EOWNERDEAD 131=ENOTRECOVERABLE 132=ERFKILL 133=EHWPOISON
512=ERESTARTSYS 513=ERESTARTNOINTR 514=ERESTARTNOHAND 515=ENOIOCTLCMD 516=ERESTARTBLOCK 517=EPROBEDEFER 524=ENOTSUPP]]

-- asm-generic/signal.h
local SIGNAL = list [[
1=SIGHUP 2=SIGINT 3=SIGQUIT 4=SIGILL 5=SIGTRAP 6=SIGABRT 7=SIGBUS 8=SIGFPE 9=SIGKILL 10=SIGUSR1 11=SIGSEGV 12=SIGUSR2
13=SIGPIPE 14=SIGALRM 15=SIGTERM 16=SIGSTKFLT 17=SIGCHLD 18=SIGCONT 19=SIGSTOP 20=SIGTSTP 21=SIGTTIN 22=SIGTTOU
23=SIGURG 24=SIGXCPU 25=SIGXFSZ 26=SIGVTALRM 27=SIGPROF 28=SIGWINCH 29=SIGIO 30=SIGPWR 31=SIGSYS]]

-- trace/events/signal.h
local SIGNAL_RESULT = { [0] = 'delivered', 'ignored', 'already pending', 'queue full', 'info lost' }

-- net/tcp_states.h
local TCP_STATE = { 'ESTABLISHED', 'SYN_SENT', 'SYN_RECV', 'FIN_WAIT1', 'FIN_WAIT2', 'TIME_WAIT', 'CLOSE',
  'CLOSE_WAIT', 'LAST_ACK', 'LISTEN', 'CLOSING', 'NEW_SYN_RECV' }

-- linux/capability.h
local CAPABILITY = { [0] = 'CHOWN', 'DAC_OVERRIDE', 'DAC_READ_SEARCH', 'FOWNER', 'FSETID', 'KILL', 'SETGID',
  'SETUID', 'SETPCAP', 'LINUX_IMMUTABLE', 'NET_BIND_SERVICE', 'NET_BROADCAST', 'NET_ADMIN', 'NET_RAW', 'IPC_LOCK',
  'IPC_OWNER', 'SYS_MODULE', 'SYS_RAWIO', 'SYS_CHROOT', 'SYS_PTRACE', 'SYS_PACCT', 'SYS_ADMIN', 'SYS_BOOT',
  'SYS_NICE', 'SYS_RESOURCE', 'SYS_TIME', 'SYS_TTY_CONFIG', 'MKNOD', 'LEASE', 'AUDIT_WRITE', 'AUDIT_CONTROL',
  'SETFCAP', 'MAC_OVERRIDE', 'MAC_ADMIN', 'SYSLOG', 'WAKE_ALARM', 'BLOCK_SUSPEND', 'AUDIT_READ', 'PERFMON', 'BPF',
  'CHECKPOINT_RESTORE' }

-- asm-generic/fcntl.h, without the access mode. O_SYNC and O_TMPFILE include other flags, so they come first.
local OPEN = { { 0x101000, 'O_SYNC' }, { 0x410000, 'O_TMPFILE' }, { 0x40, 'O_CREAT' }, { 0x80, 'O_EXCL' },
  { 0x100, 'O_NOCTTY' }, { 0x200, 'O_TRUNC' }, { 0x400, 'O_APPEND' }, { 0x800, 'O_NONBLOCK' }, { 0x1000, 'O_DSYNC' },
  { 0x2000, 'O_ASYNC' }, { 0x4000, 'O_DIRECT' }, { 0x8000, 'O_LARGEFILE' }, { 0x10000, 'O_DIRECTORY' },
  { 0x20000, 'O_NOFOLLOW' }, { 0x40000, 'O_NOATIME' }, { 0x80000, 'O_CLOEXEC' }, { 0x200000, 'O_PATH' } }
local ACCESS = { [0] = 'O_RDONLY', 'O_WRONLY', 'O_RDWR', 'O_ACCMODE' }

local function number(value, what)
  return tonumber(value) or error(('%s takes a number, not %s'):format(what, check.shown(value)), 3)
end

local function name_of(known, value) return known[value] or ('%d'):format(value) end

--- Returns the name of an error.
---@param value number|integer64 errno, or a result that is negative: -2
---@return string name 'ENOENT'; the number if it is unknown
function names.errno(value) return name_of(ERRNO, math.abs(number(value, 'names.errno'))) end

--- Returns the name of a signal.
---@param value number|integer64
---@return string name 'SIGKILL'; the number if it is unknown
function names.signal(value) return name_of(SIGNAL, number(value, 'names.signal')) end

--- Returns what has become of a signal, the field `result` of the tracepoint signal:signal_generate.
---@param value number
---@return string name 'delivered'; the number if it is unknown
function names.signal_result(value) return name_of(SIGNAL_RESULT, number(value, 'names.signal_result')) end

--- Returns the name of a TCP state, as in the tracepoint sock:inet_sock_set_state.
---@param value number
---@return string name 'ESTABLISHED'; the number if it is unknown
function names.tcp_state(value) return name_of(TCP_STATE, number(value, 'names.tcp_state')) end

--- Returns the name of a capability, as in the tracepoint capability:cap_capable.
---@param value number
---@return string name 'SYS_ADMIN'; the number if it is unknown
function names.capability(value) return name_of(CAPABILITY, number(value, 'names.capability')) end

--- Returns the names of the bits of a number.
---@param value number|integer64
---@param bits { [1]: number, [2]: string }[] masks and their names; those with several bits first
---@return string text 'CREATE|TRUNC'; bits without a name in hexadecimal; '0' if none is set
function names.flags(value, bits)
  local rest, parts = number(value, 'names.flags'), {}
  check.is(bits, 'table', 'names.flags takes a list of masks and names')
  for _, one in ipairs(bits) do
    if one[1] ~= 0 and bit.band(rest, one[1]) == bit.tobit(one[1]) then
      parts[#parts + 1] = one[2]
      rest = rest - one[1]
    end
  end
  if rest ~= 0 then parts[#parts + 1] = ('0x%x'):format(rest % 2 ^ 32) end
  return #parts > 0 and table.concat(parts, '|') or '0'
end

--- Returns the flags of open(2) and openat(2) on x86-64, such as `ev.flags`.
---@param value number|integer64
---@return string text 'O_WRONLY|O_CREAT|O_TRUNC'
function names.open_flags(value)
  local n = number(value, 'names.open_flags')
  local mode, rest = n % 4, n - n % 4
  return ACCESS[mode] .. (rest ~= 0 and '|' .. names.flags(rest, OPEN) or '')
end

local function ipv6(address)
  local words, best, best_length, at = {}, nil, 1, nil
  for i = 0, 7 do
    words[i] = address[2 * i] * 256 + address[2 * i + 1]
    at = words[i] == 0 and (at or i) or nil
    if at and i - at + 1 > best_length then best, best_length = at, i - at + 1 end
  end
  if best == 0 and best_length == 5 and words[5] == 0xffff then
    return ('::ffff:%d.%d.%d.%d'):format(address[12], address[13], address[14], address[15])
  end
  local before, after = {}, {}
  for i = 0, 7 do
    if not best or i < best then
      before[#before + 1] = ('%x'):format(words[i])
    elseif i >= best + best_length then
      after[#after + 1] = ('%x'):format(words[i])
    end
  end
  return table.concat(before, ':') .. (best and '::' or '') .. table.concat(after, ':')
end

--- Returns an IP address as text.
---@param address any a field of 4 or 16 bytes, such as `ev.saddr` or `ev.saddr_v6` of sock:inet_sock_set_state, or so
--- many bytes of a string
---@return string text '10.0.0.1', '::1'
function names.ip(address)
  local is_text, is_list = type(address) == 'string', type(address) == 'cdata' or type(address) == 'table'
  local n = (is_text or is_list and not tonumber(address)) and #address
  if is_text then address = { [0] = address:byte(1), address:byte(2, -1) } end
  if n == 4 then return ('%d.%d.%d.%d'):format(address[0], address[1], address[2], address[3]) end
  if n == 16 then return ipv6(address) end
  error(('names.ip takes a field of 4 or 16 bytes, not %s'):format(check.shown(address)), 2)
end

for _, name in ipairs { 'errno', 'signal', 'signal_result', 'tcp_state', 'capability', 'open_flags' } do
  countable.add_text(names[name])
end

return names
