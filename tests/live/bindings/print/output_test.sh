#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only
# No name that a process gives itself reaches the terminal with its control characters.
. "$(dirname "$0")/../../../lib.sh"
needs_tracepoint sched:sched_switch sched:sched_wakeup

# Two threads of this name wake each other on one CPU.
cat >"$TMP/evil.py" <<'E2'
import ctypes, os
ctypes.CDLL(None).prctl(15, b'\x1b]0;x\x07\x9b1m\r\n', 0, 0, 0)
os.sched_setaffinity(0, {0})
a, b = os.pipe(), os.pipe()
if os.fork() == 0:
    for _ in range(300):
        os.read(a[0], 1)
        os.write(b[1], b'x')
    os._exit(0)
for _ in range(300):
    os.write(a[1], b'x')
    os.read(b[0], 1)
os.wait()
E2

# escaped NAME ARG...: the name is printed, and nothing but text
escaped() {
	local name=$1
	shift
	"$PROFSCRIPT" "$@" -m 512 -- python3 "$TMP/evil.py" >"$TMP/out" 2>&1
	grep -q 'x1b\|u001b' "$TMP/out"
	result $? "$name: the name is there" <(head "$TMP/out")
	LC_ALL=C grep -n $'[\001-\010\013-\037\177\233]' "$TMP/out" >"$TMP/raw"
	[ ! -s "$TMP/raw" ]
	result $? "$name: it is escaped" "$TMP/raw"
}
escaped 'details' rundelay --than 1us --detail=samecpu
escaped 'a relation' multi-trace -e 'sched:sched_wakeup//key=pid/' -e 'sched:sched_switch//key=next_pid/' --than 1ns --detail=samecpu
for form in text json csv; do
	escaped "trace, $form" trace -e sched:sched_switch --format $form
	escaped "top, $form" top -e sched:sched_switch//key=next_pid/comm=next_comm/ --format $form
done
escaped 'exec' exec -e sched:sched_switch 'count(ev.next_comm)'
escaped 'stacks' trace -e sched:sched_switch -g

# `time` has one base, that of date(1): for events, objects of profilers and rows of tables.
began=$(date +%s)
for profiler in 'trace -e sched:sched_switch -N 3' 'task-state --than 1us --duration 0.3' 'hrtimer -F 100 1 -N 3' \
	'rundelay --than 1us -i 100 --duration 0.3'; do
	# shellcheck disable=SC2086 # a profiler and its options
	"$PROFSCRIPT" $profiler --json >"$TMP/json" 2>"$TMP/err"
	sed 's/.*"time":\([0-9]*\).*/\1/' "$TMP/json" | sort -nu >"$TMP/out"
	check "${profiler%% *}: seconds since the epoch" \
		awk -v from="$began" -v to="$(date +%s)" '$1 < from || $1 > to { wrong = 1 } END { exit wrong || !NR }' "$TMP/out"
done
