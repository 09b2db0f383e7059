#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only
# BPF sample filters: of busy tasks with known policy, priority and neighbors, only those that an option selects are
# sampled.
# Runs alone.
. "$(dirname "$0")/../../../lib.sh"
"$PROFSCRIPT" --check | grep -q '^ok  BPF filters' || skip_all "$("$PROFSCRIPT" --check | grep '^--  BPF filters')"

# spin COMMAND...: starts a task that never sleeps on CPU 0, under this command; its pid is $SPINNER
spin() {
	"$@" taskset -c 0 sh -c 'while :; do :; done' &
	SPINNER=$!
}

# sampled FILE ARGS...: counts the samples of each pid, until the run ends itself, or for $during seconds. The spinners
# have the CPU only when the run is ready: where one thread emulates all CPUs, they would slow down its start.
sampled() {
	local file=$1 spinning tracer i
	shift
	mapfile -t spinning < <(jobs -p)
	kill -STOP "${spinning[@]}"
	"$PROFSCRIPT" exec -e cpu-clock/freq=1000/ 'count(ev._pid)' --duration 20 "$@" >"$file" 2>&1 &
	tracer=$!
	wait_ready $tracer
	# The first one at last: from its first sample on, all compete.
	for ((i = ${#spinning[@]} - 1; i >= 0; i--)); do kill -CONT "${spinning[i]}"; done
	[ -z "${during-}" ] || { sleep "$during" && kill -INT $tracer; }
	wait $tracer
}

# only NAME PID ARGS...: of the spinners only this one is sampled; NONE: none of them
only() {
	local name=$1 pid=$2 until=(-N 20) during=
	shift 2
	[ "$pid" != NONE ] || until=() during=0.2
	sampled "$TMP/only" -p "$spinners" "${until[@]}" "$@" &&
		awk -v pid="$pid" '/^ *[0-9]+ +[0-9]+$/ { n += $2; bad += $1 != pid }
			END { exit bad || n != (pid == "NONE" ? 0 : 20) }' "$TMP/only"
	result $? "$name" "$TMP/only"
}

# refused STATUS REGEX ARGS...
refused() {
	local status=$1 regex=$2 got
	shift 2
	"$PROFSCRIPT" trace "$@" -N 1 >"$TMP/out" 2>&1
	got=$?
	expect_line "refused ($got): $*" "$regex" "$TMP/out"
	[ $got -eq "$status" ] || result 1 "exit status $status" "$TMP/out"
}

spin nice -n 0
plain=$SPINNER
spin nice -n 5
nice=$SPINNER
spin chrt -b 0 nice -n 5
batch=$SPINNER

spinners=$plain,$nice
sampled "$TMP/all" -p "$spinners" -N 500
check 'without a filter both are sampled' [ "$(grep -Ec "^ *($plain|$nice) +[0-9]+" "$TMP/all")" -eq 2 ]
only '--exclude_pid' "$nice" --exclude_pid "$plain"
only '--prio of nice 5' "$nice" --prio 125
only '--prio in a range' "$plain" --prio 0-99,118-121
only '--prio of no task' NONE --prio 0-99,130
only '--sched_policy of no task' NONE --sched_policy 2
only 'two options' "$nice" --sched_policy 0 --exclude_pid "$plain"
spinners=$plain,$batch
only '--sched_policy batch' "$batch" --sched_policy 3
spinners=$plain

# Three tasks that never sleep share the CPU.
only '--nr_running_min: three compete' "$plain" --nr_running_min 3
only '--nr_running_max: more than two do' NONE --nr_running_max 2
only '--nr_running_min: not a thousand' NONE --nr_running_min 1000
only '--nr_running between' "$plain" --nr_running_min 2 --nr_running_max 1000

# User code cannot disable interrupts; the kernel disables them when it switches tasks.
only '--irqs_disabled=0 of user code' "$plain" --irqs_disabled=0 --exclude-kernel
only '--irqs_disabled of user code' NONE --irqs_disabled --exclude-kernel
switches() {
	"$PROFSCRIPT" exec -e context-switches 'count("switches")' -p "$plain" -N 3 --duration "$1" "$2" | grep -c '^switches'
}
check '--irqs_disabled in a switch' [ "$(switches 20 --irqs_disabled)" -eq 1 ]
check '--irqs_disabled=0 in a switch' [ "$(switches 0.2 --irqs_disabled=0)" -eq 0 ]

# The tick finds that another task should run, and the clock's sample follows in the same interrupt.
sampled "$TMP/resched" -p "$plain" --tif_need_resched -N 3
expect_line '--tif_need_resched' "^ *$plain +3\$" "$TMP/resched"
only '--tif_need_resched=0' "$plain" --tif_need_resched=0

{ kill "$nice" "$batch" && wait "$nice" "$batch"; } 2>/dev/null
spin chrt -f 1
spinners=$plain,$SPINNER
only '--sched_policy FIFO' "$SPINNER" --sched_policy 1
only '--prio of a real-time task' "$SPINNER" --prio 98
kill "$SPINNER"

[ -z "${IN_GUEST-}" ] || exit 0 # messages, which are the same on all kernels
refused 2 "^profscript: --prio: invalid priority list '1-' \\(0-99: real-time" -e cpu-clock --prio 1-
refused 2 "^profscript: --prio: invalid priority list '140'" -e cpu-clock --prio 140
refused 2 '^profscript: trace: --irqs-disabled applies to hardware, clock and memory events' -e sched:sched_switch --irqs_disabled
refused 2 '^profscript: trace: --exclude-pid is only for live events$' --input "$TOP/tests/recordings/sched.data" --exclude_pid 1

# A missing part is named, and disables only what needs it.
without() {
	local file=$1
	shift
	unshare -m bash -c 'mount --bind /dev/null "$0" && exec "$@"' "$file" "$PROFSCRIPT" "$@" >"$TMP/out" 2>&1
}
library=$(echo /usr/lib/*/libbpf.so.1)
if unshare -m true 2>/dev/null; then
	without "$library" trace -e cpu-clock --exclude_pid 1 -N 1
	expect_line 'without libbpf' '^profscript: --exclude-pid needs BPF: libbpf.so.1 is not installed' "$TMP/out"
	check 'without libbpf the rest works' without "$library" trace -e cpu-clock -N 1
	without /sys/kernel/btf/vmlinux trace -e cpu-clock --exclude_pid 1 -N 1
	expect_line 'without BTF' '^profscript: --exclude-pid needs BTF: this kernel has no /sys/kernel/btf/vmlinux' "$TMP/out"
else
	skip 'without libbpf' 'no unshare or no mount namespaces'
fi
