#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only
# -p of profilers that need the switches of all CPUs: the kernel leaves out events about other tasks, and only those. So
# does a BPF program that adds up the times of the targets, where events are not wanted.
# Everything that a process starts runs on CPU 0, before other tasks: some kernels do not report the switches of idle
# tasks on other CPUs, and of tasks that watch the machine.
# Runs alone.
. "$(dirname "$0")/../../../lib.sh"
needs_tracepoint sched:sched_switch sched:sched_wakeup sched:sched_wakeup_new
"$PROFSCRIPT" --check | grep -q '^ok  BPF filters' || skip_all "$("$PROFSCRIPT" --check | grep '^--  BPF filters')"
workloads=$TOP/build/workloads

cp "$(command -v bash)" "$TMP/family$$"

first=()
chrt -f 1 true 2>/dev/null && first=(chrt -f 1)

# family COMMAND: a shell that runs COMMAND at `go` and then waits
family() {
	rm -f "$TMP/go"
	mkfifo "$TMP/go"
	"${first[@]}" taskset -c 0 "$TMP/family$$" -c "read -r; $1; echo >'$TMP/done'; read -r" <"$TMP/go" &
	FAMILY=$!
	rm -f "$TMP/done"
	watch_tasks "family$$" threads forker
	exec {family_go}>"$TMP/go"
	wait_for 20 grep -q "family$$" "/proc/$FAMILY/comm"
}

# traced NAME ARGS...: starts a tracer that writes to $TMP/NAME
traced() {
	"$PROFSCRIPT" "${@:2}" -m 4096 -v >"$TMP/$1" 2>"$TMP/$1.err" &
	tracers+=($!)
	wait_ready $!
}

# at_once COMMAND TRACER...: traces the family, by all switches of the machine and by those of the family
at_once() {
	tracers=()
	family "$1"
	traced all exec --format csv -e sched:sched_switch 'count(ev.prev_pid)'
	traced ours "${@:2}" -p "$FAMILY" --format csv
	"${during[@]}" &
	echo >&"$family_go"
	wait_for 60 test -s "$TMP/done"
	wait $!
	kill -INT "${tracers[@]}"
	wait "${tracers[@]}"
	exec {family_go}>&-
	wait "$FAMILY"
}

# agree NAME N: N tasks were started, and each was switched out as often as $TMP/ours reports
agree() {
	all_reported "$1: $2 tasks" "$TMP/all.err" "$TMP/ours.err" || return
	awk -F, -v family="$FAMILY" -v want="$2" '
		FNR == 1 { file++; for (i = 1; i <= NF; i++) at[$i] = i; next }
		file == 1 { out[$(NF - 1)] = $NF }
		file == 2 && !("state" in at) { calls[$at["tid"]] += $at["runs"] }
		file == 2 && "state" in at && $at["state"] == "R" { calls[$at["thread"]] += $at["calls"] }
		END {
			for (tid in calls) {
				if (tid == family) continue
				n++
				if (calls[tid] != out[tid]) print tid ": " calls[tid] ", not " out[tid]
			}
			if (n != want) print n " tasks, not " want
		}' "$TMP/all" "$TMP/ours" >"$TMP/differ"
	cat "$TMP/ours.err" >>"$TMP/ours"
	check "$1: $2 tasks" test ! -s "$TMP/differ"
	[ ! -s "$TMP/differ" ] || head -n 30 "$TMP/differ" "$TMP/ours" | sed 's/^/# /'
}

# few NAME: fewer than the switches of the others arrived
few() {
	local n
	n=$(sed -n 's/^profscript: \([0-9]*\) events.*/\1/p' "$TMP/ours.err")
	echo "# $n events" >>"$TMP/ours"
	check "$1: events of others do not arrive" test "${n:-1000000}" -lt 50000
}

during=(taskset -c 1 "$workloads/yields" -c 1 100000)
[ "$(nproc)" -gt 1 ] || during=("$workloads/yields" 100000)
at_once "$workloads/threads 20" task-state --perins --capture perf
agree 'task-state: threads and a child' 42
few 'task-state: threads and a child'
at_once "$workloads/forker 300" task-state --perins --capture perf
agree 'task-state: children' 301
few 'task-state: children'
at_once "$workloads/threads 20" oncpu -i 100s --capture perf
agree 'oncpu: threads and a child' 42
few 'oncpu: threads and a child'
for args in 'task-state --perins' 'oncpu -i 100s'; do
	# shellcheck disable=SC2086 # words
	at_once "$workloads/threads 20" $args
	agree "$args, without events: threads and a child" 42
done

# The same without BPF, which printing the events prevents.
at_once "$workloads/threads 20" task-state --perins --than 1h --capture perf
agree 'task-state, all events' 42
check 'task-state, all events: events of others arrive' test \
	"$(sed -n 's/^profscript: \([0-9]*\) events.*/\1/p' "$TMP/ours.err")" -gt 100000

# A named thread does not include others; the children of a process can be left out.
during=(true)
for how in perf auto; do
	at_once "$workloads/forker 20" task-state --perins --no-inherit --capture $how
	agree "task-state --no-inherit, $how" 0
done
"$PROFSCRIPT" task-state --dry-run -p $$ --capture perf >"$TMP/out"
expect_line '--dry-run shows it' 'dropped in the kernel: events of other threads, by a BPF program$' "$TMP/out"

# Stacks are those of the switches.
"$PROFSCRIPT" task-state --flame-graph "$TMP/flame" -- taskset -c 0 "$workloads/states" sleep 50 2>"$TMP/err"
expect_line 'stacks' '^states;.*nanosleep;.*schedule' "$TMP/flame.folded"

# The programs fill in the common bytes as perf does.
"$PROFSCRIPT" trace --capture perf -m 4096 -e sched:sched_switch >"$TMP/perf" 2>&1 &
tracers=($!)
wait_ready $!
"$PROFSCRIPT" task-state -vv -- taskset -c 0 "$workloads/states" sleep 50 >"$TMP/out" 2>&1
kill -INT "${tracers[@]}"
wait "${tracers[@]}"
flags='s/.* \(.....\) \[[0-9]*\].* sched:sched_switch: .*/\1/p'
sed -n "$flags" "$TMP/perf" | sort -u >"$TMP/wanted"
sed -n "$flags" "$TMP/out" | sort -u >"$TMP/printed"
expect_line 'flags: the programs run' 'dropped in the kernel: events of other threads' "$TMP/out"
check 'flags are printed' test -s "$TMP/printed"
comm -13 "$TMP/wanted" "$TMP/printed" >"$TMP/others"
check 'flags are those of perf' test ! -s "$TMP/others"
