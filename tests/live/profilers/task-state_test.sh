#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only
# task-state: a program with known states, threads that already exist, and frozen ones. A state lasts at least as long
# as the program asks for, minus the time from the call to the switch (1 ms here). How much longer depends on the
# machine, so the events of the run itself show it.
# Runs on an idle machine.
. "$(dirname "$0")/../../lib.sh"
needs_tracepoint sched:sched_switch sched:sched_wakeup sched:sched_wakeup_new
states=$TOP/build/workloads/states
ms=1000000
# Everything is on CPU 0, including what starts the program: some kernels do not report the switches of idle tasks on
# others. Real-time priorities keep other tasks from running in between. The program's pid is in $TMP/main.
on=(taskset -c 0) soon=()
chrt -f 1 true 2>/dev/null && on+=(chrt -f 1) soon=(-r 2)

# states_of ARG... -- VERB...: runs task-state as CSV
states_of() {
	local args=()
	while [ "$1" != -- ]; do
		args+=("$1")
		shift
	done
	watch_tasks states
	# shellcheck disable=SC2016 # sh expands it
	"${on[@]}" "$PROFSCRIPT" task-state -m 4096 "${soon[@]}" --format csv "${args[@]}" -- \
		sh -c 'echo $$ >"$0"; exec "$@"' "$TMP/main" "$states" "${@:2}" >"$TMP/out" 2>"$TMP/err"
	main=$(<"$TMP/main")
	end_watch
}

# at_least NAME STATE MS: the program was in this state for at least MS
at_least() {
	all_reported "$1" && rows "$1" "c[\"thread\"] == $main && c[\"state\"] == \"$2\" && c[\"total_ns\"] >= ($3 - 1) * $ms"
}
# Events are read with --capture perf; else a BPF program adds up the times.
for how in perf auto; do
	began=${EPOCHREALTIME/./}
	states_of --perins --capture $how -- run 200 sleep 100 vfork 50 thread 50
	took=$((${EPOCHREALTIME/./} - began))
	at_least "$how: R" R 200
	at_least "$how: S, and the wait for a thread" S 149
	at_least "$how: D" D 50
	sum=$(awk -F, -v main="$main" '$3 == main { sum += $7 } END { print int(sum / 1000) }' "$TMP/out")
	check "$how: not more than the run took: $sum of $took us" test "$sum" -le "$took"
	rows "$how: a new thread" "c[\"thread\"] != $main && c[\"state\"] == \"S\" && c[\"calls\"] == 1 && c[\"total_ns\"] >= 49 * $ms"
	states_of -D --perins --capture $how -- vfork 60
	at_least "$how: -D" D 60
	check "$how: -D: nothing else" bash -c "! grep -v '^table\|,D,' '$TMP/out'"
done
states_of --filter 'stat*' -S -- sleep 70
rows '--filter -S' "c[\"state\"] == \"S\" && c[\"max_ns\"] >= 69 * $ms"

# For each wait --than prints its length and the events at its start and end. The table has their sums.
for how in perf auto; do
	states_of --perins --than 1ns --capture $how -- sleep 70 vfork 30 thread 10
	awk -F, '
		function ns(time) { split(time, t, "."); return t[1] * 1e9 + substr(t[2] "000000000", 1, 9) }
		$1 == "table" { for (i = 1; i <= NF; i++) at[$i] = i; next }
		$1 == "event" { next }
		$1 == "task-state" && NF == 6 { # the record of a wait: its end, who, which state, how long
			waits++
			key = $3 " " $5
			sum[key] += $6
			want = $6
			ended = $2
			lines = 0
			next
		}
		$1 ~ /^sched:/ {
			if (++lines == 1)
				from = ns($7)
			else if (ns($7) - from != want || $2 != ended)
				print "a wait of " want " ns between " from " and " ns($7)
			next
		}
		$1 == "task-state" && $at["state"] != "R" { total[$at["thread"] " " $at["state"]] = $at["total_ns"] }
		END {
			for (key in total) if (total[key] != sum[key]) print key ": " total[key] " in the table, " sum[key] " in waits"
			for (key in sum) if (!(key in total)) print key ": not in the table"
			if (waits < 6) print waits + 0 " waits"
		}' "$TMP/out" >"$TMP/differ"
	check "$how: --than: each wait lies between its events; the table adds them up" diff /dev/null "$TMP/differ"
done
# A loop keeps the CPU from being idle when the sleep ends.
taskset -c 0 bash -c 'while :; do :; done' &
busy=$!
long=("${on[@]}" "$PROFSCRIPT" task-state -m 4096 "${soon[@]}" -S --than 60ms --filter states)
"${long[@]}" -- "$states" sleep 70 >"$TMP/out" 2>"$TMP/err"
expect_line '--than: who' 'task-state: [0-9]+ states WAIT [0-9]{2,}\.[0-9]{3} ms' "$TMP/out"
expect_line '--than: from' 'sched_switch: prev_comm=states .* prev_state=S' "$TMP/out"
expect_line '--than: to' 'sched_wakeup: comm=states ' "$TMP/out"
began=$(date +%s)
"${long[@]}" --format json -- "$states" sleep 70 >"$TMP/out" 2>"$TMP/err"
check '--than: when' test "$(sed -n 's/^{"event":"task-state","time":\([0-9]*\).*/\1/p' "$TMP/out" | head -n 1)" -ge "$began"
kill $busy

# Some kernels do not report the wakeups in the context of an idle CPU, 1 here. A sleep whose end is not known is not
# counted until the end of the run, which comes up to 100 ms after that of the program.
for _ in 1 2 3; do
	csv task-state -S "${soon[@]}" -- "$states" pin 1 sleep 20 sleep 5 sleep 20 sleep 5 sleep 20 sleep 5
	tail -n 1 "$TMP/out" | awk -F, '$3 == "S" && $10 > 60e6' >>"$TMP/invented"
done
check 'no sleep ends after its program' diff /dev/null "$TMP/invented"

# The states of a thread that already exists fill the time of the run.
"$states" sleep 300000 &
sleeper=$!
csv task-state -p $sleeper --filter nosuch --duration 0.1
check '--filter and -p: not another name' test ! -s "$TMP/out"
csv task-state -p $sleeper --filter 'st?tes' --duration 0.1
rows '--filter and -p: this name' "c[\"state\"] == \"S\" && c[\"total_ns\"] == 100 * $ms"
for how in perf auto; do
	csv task-state -t $sleeper --duration 0.3 --capture $how
	rows "$how: -t: a sleep longer than the run" "c[\"state\"] == \"S\" && c[\"total_ns\"] == 300 * $ms"
	csv task-state -t $sleeper --no-interruptible --duration 0.1 --capture $how
	check "$how: --no-interruptible: no such sleep" test ! -s "$TMP/out"
done
kill $sleeper
for how in perf auto; do
	[ $how = perf ] || kill $busy
	# shellcheck disable=SC2046 # words
	"${on[@]}" "$states" $(printf 'run 50 sleep 20 %.0s' {1..2000}) &
	busy=$!
	watch_tasks states
	csv task-state -m 4096 "${soon[@]}" -p $busy --duration 0.7 --perins --capture $how
	total total_ns >"$TMP/sum"
	all_reported "$how: -p: the whole time" && expect_line "$how: -p: the whole time" "^$((700 * ms))\$" "$TMP/sum"
done
# Its end ends the run.
start task-state -p $busy
kill $busy
check '-p: its end ends the run' wait_for 20 bash -c "! kill -0 $tracer"

# A task that is frozen in its cgroup is in D; before and after it runs.
freezer=$(awk '$3 == "cgroup" && $4 ~ /(^|,)freezer(,|$)/ { print $2; exit }' /proc/mounts)/profscript-test-$$
if mkdir "$freezer" 2>/dev/null; then
	taskset -c 0 "$states" run 200000 &
	frozen=$!
	echo $frozen >"$freezer/cgroup.procs"
	start task-state -m 1024 -p $frozen --perins --format csv
	sleep 0.2
	echo FROZEN >"$freezer/freezer.state"
	check 'the kernel has frozen it' wait_for 20 grep -q FROZEN "$freezer/freezer.state"
	sleep 0.3
	echo THAWED >"$freezer/freezer.state"
	sleep 0.2
	kill $frozen
	wait $tracer
	rows 'frozen is D' "c[\"thread\"] == $frozen && c[\"state\"] == \"D\" && c[\"calls\"] == 1 && c[\"total_ns\"] >= 300 * $ms"
	rows 'before and after it runs' "c[\"thread\"] == $frozen && c[\"state\"] == \"R\" && c[\"total_ns\"] > 0"
	wait_for 20 rmdir "$freezer"
else
	skip 'frozen is D' 'the freezer of cgroup v1 (that of v2 leaves tasks in S)'
fi
# A BPF program adds up the times, and events are read with --capture perf: both at the same time, also if one prints a
# table for each interval. The program waits in pipe_read until both are ready. CPU 0 is never idle, so the kernel hides
# no event of it. Nobody else has the program's name.
taskset -c 0 sh -c 'while :; do :; done' &
hog=$!
cp "$states" "$TMP/both$$"
# calls FILE: by thread and state, of the program
calls() {
	awk -F, -v comm="both$$" '
		FNR == 1 { for (i = 1; i <= NF; i++) at[$i] = i; next }
		$at["comm"] == comm { calls[$at["thread"] " " $at["state"]] += $at["calls"] }
		END { for (key in calls) print key, calls[key] }' "$1" | sort
}
for args in '' -S '-S -D' --no-interruptible '-p MAIN' '-p MAIN --no-inherit' '-t MAIN' '-p MAIN -S'; do
	rm -f "$TMP/go"
	mkfifo "$TMP/go"
	"${on[@]}" "$TMP/both$$" -w run 30 sleep 10 vfork 10 thread 5 fork 5 sleep 1 run 5 <"$TMP/go" &
	main=$!
	exec {go}>"$TMP/go"
	wait_for 20 grep -q pipe /proc/$main/wchan
	args=${args/MAIN/$main}
	# shellcheck disable=SC2086 # words
	"$PROFSCRIPT" task-state --perins $args -m 4096 --capture perf -i 100s --csv >"$TMP/events" 2>"$TMP/peer.err" &
	peer=$!
	wait_ready $peer
	watch_tasks "both$$"
	# shellcheck disable=SC2086
	start task-state --perins $args --capture bpf -i 100 --csv
	echo >&"$go"
	exec {go}>&-
	wait $main
	taskset -c 0 true # the program has left the CPU for the last time
	kill -INT $peer 2>/dev/null # -p has ended with the program
	wait $peer
	stop
	calls "$TMP/events" >"$TMP/want"
	calls "$TMP/out" >"$TMP/got"
	args=${args/$main/MAIN}
	all_reported "both ways: $args" "$TMP/peer.err" "$TMP/err" && check "both ways: $args" diff "$TMP/want" "$TMP/got"
	case $args in --no*) state=D least=1 ;; *) state=S least=3 ;; esac
	awk -v main=$main -v state=$state -v least=$least '$1 == main && $2 == state && $3 >= least { found = 1 }
		END { exit !found }' "$TMP/got"
	result $? "both ways: $args: sleeps of the program" "$TMP/got"
done
kill $hog
start task-state --csv -i 100s
"$TOP/build/workloads/pingpong" -c 0 1000
stop
for state in R S RD; do rows 'by state' "c[\"state\"] == \"$state\" && c[\"calls\"] >= 1000"; done
check_status 'a thousand reports' 0 "$PROFSCRIPT" task-state -i 2 --duration 2 -o "$TMP/out"
# in_kernel: the events of the dry run that BPF programs add up
in_kernel() { grep -c '^  sched:sched_.* added up in the kernel, by a BPF program$' "$TMP/out"; }
for args in '' "-p $$" '-C 0' -S '--perins'; do
	# shellcheck disable=SC2086
	"$PROFSCRIPT" task-state $args --dry-run >"$TMP/out"
	check "'$args' does not need the events" test "$(in_kernel)" = 3
done
for args in '--capture perf' '--than 1s -g' -g '--filter x' '-N 5' "-t $$ -g" "--record $TMP/data" "--export $TMP/t.json" \
	"--flame-graph $TMP/t.svg"; do
	# shellcheck disable=SC2086
	"$PROFSCRIPT" task-state $args --dry-run >"$TMP/out" 2>&1
	expect_line "$args needs the events" '^task-state: [45] events' "$TMP/out"
	check "$args needs the events: none is added up" test "$(in_kernel)" = 0
done
if setpriv --bounding-set -bpf,-sys_admin true 2>/dev/null; then
	setpriv --bounding-set -bpf,-sys_admin "$PROFSCRIPT" task-state -v --duration 0.1 >"$TMP/out" 2>"$TMP/err"
	expect_line 'without BPF' '^task-state: events are read through perf: ' "$TMP/err"
	expect_line 'without BPF' '^task-state: 4 events' "$TMP/err"
else
	skip 'without BPF' 'setpriv cannot drop capabilities'
fi

ends_on_ctrl_c task-state
refused '--filter without a name' 2 'task-state: --filter requires task names' task-state --filter ,
refused '--filter with a quote' 2 "task-state: 'a\"b': task names with quotes" task-state --filter 'a"b'
