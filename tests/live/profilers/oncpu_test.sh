#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only
# oncpu: programs that use a known CPU time, and CPUs that are never idle.
. "$(dirname "$0")/../../lib.sh"
needs_tracepoint sched:sched_switch
states=$TOP/build/workloads/states
ms=1000000

# Everything is on CPU 0, including what starts the program; real-time priorities keep other tasks from running in
# between. A task has a CPU for at least the CPU time that it uses; the two clocks may differ by a millisecond.
on=(taskset -c 0) soon=()
chrt -f 1 true 2>/dev/null && on+=(chrt -f 1) soon=(-r 2)
"${on[@]}" "$PROFSCRIPT" oncpu -m 4096 "${soon[@]}" -i 100s --format csv -- "$states" run 300 sleep 100 >"$TMP/out" 2>"$TMP/err"
all_reported 'the time' &&
	rows 'the time' "c[\"comm\"] == \"states\" && c[\"cpu\"] == 0 && c[\"runtime_ns\"] >= 299 * $ms"
check 'on no other CPU' test "$(column cpu | sort -u)" = 0

# After the first interval it is known what each CPU runs: if it is never idle, tasks and losses add up to the time from
# then on. Losses after the last switch that was seen are not reported.
# covered NAME: from the first table to the last but one with switches, by the times of the tables
covered() {
	if grep -q 'did not report' "$TMP/err"; then
		skip "$1" "$(grep 'did not report' "$TMP/err")"
		return
	fi
	awk -F, -v hidden="$(sed -n 's/^oncpu: \([0-9]*\) ms of CPU time are unknown due to lost events$/\1/p' "$TMP/err")" '
		NR == 1 { for (i = 1; i <= NF; i++) at[$i] = i; next }
		{
			known += $at["runtime_ns"] / 1e6
			if (!first) first = $at["time"]
			if ($at["time"] != now) { before = now; now = $at["time"] }
			if ($at["runs"] > 0) last = before
		}
		END {
			print known " ms known, " hidden + 0 " ms hidden, of at least " (last - first) * 1e3 " ms"
			exit !(last > first && known + hidden >= (last - first) * 1e3 - 1 && known + hidden <= 1001)
		}' "$TMP/out" >"$TMP/sum"
	result $? "$1" "$TMP/sum"
}
"${on[@]}" "$TOP/build/workloads/pingpong" -c 0 1000000000 &
busy=$!
for pages in 4096 1; do
	csv oncpu -m $pages "${soon[@]}" -C 0 -i 100 --duration 1
	covered "-C 0 -m $pages: what is known and what losses hide"
	rows "-C 0 -m $pages: who has the CPU" "c[\"tid\"] == $busy && c[\"runtime_ns\"] > 0"
done
kill $busy
expect_line 'some time is hidden' '^oncpu: [1-9][0-9]* ms of CPU time are unknown due to lost events$' "$TMP/err"

"$states" pin 0 run 200000 &
hog=$!
csv oncpu -m 4096 -p $hog --duration 0.5
check '-p: a thread' test "$(column tid | sort -u)" = $hog
"$PROFSCRIPT" oncpu -m 4096 -p $hog -i 100s --duration 0.5 --detail >"$TMP/out" 2>"$TMP/err"
expect_line '-p: its line' "^ *$hog states +[0-9]+ms/[0-9]+ +0\\([0-9.]+ms/[0-9]+/[0-9.]+ms\\)\$" "$TMP/out"
kill $hog

# Priority 92 is that of chrt -f 7; the program has it from its start.
if chrt -f 7 true 2>/dev/null; then
	for prio in 100-139 92; do
		workload states pin 0 run 50
		chrt -f -p 7 "$WORKLOAD"
		trace_workload oncpu -m 4096 --prio $prio -i 100s --format csv -p $WORKLOAD
		[ $prio = 92 ] || check '--prio: no other priorities' test ! -s "$TMP/out"
	done
	all_reported '--prio: real-time tasks' &&
		rows '--prio: real-time tasks' "c[\"comm\"] == \"states\" && c[\"runtime_ns\"] >= 49 * $ms"
else
	skip '--prio' 'chrt -f, real-time scheduling'
fi
check_status '--prio: an invalid list' 2 "$PROFSCRIPT" oncpu --prio 7-3
ends_on_ctrl_c oncpu
refused 'an open range of priorities' 2 "oncpu: --prio: invalid priority list '5-'" oncpu --prio 5-
