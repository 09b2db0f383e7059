#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only
# Where there may be many threads, task-state --than keeps the events at which states begin in a hash.
. "$(dirname "$0")/../../lib.sh"
for most in 32768 4194304; do
	echo $most >/proc/sys/kernel/pid_max
	"$PROFSCRIPT" task-state -D --than 50ms --csv -v -- "$TOP/build/workloads/states" fork 20 vfork 100 \
		>"$TMP/out" 2>"$TMP/err"
	expect_line "$most threads: in the kernel" 'added up in the kernel.*; states over 50 ms are sent' "$TMP/err"
	expect_line "$most threads: a wait" '^task-state,[0-9.]+,[0-9]+,states,D,[0-9]{9,}$' "$TMP/out"
	expect_line "$most threads: its start" '^sched:sched_switch,.*,states,[0-9]+,[0-9]+,2,' "$TMP/out"
	expect_line "$most threads: its end" '^sched:sched_wakeup,.*,states,' "$TMP/out"
	check "$most threads: all are kept" test "$(grep -c 'could not be kept' "$TMP/err")" = 0
done
