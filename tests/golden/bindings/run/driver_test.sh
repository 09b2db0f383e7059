#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only
# -vv prints each event of a profiler, as trace does, and nothing twice.
. "$(dirname "$0")/../../../lib.sh"

# prints_events RECORDING EVENTS PROFILER ARG...: the lines of these events, a comma between them, are those of trace
prints_events() {
	local recording=$1 events=$2
	shift 2
	"$PROFSCRIPT" trace -e "$events" --input "$DATA/$recording.data" >"$TMP/want" 2>"$TMP/err"
	[ -s "$TMP/want" ] || cat "$TMP/err"
	"$PROFSCRIPT" "$@" -vv --input "$DATA/$recording.data" 2>"$TMP/err" |
		grep -E "^.{24,}\] [0-9.]+: (${events//,/|}): " >"$TMP/got"
	diff "$TMP/want" "$TMP/got" >"$TMP/diff" && [ -s "$TMP/want" ]
	result $? "$1 -vv" "$TMP/diff"
}

switches=sched:sched_switch,sched:sched_wakeup
prints_events sched sched:sched_switch top -e sched:sched_switch//key=prev_pid/
prints_events syscalls raw_syscalls:sys_exit num-dist -e raw_syscalls:sys_exit//num=ret/
prints_events sched $switches task-state
prints_events sched sched:sched_switch oncpu
prints_events kmem kmem:kmalloc,kmem:kfree kmemleak --alloc kmem:kmalloc --free kmem:kfree
prints_events sched sched:sched_switch trace -e sched:sched_switch
prints_events sched sched:sched_switch exec -e sched:sched_switch 'count(ev.next_pid)'

"$PROFSCRIPT" top -e sched:sched_switch -v --input "$DATA/sched.data" >"$TMP/out" 2>/dev/null
check '-v prints none' bash -c "! grep 'sched:sched_switch: ' '$TMP/out'"
