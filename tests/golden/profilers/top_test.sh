#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only
# top: numbers compared with perf script's text, outputs with *.expect files.
. "$(dirname "$0")/../../lib.sh"

perf script -i "$DATA/sched.data" --ns -F comm,tid,cpu,time,event,trace 2>/dev/null >"$TMP/script"
"$PROFSCRIPT" top --input "$DATA/sched.data" -i 100s --format csv \
	-e sched:sched_wakeup//key=pid/comm=comm/,sched:sched_switch//key=prev_pid/comm=prev_comm/ |
	awk -F, 'NR > 1 { print $3, $4, $5 }' | sort >"$TMP/got"
awk '{ for (i = 1; i <= NF; i++) if ($i ~ /^(prev_pid|pid)=/) { split($i, f, "="); break } }
	/sched_wakeup:/ { woken[f[2]]++ } /sched_switch:/ { switched[f[2]]++ } { seen[f[2]] }
	END { for (pid in seen) print pid, woken[pid] + 0, switched[pid] + 0 }' "$TMP/script" | sort >"$TMP/want"
check 'top counts as perf script does' diff "$TMP/want" "$TMP/got"
expect_output top sched top -i 100s \
	-e sched:sched_wakeup//key=pid/comm=comm/,sched:sched_switch//key=prev_pid/comm=prev_comm/
check_status 'top: a key without a value in some events' 0 "$PROFSCRIPT" top --input "$DATA/sched.data" -i 100s \
	-e sched:sched_switch -k '1/(prev_pid!=0)'
expect_line 'is reported' '^top: ignored [1-9][0-9]* events without a key \(division by zero\)$' "$TMP/.check"
check 'and has no row' bash -c "! grep -q nil '$TMP/.check'"
expect_output top-variance sched top -i 100s -e sched:sched_wakeup//key=target_cpu/top-variance=pid/top-add=prio/
expect_output top-only-comm sched top -i 100s -e sched:sched_switch//comm=prev_comm/top-by=prev_prio/ \
	--only-comm

# An event without a key counts for its thread, in the rows of those that have one, and names them.
"$PROFSCRIPT" top --input "$DATA/sched.data" -i 100s --format csv \
	-e sched:sched_wakeup//key=pid/comm=comm/,sched:sched_switch 2>"$TMP/err" |
	awk -F, 'NR > 1 { print $3, $4, $5 }' | sort >"$TMP/got"
"$PROFSCRIPT" top --input "$DATA/sched.data" -i 100s --format csv \
	-e sched:sched_wakeup//key=pid/comm=comm/,sched:sched_switch//key=prev_pid/comm=prev_comm/ |
	awk -F, 'NR > 1 { print $3, $4, $5 }' | sort >"$TMP/want"
check 'top: an event with a key and one without' diff "$TMP/want" "$TMP/got"
check 'without a warning' test ! -s "$TMP/err"
"$PROFSCRIPT" top --input "$DATA/sched.data" -i 100s -e sched:sched_wakeup//key=prio/,sched:sched_switch \
	>/dev/null 2>"$TMP/err"
expect_line 'a warning where the keys differ in kind' \
	'^top: sched:sched_switch has no key= and is counted by thread, but sched:sched_wakeup by prio$' "$TMP/err"

"$PROFSCRIPT" top --input "$DATA/kmem.data" -e kmem:kfree//top-by=ptr/ >"$TMP/out" 2>"$TMP/err"
expect_line 'top: sums that numbers do not hold' '^top: sums of 2\^53 and more are rounded$' "$TMP/err"

"$PROFSCRIPT" top --input "$DATA/sched.data" -e 'sched:sched_switch/prev_pid==-5/' >"$TMP/out" 2>"$TMP/err"
expect_line 'top: no events' "^top: nothing to report: the filter 'prev_pid==-5' rejected all" "$TMP/err"
