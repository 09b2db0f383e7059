#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only
# Pairs by thread across an execve() of a thread that is not the first one of its process: the kernel gives it the
# first one's id, so the call ends with another key than it began with.
. "$(dirname "$0")/../../../lib.sh"
needs_tracepoint raw_syscalls:sys_enter raw_syscalls:sys_exit sched:sched_process_exec
execs=$TOP/build/workloads/execs # makes 2 * COUNT + 1 calls, of which one fails

for way in auto perf; do
	"$PROFSCRIPT" syscalls --capture $way -m 4096 --json -- "$execs" 10 >"$TMP/out" 2>"$TMP/err"
	expect_line "syscalls, $way" '"syscall":"execve",.*"calls":21,.*"err":1,' "$TMP/out"
	"$PROFSCRIPT" multi-trace --capture $way -m 4096 --json -e syscalls:sys_enter_execve -e syscalls:sys_exit_execve \
		-k common_pid -- "$execs" 10 >"$TMP/out" 2>"$TMP/err"
	expect_line "multi-trace, $way" '"start":"sys_enter_execve",.*"(calls|count)":21,' "$TMP/out"
	"$PROFSCRIPT" multi-trace --capture $way -m 4096 -e raw_syscalls:sys_enter -e raw_syscalls:sys_exit/id==59/ \
		--than 1ns -- "$execs" 10 >"$TMP/out" 2>"$TMP/err"
	check "outliers have both events, $way" test "$(grep -c 'sys_exit: NR 59 = 0' "$TMP/out")" -eq 20 -a \
		"$(grep -c 'sys_enter: NR 59 ' "$TMP/out")" -eq 21
done

"$PROFSCRIPT" multi-trace -e raw_syscalls:sys_enter -e raw_syscalls:sys_exit --dry-run -- "$execs" 1 >"$TMP/out"
check 'programs follow the threads without another event' test "$(grep -c sched_process_exec "$TMP/out")" -eq 0

"$PROFSCRIPT" multi-trace -m 4096 -e raw_syscalls:sys_enter -e raw_syscalls:sys_exit -k common_pid+0 -- "$execs" 10 >"$TMP/out" 2>"$TMP/err"
expect_line 'a computed key does not follow them' \
	'^multi-trace: 10 threads got the id of their process, .* with the key common_pid\+0 may be missing or wrong' "$TMP/err"

# Another machine's threads are followed if it sends these events, too.
"$PROFSCRIPT" trace -m 4096 -e raw_syscalls:sys_enter/id==59/ -e raw_syscalls:sys_exit/id==59/ -e sched:sched_process_exec \
	--push "$TMP/sent" -- "$execs" 10 >"$TMP/out" 2>"$TMP/err"
"$PROFSCRIPT" multi-trace --json -e "raw_syscalls:sys_enter//pull=\"$TMP/sent\"/" -e "raw_syscalls:sys_exit//pull=\"$TMP/sent\"/" \
	-k common_pid >"$TMP/out" 2>"$TMP/err"
expect_line 'pull=' '"start":"sys_enter",.*"(calls|count)":21,' "$TMP/out"

# The fields have the ids that threads have on the machine, also for a profscript in a pid namespace.
if ! unshare -pf --mount-proc true 2>"$TMP/err"; then
	skip 'a pid namespace' "$(<"$TMP/err")"
	exit
fi
traces() {
	unshare -pf --mount-proc "$PROFSCRIPT" multi-trace -m 4096 --json -e syscalls:sys_enter_execve \
		-e syscalls:sys_exit_execve "$@" -- "$execs" 10 >"$TMP/out" 2>"$TMP/err"
}
traces -k common_pid
expect_line 'a pid namespace' '"start":"sys_enter_execve",.*"(calls|count)":21,' "$TMP/out"
traces
expect_line 'a pid namespace, ids of samples' '^multi-trace: 10 threads got the id .* with the key _tid may be' "$TMP/err"
