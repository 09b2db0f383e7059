#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only
# The losses of a tiny ring are counted exactly: seen and lost events add up to those that happened.
# Runs alone.
. "$(dirname "$0")/../../../lib.sh"
needs_tracepoint raw_syscalls:sys_enter raw_syscalls:sys_exit
enter=raw_syscalls:sys_enter/id==$GETPPID/
syscalls=$TOP/build/workloads/syscalls

# seen_and_lost NAME MADE
seen_and_lost() {
	read -r seen lost < <(sed -n 's/^profscript: \([0-9]*\) events, \([0-9]*\) lost.*/\1 \2/p' "$TMP/err")
	echo "seen $seen, lost $lost, made $2" >"$TMP/sum"
	[ $((seen + lost)) -eq "$2" ] && [ "$lost" -gt 0 ]
	result $? "$1: seen and lost events add up to $2" "$TMP/sum"
	grep -q "[,:]$seen\b" "$TMP/out"
	result $? "$1: the script saw $seen" "$TMP/out"
}

for pages in 1 2; do
	for run in 1 2 3; do
		"$PROFSCRIPT" exec -v -m $pages -e "$enter" --format csv --capture perf 'count()' -- "$syscalls" 200000 \
			>"$TMP/out" 2>"$TMP/err"
		seen_and_lost "-m $pages, run $run, a thread" 200000
	done
	workload syscalls 200000
	trace_workload exec -v -m $pages -e "raw_syscalls:sys_enter/id==$GETPPID&&common_pid==$WORKLOAD/" \
		--format csv --capture perf 'count()'
	seen_and_lost "-m $pages, all cpus" 200000
	workload syscalls 200000
	trace_workload multi-trace -v -m $pages -e "raw_syscalls:sys_enter/id==$GETPPID&&common_pid==$WORKLOAD/" \
		-e "raw_syscalls:sys_exit/id==$GETPPID&&common_pid==$WORKLOAD/" -k common_pid --format json
	read -r seen lost < <(sed -n 's/^profscript: \([0-9]*\) events, \([0-9]*\) lost.*/\1 \2/p' "$TMP/err")
	calls=$(sed -n 's/.*"calls":\([0-9]*\),.*/\1/p' "$TMP/out")
	echo "seen $seen, lost $lost, pairs $calls" >"$TMP/sum"
	[ $((seen + lost)) -eq 400000 ] && [ $((2 * calls)) -le "$seen" ]
	result $? "-m $pages, pairs: seen and lost events add up to 400000, no pair without both" "$TMP/sum"
done
