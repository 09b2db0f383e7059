#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only
# Buffers of system calls end where the call says: what lies behind them is in no line, filter or recording.
. "$(dirname "$0")/../../../lib.sh"
needs_tracepoint syscalls:sys_enter_write syscalls:sys_exit_read
cd "$TMP" || exit 1

code=
for one in write:buf read:buf pwrite64:buf readlink:buf writev:vec readv:vec sendto:buff recvfrom:ubuf,addr sendmsg:msg \
	recvmsg:msg connect:uservaddr accept:upeer_sockaddr getsockname:usockaddr getpeername:usockaddr getsockopt:optval \
	process_vm_readv:lvec process_vm_writev:lvec sched_getaffinity:user_mask_ptr poll:ufds select:outp \
	epoll_wait:events setgroups:grouplist msgsnd:msgp msgrcv:msgp sendmmsg:mmsg recvmmsg:mmsg ioctl:arg syslog:buf \
	perf_event_open:attr_uptr; do
	for side in enter exit; do
		code+="    ['syscalls:sys_${side}_${one%:*}'] = function(ev)
      if ev._comm ~= 'buffers' then return end
"
		for argument in $(tr , ' ' <<<"${one#*:}"); do
			code+="      out:row { 'event', '${one%:*}', 'side', '$side', 'text', ev:string '$argument' }
"
		done
		code+='    end,
'
	done
done
printf 'return { summary = "buffers", start = function(_, out)\n  return {\n%s  }\nend }\n' "$code" >buffers.lua

"$PROFSCRIPT" buffers.lua --record r.data -- "$TOP/build/workloads/buffers" >out 2>err
status=$?
unavailable $status 'strings behind pointers' && exit
check 'all buffers can be read' test $status -eq 0
check 'nothing behind a buffer is printed' test "$(grep -c 'SECRET\|SSS' out)" -eq 0
check 'nothing behind a buffer is recorded' test "$(grep -ac 'SECRET\|SSS' r.data)" -eq 0
"$PROFSCRIPT" buffers.lua --input r.data >again 2>err
check 'a recording has the buffers' cmp out again

x256=$(printf 'x%.0s' {1..256})
for side in enter exit; do
	for line in 'write hello\x0a' 'write a\x00b\x00' "write $x256" "write $x256..." 'write <null>' 'write <unreadable>' \
		'pwrite64 pwrite' 'writev onetwo' 'writev oooooooo' 'writev oooooooo...' 'sendto sent' 'sendmsg message' \
		'connect \x01\x00/absent' 'msgsnd 12345678queued' 'sendmmsg firstsecond' 'ioctl request' 'ioctl <unsized>' \
		'ioctl uest' 'setgroups \x07\x00\x00\x00'; do
		grep -qxF -- "${line%% *} $side ${line#* }" <(tr -s ' ' <out)
		result $? "$side: ${line:0:40}" out
	done
done
for call in read readlink readv recvfrom recvmsg accept getsockname getpeername getsockopt process_vm_readv epoll_wait \
	msgrcv recvmmsg ioctl syslog; do
	expect_line "$call has nothing before it returns" "^$call +enter +<unwritten>$" out
done
for line in 'read hello\x0a' 'readlink /' 'readv onetwo' 'recvfrom sent' 'recvmsg message' \
	'recvmsg <unwritten>' 'recvfrom data' 'recvfrom \x01\x00\x00Datagram' 'recvfrom <null>' 'accept \x01\x00\x00Buffers' \
	'getsockname \x01\x00\x00buf...' 'getpeername \x01\x00\x00buffers' 'getsockopt \x01\x00\x00\x00' \
	'getsockopt \x00\x00\x00\x00...' 'process_vm_readv own' 'process_vm_writev own' \
	'poll \xff\xff\xff\xff\x01\x00\x00\x00' 'epoll_wait \x04\x00\x00\x0012345678' 'msgrcv 12345678queued' \
	'recvmmsg firstsecond'; do
	grep -qxF -- "${line%% *} exit ${line#* }" <(tr -s ' ' <out)
	result $? "exit: $line" out
done
expect_line 'a longer one is cut' '^read +exit +a\\x00b\\x00x{252}\.\.\.$' out
nul='\\x00'
check 'a structure with its size' grep -qE "^perf_event_open +enter +1111@($nul){59}$" out
check 'a set of as many words as it has' grep -qE '^select +exit +[^S]+$' out
check 'a call that fills nothing, but returns a number' grep -qE '^syslog +exit *$' out
check 'a failed call has filled nothing' test "$(grep -cE '^read +exit *$' out)" -eq 1

"$PROFSCRIPT" trace -e 'syscalls:sys_enter_write/str(buf) == "hello\n"/' -- "$TOP/build/workloads/buffers" >out 2>err
check 'str() of a buffer' test "$(grep -c '\*buf: "hello\\x0a"$' out)" -eq 1
"$PROFSCRIPT" exec -e syscalls:sys_exit_process_vm_readv 'print(ev:string "rvec")' --duration 0.1 >out 2>err
check 'a buffer of another process is refused' test $? -eq 1
expect_line 'with its name' "has no string 'rvec'|have no string 'rvec'|no string .rvec." err
