#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only
# Switches that the kernel does not report, as those of idle tasks on some machines; here all switches to one program.
# The profilers see each time that it leaves a CPU, but not when the first of these runs began.
# Runs alone.
. "$(dirname "$0")/../../lib.sh"
needs_tracepoint sched:sched_switch sched:sched_wakeup sched:sched_wakeup_new

perf record -q -a -m 1024 -o "$TMP/hidden.data" -e sched:sched_switch --filter 'next_comm != "states"' \
	-e sched:sched_wakeup,sched:sched_wakeup_new -- \
	taskset -c 0 "$TOP/build/workloads/states" sleep 20 sleep 20 sleep 20 sleep 20 sleep 20 2>/dev/null
left=$("$PROFSCRIPT" exec -e 'sched:sched_switch/prev_comm=="states"/' --input "$TMP/hidden.data" 'count(ev.prev_comm)' \
	--format csv | sed -n 's/.*states,//p')
for args in oncpu rundelay 'task-state --perins'; do
	# shellcheck disable=SC2086 # words
	"$PROFSCRIPT" $args --input "$TMP/hidden.data" >"$TMP/out" 2>"$TMP/err"
	n=$(sed -n "s/^${args%% *}: the kernel did not report.* \([0-9]*\) switch[es]* (.*not counted)\$/\1/p" "$TMP/err")
	echo "# $left leave, ${n:-0} not reported" >>"$TMP/err"
	[ "$left" -ge 6 ] && [ "${n:-0}" -ge $((left - 1)) ]
	result $? "${args%% *}: switches that are not reported" "$TMP/err"
done
