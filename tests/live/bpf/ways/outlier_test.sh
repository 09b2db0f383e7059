#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only
# Pairs that took too long: BPF programs find all pairs, and send these with both events, as perf would have.
# Runs on an idle machine.
. "$(dirname "$0")/../../../lib.sh"
needs_tracepoint raw_syscalls:sys_enter raw_syscalls:sys_exit sched:sched_switch sched:sched_wakeup

calls=(-e raw_syscalls:sys_enter -e raw_syscalls:sys_exit)
why=$("$PROFSCRIPT" multi-trace "${calls[@]}" --capture=bpf --than 1s --duration 0.01 2>&1 >/dev/null) || skip_all "$why"
SLEEP=230 # clock_nanosleep

# --- the same events ------------------------------------------------------------------------------

# agrees NAME ARG...: perf and BPF programs, which run at the same time, find the same pairs of the workload
agrees() {
	local name=$1 peer
	shift
	"$PROFSCRIPT" multi-trace "$@" --capture perf -m 4096 --format json >"$TMP/perf" 2>"$TMP/perf.err" &
	peer=$!
	wait_ready $peer
	start multi-trace "$@" --capture bpf -m 4096 --format json -v
	go
	kill -INT $peer
	wait $peer
	stop
	sed -Ei 's/"(time|clock)":[0-9.]*,?//g; /"table"/s/("calls":[0-9]*).*/\1/' "$TMP/perf" "$TMP/out"
	check "$name" diff "$TMP/perf" "$TMP/out"
	check "$name: there are some" test "$(wc -l <"$TMP/out")" -gt 300
	check "$name: in the kernel" grep -q 'paired in the kernel, by a BPF program; those over 0 ns are sent' "$TMP/err"
}

workload syscalls 2000
agrees 'by thread' "${calls[@]}" -p "$WORKLOAD" --than 0ns
workload -C 0 states signal 50 fork 50
agrees 'by a field that is a thread' "${calls[@]}" -p "$WORKLOAD" -k common_pid --than 0ns
workload -C 0 states signal 50 fork 50
agrees 'by any key' "${calls[@]}" -p "$WORKLOAD" -k common_pid+0 --than 0ns
workload -C 0 states signal 50 fork 50
agrees 'a cycle' "${calls[@]}" -p "$WORKLOAD" --cycle --than 0ns

# --- only those over the threshold ----------------------------------------------------------------

# pairs_of NR: how many pairs of this system call are in the CSV in $TMP/out, each one with its first event just before
# the second, on the same thread, and at least 10 ms earlier
pairs_of() {
	awk -F, -v nr="$1" '
		/^event,/ { split("", at); for (i = 1; i <= NF; i++) at[$i] = i }
		/sys_enter,/ && !/^(event|table|latency),/ { tid = $at["tid"]; id = $at["id"]; clock = $at["clock"] }
		/sys_exit,/ && !/^(event|table|latency),/ && $at["id"] == nr {
			n += $at["tid"] == tid && id == nr && $at["clock"] - clock >= 0.01
		}
		END { print n + 0 }' "$TMP/out"
}

# sum COLUMN: of the tables in the CSV in $TMP/out
sum() {
	awk -F, -v name="$1" '/^table,/ { for (i = 1; i <= NF; i++) if ($i == name) at = i } /^latency,/ { n += $at } END { print n + 0 }' \
		"$TMP/out"
}

only=(-e "raw_syscalls:sys_enter/id == $GETPPID || id == $SLEEP/" -e "raw_syscalls:sys_exit/id == $GETPPID || id == $SLEEP/")
load="for i in 1 2 3 4 5 6 7 8 9 10; do $TOP/build/workloads/syscalls 500; sleep 0.01; done"

# outliers NAME ARG...: of 5000 short calls and 10 that sleep, those that sleep are sent. On a busy machine, short ones
# may take long, too.
outliers() {
	local name=$1
	shift
	"$PROFSCRIPT" multi-trace "${only[@]}" --capture bpf --than 5ms --csv "$@" -- bash -c "$load" >"$TMP/out" 2>"$TMP/err"
	check "$name: those that sleep" test "$(pairs_of $SLEEP)" = 10
	check "$name: all that are counted, no others" test "$(grep -c '^raw_syscalls:sys_exit,' "$TMP/out")" = "$(sum than)"
	check "$name: which are few" test "$(sum than)" -lt 200
	check "$name: all calls are counted" test "$(sum calls)" -ge 5010
}

outliers 'by thread' -k common_pid
outliers 'by any key' -k common_pid+0
outliers '--perins' -k common_pid --perins
outliers '--lower' -k common_pid --lower 1ns

# Two keys that have the same place by hash: a sleep of each, at the same time.
keys=()
for i in 1 2; do
	mkfifo "$TMP/go.$i"
	bash -c "read -r _ <'$TMP/go.$i'; exec sleep 0.3" &
	keys[i]=$!
done
key="common_pid == ${keys[1]} ? 2 : common_pid == ${keys[2]} ? 46370 : common_pid + 100000"
start multi-trace -e "raw_syscalls:sys_enter/id == $SLEEP/" -e "raw_syscalls:sys_exit/id == $SLEEP/" -k "$key" \
	--capture bpf --than 250ms --csv
for i in 1 2; do echo >"$TMP/go.$i"; done
wait "${keys[@]}"
stop
for i in 1 2; do
	check "keys with one place: $i" test "$(grep -c "^raw_syscalls:sys_.*,${keys[i]},${keys[i]},sleep," "$TMP/out")" = 2
done

# --- losses ---------------------------------------------------------------------------------------

workload syscalls 100000
ours="id == $GETPPID && common_pid == $WORKLOAD"
trace_workload multi-trace -e "raw_syscalls:sys_enter/$ours/" -e "raw_syscalls:sys_exit/$ours/" --capture bpf -m 4 \
	--than 0ns --csv -v
seen=$(grep -c '^raw_syscalls:sys_exit,' "$TMP/out")
lost=$(sed -n 's/^profscript: [0-9]* events, \([0-9]*\) lost.*/\1/p' "$TMP/err")
check "$seen sent, $lost lost" test $((seen + lost)) -eq 100000 -a "$lost" -gt 0 -a "$seen" -gt 0
check 'losses do not change the sums' test "$(sum calls),$(sum than)" = 100000,100000

# --- what is not possible -------------------------------------------------------------------------

# not_sent WHY ARG...: the events are not paired in the kernel
not_sent() {
	local why=$1
	shift
	"$PROFSCRIPT" multi-trace "$@" --dry-run -v >"$TMP/out" 2>&1
	check "not sent: $why" test "$(grep -c 'paired in the kernel' "$TMP/out")" = 0
	expect_line "not sent: $why: the reason" "$why" "$TMP/out"
}
not_sent 'captured one by one: the script looks at each pair' "${calls[@]}" --than 1ms --heatmap "$TMP/map"
# A task may wake up itself, with or without interrupts. That starts no pair, but may end one.
not_sent 'the common_flags of sched:sched_wakeup may be read' -e sched:sched_wakeup//key=pid/ \
	-e sched:sched_switch//key=next_pid/ --than 1ms --cycle
