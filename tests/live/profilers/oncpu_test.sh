#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only
# oncpu: programs that use a known time of a CPU, and CPUs that are never idle.
# Runs on an idle machine.
. "$(dirname "$0")/../../lib.sh"
needs_tracepoint sched:sched_switch
states=$TOP/build/workloads/states
ms=1000000

# Everything is on CPU 0, also what starts the program; real-time priorities keep other tasks from getting between. A
# task has a CPU for at least the CPU time it uses; the two clocks may differ by a millisecond.
on=(taskset -c 0) soon=()
chrt -f 1 true 2>/dev/null && on+=(chrt -f 1) soon=(-r 2)
watch_tasks states
"${on[@]}" "$PROFSCRIPT" oncpu -m 4096 "${soon[@]}" -i 100s --format csv -- "$states" run 300 sleep 100 >"$TMP/out" 2>"$TMP/err"
all_reported 'the time' &&
	rows 'the time' "c[\"comm\"] == \"states\" && c[\"cpu\"] == 0 && c[\"runtime_ns\"] >= 299 * $ms"
check 'on no other CPU' test "$(column cpu | sort -u)" = 0

# After the first interval it is known what a CPU does: where it is never idle, tasks and what losses hide add up to
# the time from then on. What is hidden after the last switch that was seen is not told.
# covered NAME: from the first table to the one before the last that has switches, by the times of the tables
covered() {
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
each='-N 1000000000' # reads each switch, where else a BPF program adds up the times
for args in '' "$each -m 4096" "$each -m 1"; do
	# shellcheck disable=SC2086 # words
	csv oncpu $args "${soon[@]}" -C 0 -i 100 --duration 1
	covered "-C 0 $args: what is known and what losses hide"
	rows "-C 0 $args: who has the CPU" "c[\"tid\"] == $busy && c[\"runtime_ns\"] > 0"
	check "-C 0 $args: no other CPU" test "$(column cpu | sort -u)" = 0
done
kill $busy
expect_line 'some is hidden' '^oncpu: [1-9][0-9]* ms of CPU time are unknown due to lost events$' "$TMP/err"

"$states" pin 0 run 200000 &
hog=$!
csv oncpu -m 4096 -p $hog --duration 0.5
check '-p: a thread' test "$(column tid | sort -u)" = $hog
"$PROFSCRIPT" oncpu -m 4096 -p $hog -i 100s --duration 0.5 --detail >"$TMP/out" 2>"$TMP/err"
expect_line '-p: its line' "^ *$hog states +[0-9]+ms/[0-9]+ +0\\([0-9.]+ms/[0-9]+/[0-9.]+ms\\)\$" "$TMP/out"
kill $hog

# Priority 92 is that of chrt -f 7; the program has it from its start.
if chrt -f 7 true 2>/dev/null; then
	for where in -p ''; do
		for prio in 100-139 92; do
			workload states pin 0 run 50
			chrt -f -p 7 "$WORKLOAD"
			watch_tasks states
			# shellcheck disable=SC2086
			trace_workload oncpu -m 4096 --prio $prio -i 100s --format csv ${where:+$where $WORKLOAD}
			[ $prio = 92 ] || check "$where --prio: not of other priorities" test "$(column tid | grep -cx $WORKLOAD)" = 0
		done
		all_reported "$where --prio: of real time" &&
			rows "$where --prio: of real time" "c[\"tid\"] == $WORKLOAD && c[\"runtime_ns\"] >= 49 * $ms"
	done
else
	skip '--prio' 'chrt -f, real-time scheduling'
fi
# Both ways at the same time: what a task runs, and how often. It ends with the last run, and nobody else has its name.
cp "$states" "$TMP/both$$"
for args in '' --only-comm '-p MAIN' '-t MAIN'; do
	rm -f "$TMP/go"
	mkfifo "$TMP/go"
	"${on[@]}" "$TMP/both$$" -w run 100 sleep 20 run 100 <"$TMP/go" &
	main=$!
	exec {go}>"$TMP/go"
	wait_for 20 grep -q pipe /proc/$main/wchan
	for way in "$each" ''; do
		# shellcheck disable=SC2086
		"$PROFSCRIPT" oncpu ${args/MAIN/$main} $way -m 4096 -i 100s --csv >"$TMP/way${way:+s}" 2>"$TMP/err${way:+s}" &
		pids=(${pids[0]-} $!)
	done
	wait_ready "${pids[0]}"
	wait_ready "${pids[1]}"
	watch_tasks "both$$"
	echo >&"$go"
	exec {go}>&-
	wait $main
	taskset -c 0 true # the program has left the CPU for the last time
	kill -INT "${pids[@]}" 2>/dev/null # -p has ended with the program
	wait "${pids[@]}"
	pids=()
	all_reported "both ways: $args" "$TMP/err" "$TMP/errs" || continue
	# Before taskset the task may run on other CPUs.
	awk -F, -v comm="both$$" -v least=199e6 '
		FNR == 1 { for (i = 1; i <= NF; i++) at[$i] = i; file++; next }
		$at["comm"] == comm && $at["cpu"] == 0 { ns[file] += $at["runtime_ns"]; runs[file] += $at["runs"]; rows[file]++ }
		END {
			for (i = 1; i <= 2; i++) print ns[i] " ns in " runs[i] " runs, " rows[i] " rows"
			exit !(runs[1] >= 1 && runs[1] == runs[2] && rows[1] == rows[2] && ns[1] - ns[2] < 1e6 &&
				ns[2] - ns[1] < 1e6 && ns[1] >= least + 0)
		}' "$TMP/way" "$TMP/ways" >"$TMP/sum"
	result $? "both ways: $args" "$TMP/sum"
done

"$PROFSCRIPT" oncpu --capture perf --dry-run >"$TMP/out" 2>&1
expect_line '--capture perf' '^oncpu: 2 events$' "$TMP/out"
check_status 'a thousand reports' 0 "$PROFSCRIPT" oncpu -i 2 --duration 2 -o "$TMP/out"
check_status '--prio: no list' 2 "$PROFSCRIPT" oncpu --prio 7-3
ends_on_ctrl_c oncpu
refused 'an open range of priorities' 2 "oncpu: --prio: invalid priority list '5-'" oncpu --prio 5-
