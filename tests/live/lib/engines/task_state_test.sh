#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only
# task-state --than: BPF programs add up the states, and send those that took too long with the events around them, as
# perf would have reported them.
# Runs on an idle machine.
. "$(dirname "$0")/../../../lib.sh"
needs_tracepoint sched:sched_switch sched:sched_wakeup sched:sched_wakeup_new
"$PROFSCRIPT" task-state --than 1s --dry-run >"$TMP/out" 2>"$TMP/err" || skip_all "$(<"$TMP/err")"
grep -q 'states over 1000 ms are sent' "$TMP/out" ||
	skip_all "$("$PROFSCRIPT" task-state --than 1s --dry-run -v 2>&1 | grep 'read through perf')"

# CPU 0 is never idle, so the kernel hides no event of it.
taskset -c 0 sh -c 'while :; do :; done' &

# ready: the workload waits, in a function that tells so
ready() {
	workload -C 0 states "$@"
	wait_for 20 grep -q pipe "/proc/$WORKLOAD/wchan"
}

# waits FILE: the waits in the CSV and the events around them, without times
waits() {
	awk -F, -v OFS=, '
		$1 == "table" { exit }
		$1 == "event" { next }
		$1 == "task-state" { $2 = $6 = ""; print; next }
		{ $2 = $7 = ""; print }' "$1"
}

# than FILE: how many of those waits the table counts
than() {
	awk -F, '
		$1 == "table" { for (i = 1; i <= NF; i++) at[$i] = i; next }
		at["than"] && $1 == "task-state" && $at["state"] != "R" { n += $at["than"] }
		END { print n + 0 }' "$1"
}

# agrees NAME LEAST ARG...: perf and the program, which run at the same time, print the same waits of the workload; so many
# with both events
agrees() {
	local name=$1 least=$2 peer
	shift 2
	"$PROFSCRIPT" task-state "$@" --capture perf -m 4096 --csv >"$TMP/perf" 2>"$TMP/perf.err" &
	peer=$!
	wait_ready $peer
	start task-state "$@" --capture bpf -m 4096 --csv -v
	watch_tasks states
	sleep 0.05 # what began before lasts longer than T for both
	go
	taskset -c 0 true # the program has left the CPU for the last time
	kill -INT $peer 2>/dev/null
	wait $peer
	stop
	check "$name: in the kernel" grep -q 'added up in the kernel, by a BPF program; states over' "$TMP/err"
	all_reported "$name" "$TMP/perf.err" "$TMP/err" || return
	waits "$TMP/perf" >"$TMP/want"
	waits "$TMP/out" >"$TMP/got"
	check "$name" diff "$TMP/want" "$TMP/got"
	awk -F, -v least="$least" '$1 == "task-state" { n += lines == 2; lines = 0; next } { lines++ }
		END { exit !(n + (lines == 2) >= least) }' "$TMP/got"
	result $? "$name: with both events" "$TMP/got"
	check "$name: all that are counted" test "$(grep -c '^task-state' "$TMP/got")" = "$(than "$TMP/out")"
}

some=(run 5 sleep 10 vfork 10 thread 5 fork 5 sleep 1 run 5)
ready "${some[@]}"
agrees 'a process' 10 -p "$WORKLOAD" --than 0ns
ready "${some[@]}"
agrees 'a process, --perins' 2 -p "$WORKLOAD" --than 5ms --perins
ready "${some[@]}"
agrees 'a thread' 3 -t "$WORKLOAD" --than 1us
ready "${some[@]}"
agrees 'sleep' 2 -p "$WORKLOAD" -S --than 1us
ready "${some[@]}"
agrees 'uninterruptible sleep' 1 -p "$WORKLOAD" -D --than 1us
ready "${some[@]}"
agrees 'all but sleep' 4 -p "$WORKLOAD" --no-interruptible --than 1us

# --- only those over the threshold ----------------------------------------------------------------

# Short sleeps, and two long ones in different states.
ready sleep 1 sleep 1 sleep 1 sleep 1 sleep 300 sleep 1 sleep 1 vfork 300 sleep 1
trace_workload task-state -p "$WORKLOAD" --than 200ms --csv
waits "$TMP/out" >"$TMP/got"
for state in S D; do
	check "long, in $state" test "$(grep -c "^task-state,,$WORKLOAD,states,$state,\$" "$TMP/got")" -ge 1
done
check 'all that are counted, no others' test "$(grep -c '^task-state' "$TMP/got")" = "$(than "$TMP/out")"
awk -F, '$1 == "task-state" && $6 ~ /^[0-9]+$/ && NF == 6 && $6 <= 200e6' "$TMP/out" >"$TMP/short"
check 'none is short' diff /dev/null "$TMP/short"

# --- states that have not ended -------------------------------------------------------------------

ready run 1 sleep 300000
tracers=()
for how in perf auto; do
	"$PROFSCRIPT" task-state -p "$WORKLOAD" --than 50ms --csv --capture $how >"$TMP/$how" 2>"$TMP/$how.err" &
	tracers+=($!)
	wait_ready $!
done
echo >&"$workload_go"
wait_for 20 grep -q nanosleep "/proc/$WORKLOAD/wchan"
sleep 0.2
kill -INT "${tracers[@]}"
wait "${tracers[@]}"
kill "$WORKLOAD"
for how in perf auto; do
	waits "$TMP/$how" | tail -n 2 >"$TMP/$how.last"
done
check 'a state that lasts: who' grep -qx "task-state,,$WORKLOAD,states,S," "$TMP/auto.last"
check 'a state that lasts: its start' grep -q '^sched:sched_switch,.*states' "$TMP/auto.last"
check 'a state that lasts, through perf' diff "$TMP/perf.last" "$TMP/auto.last"

# --- losses ---------------------------------------------------------------------------------------

start task-state --than 0ns -m 4 --csv -v
"$TOP/build/workloads/pingpong" -c 0 20000
stop
seen=$(waits "$TMP/out" | grep -c '^task-state')
lost=$(sed -n 's/^profscript: [0-9]* events, \([0-9]*\) lost.*/\1/p' "$TMP/err")
check "$seen sent, $lost lost" test $((seen + lost)) -eq "$(than "$TMP/out")" -a "$lost" -gt 0 -a "$seen" -gt 0
total=$(awk -F, '$1 == "table" { for (i = 1; i <= NF; i++) at[$i] = i; next } at["calls"] { n += $at["calls"] } END { print n }' \
	"$TMP/out")
check 'losses do not change the sums' test "$total" -ge 100000
