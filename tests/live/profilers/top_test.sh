#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only
# top: the combinations of keys, names and columns, for an exact number of events; its screen.
# Runs alone.
. "$(dirname "$0")/../../lib.sh"
needs_tracepoint raw_syscalls:sys_enter sched:sched_switch sched:sched_process_fork
states=$TOP/build/workloads/states
syscalls=$TOP/build/workloads/syscalls
call=raw_syscalls:sys_enter/id==$GETPPID

csv top -m 1024 -e "$call/" -- "$syscalls" 2000
rows 'without a key it is the thread' 'c["comm"] == "syscalls" && c["sys_enter"] == 2000'
csv top -m 1024 -e "$call/" -k id -- "$syscalls" 2000
rows '-k' "c[\"id\"] == $GETPPID && c[\"sys_enter\"] == 2000"
csv top -m 1024 -e "$call/key=id/comm=_comm/alias=calls/top-by=id*2/top-add=id/" -- "$syscalls" 100
rows 'key, comm, columns, alias of the first' \
	"c[\"calls\"] == 200 * $GETPPID && c[\"id#2\"] == 100 * $GETPPID && c[\"_comm\"] == \"syscalls\""
csv top -m 1024 -e "$call/comm=_comm/" --only-comm -- "$syscalls" 100
rows '--only-comm' 'c["_comm"] == "syscalls" && c["sys_enter"] == 100'
csv top -m 1024 -e "$call/key=id/,raw_syscalls:sys_exit/id==$GETPPID/key=id/" -- "$syscalls" 100
rows 'two events' 'c["sys_enter"] == 100 && c["sys_exit"] == 100'
csv top -e "$call/key=id/printkey='printf(\"call-%d\",key)'/" -- "$syscalls" 10
rows 'printkey' "c[\"id\"] == \"call-$GETPPID\""
check_status '--only-comm needs comm=' 2 "$PROFSCRIPT" top -e "$call/key=id/" --only-comm -- true
csv top -m 4096 -e sched:sched_process_fork//key=parent_pid/comm=parent_comm/ -i 100s -- "$states" fork 25
rows 'forks' 'c["parent_comm"] == "states" && c["sched_process_fork"] == 25'
total_is_perfs sys_enter top -e raw_syscalls:sys_enter//key=id/

# Addresses in a recording of this kernel have the names that perf prints.
if [ -d /sys/kernel/tracing/events/kmem/kmalloc ]; then
	names() { sed -n 's/.*call_site=\([^+ ]*\)+.*/\1/p' | sort | uniq -c | awk '{ print $2 "," $1 }' | sort; }
	perf record -q -e kmem:kmalloc -o "$TMP/kmalloc.data" -- "$states" fork 5 2>/dev/null
	perf script -i "$TMP/kmalloc.data" -F trace 2>/dev/null | names >"$TMP/want"
	"$PROFSCRIPT" top --input "$TMP/kmalloc.data" -i 100s --only-comm --format csv \
		-e 'kmem:kmalloc//comm=ksymbol(call_site)/alias=n/' | awk -F, 'NR > 1 { print $4 "," $3 }' | sort >"$TMP/got"
	check 'the names of the places where a recording allocates' diff "$TMP/want" "$TMP/got"
	check 'there are some rows' test -s "$TMP/want"
	check 'trace has the same' diff "$TMP/want" <("$PROFSCRIPT" trace --input "$TMP/kmalloc.data" | names)
else
	skip 'names in a recording' 'kmem:kmalloc'
fi

# Pages that a program allocates are movable, its page tables are not.
if [ -d /sys/kernel/tracing/events/kmem/mm_page_alloc ]; then
	workload pages 3000
	trace_workload top -m 1024 -k migratetype --format csv -i 100s -e kmem:mm_page_alloc/migratetype==1/ -p $WORKLOAD
	rows 'N pages are allocated' 'c["migratetype"] == 1 && c["mm_page_alloc"] == 3000'
else
	skip 'pages' 'kmem:mm_page_alloc'
fi

if command -v python3 >/dev/null; then
	check 'on a terminal' python3 "$TOP/tests/tools/screen.py" "$PROFSCRIPT" "$states"
else
	skip 'on a terminal' 'python3 is not installed'
fi
ends_on_ctrl_c top -e sched:sched_switch
