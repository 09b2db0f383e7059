#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only
# The tools of docs/gallery.md that live/examples_test does not run, with numbers that are known.
. "$(dirname "$0")/../../lib.sh"
needs_tracepoint syscalls:sys_exit_bind
workloads=$TOP/build/workloads
cd "$TMP" || exit 1

# gallery ARG...: runs a tool; its lines are in $TMP/out
gallery() {
	"$PROFSCRIPT" "$@" >"$TMP/out" 2>"$TMP/err"
	status=$?
}

# counted NAME COUNT REGEX: so many lines match
counted() {
	unavailable $status "$1" && return
	check "$1" test "$(grep -cE -- "$3" "$TMP/out")" -eq "$2"
	[ "$(grep -cE -- "$3" "$TMP/out")" -eq "$2" ] || sed 's/^/# /' "$TMP/out" "$TMP/err"
}

gallery "$TOP/examples/filelife.lua" -- bash -c 'for i in 1 2 3; do : >f$i; sleep 0.01; rm f$i; done; : >kept'
counted 'filelife: three files' 3 '^ *[0-9]+ rm +[0-9]{2,}\.[0-9]+ f[123]$'
counted 'filelife: not the one that stays' 0 kept

gallery "$TOP/examples/exitsnoop.lua" -- bash -c '(exit 3); sleep 9 & sleep 0.1; kill $!; wait; true'
counted 'exitsnoop: a status' 1 '^ *[0-9]+ bash +bash +[0-9.]+ status 3$'
counted 'exitsnoop: a signal, and an age' 1 '^ *[0-9]+ (sleep|bash) +bash +[0-9]{3,}\.[0-9]+ SIGTERM$'
gallery "$TOP/examples/exitsnoop.lua" --failed -- bash -c '(exit 3); /bin/true; true'
counted 'exitsnoop: only failures' 1 ' [0-9]+\.[0-9]{3} '

gallery "$TOP/examples/gethostlatency.lua" -- python3 -c 'import socket
for i in range(5): socket.getaddrinfo("127.0.0.%d" % (i + 1), 80)'
counted 'gethostlatency: five hosts' 5 '^ *[0-9]+ python3 +[0-9.]+ +0 127\.0\.0\.[1-5]$'

gallery exec -e syscalls:sys_exit_bind \
	'a = ev:string "umyaddr" print(ev._comm, errno(ev.ret), ip(a:sub(5, 8)), a:byte(3) * 256 + a:byte(4))' -- python3 -c 'import socket
servers = [socket.create_server(("127.0.0.1", 0)) for i in range(3)]
server = socket.socket()
try: server.bind(("127.0.0.1", servers[0].getsockname()[1]))
except OSError: pass'
counted 'bindsnoop: three with any port' 3 '^python3	0	127\.0\.0\.1	0$'
counted 'bindsnoop: an address that is in use' 1 'EADDRINUSE	127\.0\.0\.1	[1-9]'

# The kernel counts the same ones. It may report none to perf from CPUs that are idle, so none is.
hogs=()
for _ in $(seq "$(nproc)"); do
	nice -n 19 bash -c 'while :; do :; done' &
	hogs+=($!)
done
kinds() { awk 'NR > 1 { n = 0; for (i = 2; i <= NF; i++) n += $i; print substr($1, 1, length($1) - 1), n }' /proc/softirqs | sort; }
kinds >before
gallery "$TOP/examples/softirqs.lua" --csv --duration 0.3
kinds >after
kill "${hogs[@]}"
if ! unavailable $status softirqs; then
	join before after | awk '{ print $1, $3 - $2 }' >grown
	tail -n +2 out | awk -F, '{ print $3, $4 }' | sort | join -a 1 - grown |
		awk '{ n++; if ($3 == "" || $2 > $3) { print; bad++ } } END { exit n == 0 || bad > 0 }' >wrong
	result $? 'softirqs: kinds of /proc/softirqs, and no more than it counts' wrong
fi

gallery exec -e 'syscalls:sys_enter_fsync,syscalls:sys_enter_fdatasync' 'print(ev._comm, probe)' -- \
	bash -c 'for i in 1 2 3; do dd if=/dev/zero of=f count=1 conv=fsync status=none; done; dd if=/dev/zero of=f count=1 conv=fdatasync status=none'
counted 'syncsnoop: fsync' 3 '^dd	syscalls:sys_enter_fsync$'
counted 'syncsnoop: fdatasync' 1 '^dd	syscalls:sys_enter_fdatasync$'

gallery exec -e 'uprobe:pthread_create@libc.so.6(start=%dx)' 'print(ev._comm, usym(ev.start))' -- python3 -c 'import threading
for i in range(7):
  t = threading.Thread(target=int)
  t.start()
  t.join()'
counted 'threadsnoop: seven threads' 7 '^python3	'

gallery stat -e sched:sched_process_fork -- "$workloads/forker" 50
counted 'pidpersec: fifty processes' 1 '^sched:sched_process_fork +50 \| total +50$'

gallery exec -e syscalls:sys_exit_setuid,syscalls:sys_exit_setresuid 'print(probe, errno(ev.ret))' -- python3 -c 'import os
os.setuid(65534)
os.setresuid(65534, 65534, 65534)
try: os.setuid(0)
except OSError: pass'
counted 'setuids: two that work' 2 '	0$'
counted 'setuids: one that fails' 1 'setuid	EPERM$'

gallery exec -e syscalls:sys_exit_clock_nanosleep \
	'print(ev._comm, user("struct timespec64.tv_sec", ev.rqtp), user("struct timespec64.tv_nsec", ev.rqtp))' -- sleep 0.125
counted 'naptime: as asked' 1 '^sleep	0	125000000$'

gallery exec -e 'syscalls:sys_enter_getp*' 'count(probe)' -- "$workloads/syscalls" 300
counted 'funccount: each call' 1 '^syscalls:sys_enter_getppid +300$'
