#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only
# tcp: known numbers of connections and bytes, of a server and its client.
. "$(dirname "$0")/../../lib.sh"
needs_tracepoint sock:inet_sock_set_state sock:sock_send_length tcp:tcp_destroy_sock
client='tcpclient \([0-9]+\)' server='tcpserver \([0-9]+\)'

# entry NAME TASK PORT PEER NUMBERS: the row of a task, if it has a port of its own, and peer, has these numbers
entry() { expect_line "$1" "^tcp,[0-9.]+,$2,$3,$4,$5," "$TMP/out"; }

run=(tcp -m 1024 --csv)
"$PROFSCRIPT" "${run[@]}" -- "$TOP/build/workloads/tcp" talk 20 half 3 >"$TMP/out" 2>"$TMP/err"
entry 'the client' "$client" '' '127.0.0.1:[0-9]+' 20,0,200000,60000
entry 'the server, which accepts' "$server" '[0-9]+' 127.0.0.1 20,0,60000,200000
entry 'what is received after both ends have closed' "$client" '' '127.0.0.1:[0-9]+' 3,0,30000,9000
"$PROFSCRIPT" "${run[@]}" -- "$TOP/build/workloads/tcp" idle 4 refused 5 >"$TMP/out" 2>"$TMP/err"
entry 'a server that only closes' "$server" '[0-9]+' 127.0.0.1 4,0,0,0
rows 'refused connections' 'c["connections"] == 5 && c["failed"] == 5 && c["resets"] == 5'
check 'what happens in interrupts is there' bash -c "! grep 'in interrupts' '$TMP/err'"

workload tcp talk 2
trace_workload "${run[@]}" -p "$WORKLOAD" -i 100s
entry '-p: the process' "$client" '' '127.0.0.1:[0-9]+' 2,0,20000,6000
check '-p: no others' bash -c "! tail -n +2 '$TMP/out' | grep -v '^tcp,[^,]*,tcp\(client\|server\)'"

if [ -r /sys/kernel/btf/vmlinux ]; then
	"$PROFSCRIPT" "${run[@]}" -- "$TOP/build/workloads/tcp" handed 3 >"$TMP/out" 2>"$TMP/err"
	entry 'a connection that its acceptor gives to a child' "$server" '[0-9]+' 127.0.0.1 3,0,9000,30000
	"$PROFSCRIPT" "${run[@]}" --queues -- "$TOP/build/workloads/tcp" netns full 4 >"$TMP/out" 2>"$TMP/err"
	read -r _ port _ sent_again < <(grep '^port' "$TMP/out")
	expect_line 'retransmits are what the kernel counts' "^tcp,[0-9.]+,$client,,127.0.0.1:$port,5,4,0,0,.*,$sent_again,[0-9]+$" "$TMP/out"
	expect_line 'the accept queue that is full' "^queues,[0-9.]+,$port,1,1,1,0,1$" "$TMP/out"
	mkfifo "$TMP/line"
	"$TOP/build/workloads/tcp" long 5 <"$TMP/line" >"$TMP/open" &
	talker=$!
	exec {line}>"$TMP/line"
	wait_for 20 grep -q open "$TMP/open"
	start "${run[@]}" -p "$talker" -i 100s
	echo >&"$line"
	wait $talker
	stop
	entry 'a connection that was open before the run' "$client" '' '127.0.0.1:[0-9]+' 0,0,5000,15000
else
	skip 'a connection that its acceptor gives to a child' 'the kernel has no BTF'
	skip 'retransmits are what the kernel counts' 'the kernel has no BTF'
	skip 'the accept queue that is full' 'the kernel has no BTF'
	skip 'a connection that was open before the run' 'the kernel has no BTF'
fi

root=$(sed -n 's/^[^ ]* \([^ ]*\) cgroup2 .*/\1/p' /proc/self/mounts | head -n 1)
group="tcptest$$"
if [ -n "$root" ] && mkdir "$root/$group" 2>/dev/null; then
	start "${run[@]}" --container "/$group" -i 100s
	"$TOP/build/workloads/tcp" talk 3
	sh -c "echo \$\$ >'$root/$group/cgroup.procs' && exec '$TOP/build/workloads/tcp' talk 4"
	stop
	rmdir "$root/$group"
	entry '--container: a client' "$client" '' '127.0.0.1:[0-9]+' 4,0,40000,12000
	entry '--container: its server' "$server" '[0-9]+' 127.0.0.1 4,0,12000,40000
	check '--container: no others' test "$(grep -c ^tcp, "$TMP/out")" -eq 2
else
	skip '--container' 'no control group of version 2 can be made'
fi
