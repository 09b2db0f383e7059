#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only
# sched: two busy programs on one CPU wait for each other, a known number of switches, and queues with known lengths.
# Runs alone.
. "$(dirname "$0")/../../lib.sh"
needs_tracepoint sched:sched_switch sched:sched_wakeup sched:sched_wakeup_new sched:sched_migrate_task
burn=$TOP/build/workloads/burn count=200

# sched_of ARG... -- COMMAND...: the rows of a run, all of whose tasks are on CPU 0
sched_of() {
	taskset -c 0 "$PROFSCRIPT" sched -m 2048 --csv "$@" >"$TMP/out" 2>"$TMP/err"
}

sched_of --perins --than 1us -- bash -c "'$burn' 100 & '$burn' 100; wait"
# Both want the CPU for the whole time, so each waits while the other one runs.
check 'one waits behind the other' awk -F, '$1 == "sched-wait" && $3 == "burn" && $7 == "burn" && $4 != $8 { n++ }
	END { exit n < 2 }' "$TMP/out"
check 'who ran while a task waited takes all of this time' awk -F, '$1 == "sched-wait" {
		key = $2 FS $4; wait[key] = $5; ran[key] += $9 }
	END { for (key in wait) if (wait[key] != ran[key]) exit 1 }' "$TMP/out"
check 'both run' awk -F, '$1 == "sched-task" && $3 == "burn" && $5 >= 50e6 { n++ } END { exit n != 2 }' "$TMP/out"
check 'the queue is as long as it should be' awk -F, '$1 == "sched-cpu" && $3 == 0 && $5 >= 0.1 && $6 >= 1 { found = 1 }
	END { exit !found }' "$TMP/out"

watch_tasks pi?g po?g pingpong
sched_of --perins -- "$TOP/build/workloads/pingpong" -c 0 $count
end_watch
if all_reported 'the waits of ping'; then
	check 'the waits of ping' test "$(awk -F, '$1 == "sched-task" && $3 == "ping" { n += $6 } END { print n + 0 }' "$TMP/out")" -ge $count
fi
