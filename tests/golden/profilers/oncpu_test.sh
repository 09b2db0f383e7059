#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only
# oncpu: numbers compared with perf script's text, the output with an *.expect file.
. "$(dirname "$0")/../../lib.sh"

perf script -i "$DATA/sched.data" --ns -F comm,tid,cpu,time,event,trace 2>/dev/null >"$TMP/script"
# A run lasts from the switch to a task until the next switch on its CPU, which must be from that task.
awk '{ cpu = $3; gsub(/[][]/, "", cpu); time = $4; sub(":", "", time); split(time, t, ".")
		ns = t[1] * 1000000000 + t[2] }
	/sched_switch:/ { match($0, /prev_pid=[0-9]+/); prev = substr($0, RSTART + 9, RLENGTH - 9)
		match($0, /next_pid=[0-9]+/); nxt = substr($0, RSTART + 9, RLENGTH - 9)
		if (cpu in since && prev != 0 && runs[cpu] == prev) sum[cpu + 0 " " prev] += ns - since[cpu]
		since[cpu] = ns; runs[cpu] = nxt; last = ns }
	/sched_wakeup:/ { last = ns }
	END { for (cpu in since) if (runs[cpu] != 0 && last > since[cpu]) sum[cpu + 0 " " runs[cpu]] += last - since[cpu]
		for (key in sum) print key, sum[key] }' "$TMP/script" | sort >"$TMP/want"
"$PROFSCRIPT" oncpu --input "$DATA/sched.data" -i 100s --format csv | awk -F, 'NR > 1 { print $3, $4, $6 }' |
	sort >"$TMP/got"
check 'oncpu: the sums of perf script' diff "$TMP/want" "$TMP/got"
expect_output oncpu sched oncpu -i 100s --detail
