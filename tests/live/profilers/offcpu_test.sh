#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only
# offcpu: two threads that wake each other a known number of times, and a program that timers wake.
# Runs alone.
. "$(dirname "$0")/../../lib.sh"
needs_tracepoint sched:sched_switch sched:sched_waking sched:sched_wakeup_new
count=200

# waits_of ARG... -- COMMAND...: runs offcpu as CSV. Everything is on CPU 0, whose switches this kernel reports while it
# is busy.
waits_of() {
	watch_tasks pi?g po?g pingpong states
	taskset -c 0 "$PROFSCRIPT" offcpu -m 2048 --csv --top 1000 "$@" >"$TMP/out" 2>"$TMP/err"
	end_watch
}

# woken NAME TASK WAKER COUNT: the task slept so often until the waker woke it
woken() {
	all_reported "$1" || return
	check "$1" test "$(awk -F, -v task="$2" -v by="$3" '$3 == task && $4 == "S" && $5 == by { n += $6 } END { print n + 0 }' \
		"$TMP/out")" -eq "$4"
}

waits_of -- "$TOP/build/workloads/pingpong" -c 0 $count
woken 'each sleep of ping' ping pong $count
woken 'each sleep of pong' pong ping $count
check 'stacks have no frames of the program that writes samples' test "$(grep -c 'futex_wait' "$TMP/out")" -gt 0 -a \
	"$(grep -c 'bpf_trace_run' "$TMP/out")" -eq 0
waits_of --depth 3 -- "$TOP/build/workloads/pingpong" -c 0 $count
woken 'the waker of the waker, and its own one' ping 'pong < ping < pong' $((count - 1))
waits_of -- "$TOP/build/workloads/states" sleep 30 sleep 20
woken 'timers' states '[timer]' 2
if all_reported 'how long the timers took'; then
	rows 'how long the timers took' 'c["task"] == "states" && c["woken_by"] == "[timer]" && c["total_ns"] >= 49e6 && c["max_ns"] >= 29e6'
fi

# Sums of a program in the kernel, and of its events.
for way in auto perf; do
	waits_of --depth 0 --capture $way --no-user-callchain -- "$TOP/build/workloads/pingpong" -c 0 $count
	woken "--depth 0, --capture $way: each sleep of ping" ping '' $count
	woken "--depth 0, --capture $way: each sleep of pong" pong '' $count
	grep -E '^([^,]*,){2}(ping|pong),S,' "$TMP/out" | grep -o ' __schedule+.*' | sort -u >"$TMP/stacks.$way"
done
check 'the stacks in the kernel are the same' diff "$TMP/stacks.perf" "$TMP/stacks.auto"
expect_line 'the waits are futexes' futex_wait "$TMP/stacks.auto"
"$PROFSCRIPT" offcpu --dry-run --depth 0 >"$TMP/out" 2>&1
expect_line 'only sums: in the kernel' 'added up in the kernel' "$TMP/out"
"$PROFSCRIPT" explain offcpu >"$TMP/out" 2>&1
expect_line 'explain: why not with wakers' 'who woke a task is asked for' "$TMP/out"
waits_of --depth 0 --than 1h -- "$TOP/build/workloads/pingpong" -c 0 $count
check '--than in the kernel' test "$(wc -l <"$TMP/out")" -le 1

# Stacks by unwind tables, most of them remembered: none lacks a caller. The process is there before the run.
if [ "$(uname -m)" = x86_64 ]; then
	workload pingpong -c 0 $count
	start offcpu --depth 0 --csv --top 1000 -p "$WORKLOAD"
	go
	wait $tracer
	check 'the stacks of programs are whole' awk -F, '$3 == "pong" && $4 == "S" && !/when the run began/ {
		all += $6; whole += / syscall\+[^;]*;[^;]* play_pong\+[^;]*;[^;]* start_thread\+[^;]*;[^;]* (__)?clone3\+[^;]*,/ ? $6 : 0 }
		END { exit !(all >= 100 && whole == all) }' "$TMP/out"
fi

# A task that sleeps before the run begins.
"$TOP/build/workloads/states" sleep 60000 &
asleep=$!
until grep -q '^State:.S' /proc/$asleep/status; do :; done
for way in auto perf; do
	"$PROFSCRIPT" offcpu --depth 0 --capture $way --csv -p $asleep --duration 0.2 >"$TMP/out" 2>"$TMP/err"
	expect_line "--capture $way: off CPU when the run began" '^[^,]*,[^,]*,states,S,,1,[0-9]+,[0-9]+,.off CPU when the run began' "$TMP/out"
done
kill $asleep

# Both stacks: the function that waits and the one that wakes.
"$PROFSCRIPT" offcpu -m 2048 --flame-graph "$TMP/off.svg" -- "$TOP/build/workloads/pingpong" -c 0 $count \
	>"$TMP/out" 2>"$TMP/err"
for frame in '__schedule' '--' 'try_to_wake_up' 'ping' 'pong'; do
	expect_line "flame graph: $frame" "<title>$frame \(" "$TMP/off.svg"
done
