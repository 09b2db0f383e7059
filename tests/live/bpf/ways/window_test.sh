#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only
# Details of outliers that BPF programs find: the kernel keeps the newest events, and those around an outlier are read
# when it has come. They are those that perf would have reported.
# Runs on an idle machine.
. "$(dirname "$0")/../../../lib.sh"
needs_tracepoint raw_syscalls:sys_enter raw_syscalls:sys_exit sched:sched_switch

calls=(-e raw_syscalls:sys_enter -e raw_syscalls:sys_exit,sched:sched_switch//untraced/)
why=$("$PROFSCRIPT" multi-trace "${calls[@]}" --capture=bpf --than 1s --detail --duration 0.01 2>&1 >/dev/null) ||
	skip_all "$why"
SLEEP=230 # clock_nanosleep
cp "$(command -v sleep)" "$TMP/nap"

# with_both PROFILER ARG...: runs it through perf and through BPF programs while the command `load` runs
with_both() {
	local peer
	"$PROFSCRIPT" "$@" --capture perf -m 4096 --format json >"$TMP/perf" 2>"$TMP/perf.err" &
	peer=$!
	wait_ready $peer
	start "$@" --capture bpf --format json -v
	load
	kill -INT $peer
	wait $peer
	stop
	sed -Ei 's/"(time|clock|offset_ns|run_ns)":[-0-9.]*,?//g; /"table"/s/("calls":[0-9]*).*/\1/' "$TMP/perf" "$TMP/out"
}

# agrees NAME LINES: both have printed the same, and at least so many lines
agrees() {
	check "$1" diff "$TMP/perf" "$TMP/out"
	check "$1: there are some" test "$(wc -l <"$TMP/out")" -ge "$2"
	check "$1: in the kernel" grep -q 'kept: the newest [0-9]* KiB of each CPU, for details' "$TMP/err"
	check "$1: nothing is missing" test "$(grep -c missing "$TMP/err")" = 0
}

# --- the same events ------------------------------------------------------------------------------

load() { go; }
workload -C 0 states sleep 5 signal 30 fork 10 sleep 5
with_both multi-trace "${calls[@]}" -p "$WORKLOAD" --than 0ns --detail
agrees 'between' 200
workload -C 0 states sleep 5 signal 30 fork 10 sleep 5
with_both multi-trace "${calls[@]}" -p "$WORKLOAD" -k common_pid --cycle --than 0ns --detail=samekey
agrees 'a cycle, with the same key' 200
# The whole run is before and after each call.
workload syscalls 50
with_both multi-trace "${calls[@]}" -p "$WORKLOAD" -k common_pid --than 0ns --detail=sametid,-100s,+100s
agrees 'before and after' 5000

# Some kernels report nothing through perf while the idle task of a CPU is current. So no CPU is idle.
busy=()
for _ in $(seq "$(nproc)"); do
	nice -n 19 bash -c 'while :; do :; done' &
	busy+=($!)
done

# Three naps: the second one is within the first, and the third one begins in it and ends later.
load() {
	local first second
	"$TMP/nap" 0.8 &
	first=$!
	sleep 0.2
	"$TMP/nap" 0.2 &
	second=$!
	sleep 0.1
	"$TMP/nap" 0.8
	wait $first $second
}
naps=(-e "raw_syscalls:sys_enter/id == $SLEEP && comm == \"nap\"/"
	-e "raw_syscalls:sys_exit/id == $SLEEP && comm == \"nap\"/,sched:sched_switch/prev_comm == \"nap\" || next_comm == \"nap\"/untraced/")
watch_tasks nap
with_both multi-trace "${naps[@]}" -k common_pid --than 150ms --detail=-1ms,+1ms
# A task that ends is EXIT_ZOMBIE until its parent has reaped it, then EXIT_DEAD: one of the two may see it later.
sed -i 's/"prev_state":16,/"prev_state":32,/' "$TMP/perf" "$TMP/out"
all_reported 'overlapping' && agrees 'overlapping' 15
kill "${busy[@]}"
check 'overlapping: three naps' test "$(grep -c '"part":"first"' "$TMP/out")" = 3

# Without keys, on one CPU: all of its events, also those of others.
load() { go; }
workload -C 0 syscalls 200
ours="common_pid == $WORKLOAD"
with_both multi-trace -e "raw_syscalls:sys_enter/$ours/" -e "raw_syscalls:sys_exit/$ours/" -C 0 --than 0ns --detail=samecpu,-100s
agrees 'by CPU' 400

# The waits of two tasks on one CPU. Lines of text show wakeups with their flags.
workload pingpong -c 0 200
trace_workload rundelay -p "$WORKLOAD" --than 0ns --detail=sametid,-10ms --capture bpf -v
expect_line 'waits for a CPU: in the kernel' 'kept: the newest [0-9]* KiB of each CPU, for details' "$TMP/err"
check 'waits for a CPU: both events of each' awk '
	/^[0-9-]+ [0-9:.]+ .*(sched_wakeup(_new)?|sched_switch): / { if (n++ % 2 && !/next_comm=p[io]ng/) bad = 1 }
	END { exit bad || n < 400 || n % 2 }' "$TMP/out"
expect_line 'waits for a CPU: wakeups before' '^\| sametid-1 .* p[io]ng +[0-9]+ [d?][^ ]* \[000\] .*sched_wakeup: comm=p[io]ng ' "$TMP/out"

# --- longer than the rings ------------------------------------------------------------------------

# A nap during 20000 calls, of which rings of 16 KiB hold less than 200.
workload -C 0 syscalls 20000
start multi-trace -e "raw_syscalls:sys_enter/id == $SLEEP && comm == \"nap\"/" -e "raw_syscalls:sys_exit/id == $SLEEP && comm == \"nap\"/,raw_syscalls:sys_enter/id == $GETPPID && common_pid == $WORKLOAD/untraced/" \
	-k common_pid --capture bpf -m 4 --than 1s --detail
"$TMP/nap" 2 &
nap=$!
wait_for 20 grep -q nanosleep "/proc/$nap/wchan"
go
wait $nap
stop
sed -n "s/.*sys_enter: NR $GETPPID (\([0-9a-f]*\),.*/\1/p" "$TMP/out" >"$TMP/numbers"
expect_line 'too long: it is marked' '^\| events are missing here: there were too many to keep$' "$TMP/out"
expect_line 'too long: the remedy' 'events are missing from 1 details, which need more than the newest 16 KiB of a CPU; use larger rings \(-m 8\)' "$TMP/err"
check 'too long: the newest events' awk '
	{ n = 0; for (i = 1; i <= length($1); i++) n = n * 16 + index("0123456789abcdef", substr($1, i, 1)) - 1
	  if (NR > 1 && n != last + 1) bad = 1; last = n }
	END { exit bad || NR < 50 || NR > 200 || last != 19999 }' "$TMP/numbers"

# --- what is not possible -------------------------------------------------------------------------

# not_kept WHY ARG...: the events are not kept in the kernel
not_kept() {
	local why=$1
	shift
	"$PROFSCRIPT" multi-trace "$@" --than 1ms --detail --dry-run -v >"$TMP/out" 2>&1
	check "not kept: $why" test "$(grep -c 'in the kernel, by a BPF program' "$TMP/out")" = 0
	expect_line "not kept: $why: the reason" "$why" "$TMP/out"
}
not_kept 'sys_enter is recorded with the stack' "${calls[@]}" -g
not_kept 'details are printed' "${calls[@]}" --heatmap "$TMP/map"
not_kept 'the common_flags of sched:sched_wakeup may be read' -e sched:sched_wakeup//key=pid/ \
	-e 'sched:sched_switch//key=next_pid/,sched:sched_wakeup/common_flags > 0/untraced/'
not_kept 'programs do not know the arguments of' -e raw_syscalls:sys_enter \
	-e raw_syscalls:sys_exit,sched:sched_process_fork//untraced/
