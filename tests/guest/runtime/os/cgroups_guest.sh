#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only
# Control groups of both versions, in a guest because mounting version 1's takes them away from the host.
. "$(dirname "$0")/../../../lib.sh"
cd "$TOP" || exit 1

# counts NAME N LIST: calls in three cgroups of the hierarchy in $root
counts() {
	local tracer
	"$PROFSCRIPT" exec -e syscalls:sys_enter_getppid/common_pid!=$$/ 'if ev._comm == "syscalls" then count() end' \
		--cgroups "$3" >"$TMP/out" 2>&1 &
	tracer=$!
	wait_ready $tracer
	calls one/inner 1
	calls one 10
	calls two 100
	calls . 1000
	kill -INT $tracer
	wait $tracer
	expect_line "$1" "^ *$2$" "$TMP/out"
}

calls() {
	bash -c 'echo 0 >"$0/cgroup.procs"; exec build/workloads/syscalls "$1"' "$root/$1" "$2"
}

# True in every hierarchy
check_hierarchy() {
	mkdir -p "$root/one/inner" "$root/two"
	counts "$1: a group with its subgroups" 11 one
	counts "$1: a group in a group" 1 one/inner
	counts "$1: two groups" 111 one,two
	counts "$1: an expression" 101 '^(two|one/.*)$'
	counts "$1: the root" 1111 ''
	check_status "$1: no such group" 1 "$PROFSCRIPT" trace -e sched:sched_switch --cgroups tow
	expect_line "$1: no such group" "^profscript: no cgroup 'tow'; did you mean 'two'\\?$" "$TMP/.check"
	echo 0 >"$root/cgroup.procs"
	rmdir "$root/one/inner" "$root/one" "$root/two"
}

root=/sys/fs/cgroup
# In a hierarchy that has not been used yet, perf events do not distinguish groups.
echo +pids >$root/cgroup.subtree_control
check_hierarchy 'version 2'

sleep 1 # cgroups disappear a little after they are removed
root=$TMP/perf_event
mkdir "$root"
if mount -t cgroup -o perf_event none "$root"; then
	check_hierarchy 'version 1'
	umount "$root"
else
	skip 'version 1' 'the kernel has no cgroup version 1 with perf_event'
fi
