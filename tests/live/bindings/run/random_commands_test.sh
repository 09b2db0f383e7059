#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only
# Random commands: events, filters, keys, sums, pairs, targets. Each runs through perf and through BPF programs while the
# same program runs, and prints what plain Lua computes from perf's samples (tests/tools/random_commands.lua).
# RANDOM_COMMANDS=N runs N times as many, RANDOM_COMMANDS_SEED=N other ones.
# Runs on an idle machine.
. "$(dirname "$0")/../../../lib.sh"
needs_tracepoint raw_syscalls:sys_enter raw_syscalls:sys_exit sched:sched_switch sched:sched_wakeup_new \
	sched:sched_process_fork exceptions:page_fault_user syscalls:sys_exit_clock_nanosleep
seed=${RANDOM_COMMANDS_SEED:-20261123} cases=10 name=rnd$$
cp "$TOP/build/workloads/states" "$TMP/$name"

"$PROFSCRIPT" exec 'count()' -e raw_syscalls:sys_enter --capture bpf --duration 1ms -q >/dev/null 2>"$TMP/err" ||
	skip_all "$(head -n 1 "$TMP/err")"

# sums KEYS VALUES FILE: the sums of these columns of a CSV by these others, "KEYS: VALUES". Tables of intervals add up.
sums() {
	sed 's/^"[^"]*"/table/' "$3" | awk -F, -v keys="$1" -v values="$2" '
		BEGIN { n = split(keys, key, ","); m = split(values, value, ",") }
		# Addresses are hexadecimal.
		function decimal(text,  i, n) {
			if (text !~ /^0x/) return text
			for (i = 3; i <= length(text); i++) n = n * 16 + index("0123456789abcdef", substr(text, i, 1)) - 1
			return sprintf("%.0f", n)
		}
		/^table,time,/ { next }
		{
			at = ""
			for (i = 1; i <= n; i++) at = at (i > 1 ? "," : "") decimal($key[i])
			known[at] = 1
			for (i = 1; i <= m; i++) sum[at, i] += $value[i]
		}
		END {
			for (at in known) {
				line = at ":"
				for (i = 1; i <= m; i++) line = line (i > 1 ? "," : " ") sprintf("%.0f", sum[at, i])
				print line
			}
		}' | sort
}

# ready PID: waits for events, or has ended
# shellcheck disable=SC2317 # wait_for calls it
ready() { [ ! -e "/proc/$1" ] || grep -q poll "/proc/$1/wchan"; }

# commands_of SEED: runs its commands while the program runs
commands_of() {
	local tracers=() model=(--seed "$1" --cases "$cases" --name "$name") number keys values kind rest how args counter all
	rm -f "$TMP/go"
	mkfifo "$TMP/go"
	"$TMP/$name" -w sleep 20 fork 12 signal 30 thread 5 migrate 8 sleep 180 fork 3 <"$TMP/go" &
	WORKLOAD=$!
	exec {workload_go}>"$TMP/go"
	wait_for 20 grep -q pipe "/proc/$WORKLOAD/wchan"
	model+=(--pid "$WORKLOAD")
	"$PROFSCRIPT" "$TOP/tests/tools/random_commands.lua" "${model[@]}" --dry-run | grep '^case ' >"$TMP/cases"
	"$PROFSCRIPT" "$TOP/tests/tools/random_commands.lua" "${model[@]}" --capture perf -m 2048 >"$TMP/model" 2>"$TMP/model.err" &
	tracers+=($!)
	while read -r _ number keys values kind rest; do
		eval "args=($rest)"
		for how in perf bpf; do
			"$PROFSCRIPT" "$kind" "${args[@]}" --capture $how --csv -m 2048 >"$TMP/$number.$how" 2>"$TMP/$number.$how.err" &
			tracers+=($!)
		done
	done <"$TMP/cases"
	perf stat -a -x, -o "$TMP/all" -e raw_syscalls:sys_enter,raw_syscalls:sys_exit,sched:sched_switch,exceptions:page_fault_user &
	counter=$!
	for rest in "${tracers[@]}"; do wait_for 300 ready "$rest" || result 1 "seed $1: a tracer does not begin"; done
	go
	kill -INT "${tracers[@]}" 2>/dev/null
	wait "${tracers[@]}"
	kill -INT $counter
	wait $counter
	all=$(awk -F, '/:/ { n += $1 } END { print n + 0 }' "$TMP/all")
	while read -r _ number keys values kind rest; do
		sed -n "s/^$number //p" "$TMP/model" | sort >"$TMP/wanted"
		for how in perf bpf; do
			# Of the whole machine's events: -m 2048 are 8 MiB, and records have at most 256 bytes.
			if grep -qE ': lost [1-9]' "$TMP/model.err" "$TMP/$number.$how.err" && [ "$all" -gt 32768 ]; then
				skip "seed $1, $how: $kind $rest" "perf stat counts $all events of all tasks, more than each ring holds"
				continue
			fi
			sums "$keys" "$values" "$TMP/$number.$how" >"$TMP/got"
			{
				# The kernel may not write records of all switches and page faults: the sums show whether of these.
				grep -hv " are missing: the kernel counted them" "$TMP/model.err" "$TMP/$number.$how.err"
				diff "$TMP/wanted" "$TMP/got"
			} >"$TMP/differ" 2>&1
			[ ! -s "$TMP/differ" ]
			result $? "seed $1, $how: $kind $rest" "$TMP/differ"
		done
	done <"$TMP/cases"
}

for ((round = 0; round < 4 * ${RANDOM_COMMANDS:-1}; round++)); do commands_of $((seed + round)); done
