#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only
# What an event costs when BPF programs capture it, and through perf. Prints a line for each load: ns of CPU that an
# event adds to the traced task, and ns that the reader takes, with perf and with BPF, and their ratios. All are the
# lowest of several rounds, in turn with rounds without a tracer. Needs root, perf and two CPUs; the load is on CPU 0,
# the reader on CPU 1.
#
#   tight   getppid in a loop: raw_syscalls:sys_enter and sys_exit
#   pipe    perf bench sched pipe, the same events
#   switch  the same, sched:sched_switch and sched:sched_wakeup
#
# BENCH_ROUNDS: rounds (5). BENCH_LOOPS: loops of the pipe benchmark (300000).
cd "$(dirname "$0")/../.." || exit 1
. tests/bench/lib.sh
trap 'rm -rf "$tmp"' EXIT
rounds=${BENCH_ROUNDS:-5}

load() {
	case $1 in
	tight) taskset -c 0 build/workloads/syscalls $((loops * 5)) ;;
	*) taskset -c 0 perf bench sched pipe -l "$loops" >/dev/null ;;
	esac
}

# cpu LOAD: ns of CPU that it takes
cpu() {
	local TIMEFORMAT='%U %S'
	{ time load "$1" 2>/dev/null; } 2>&1 | awk '{ printf "%d", ($1 + $2) * 1e9 }'
}

# traced HOW LOAD EVENT...: sets $load_ns, $reader_ns and $n
traced() {
	local how=$1 load=$2 before pid
	shift 2
	taskset -c 1 $profscript tests/tools/seen.lua "${@/#/-e}" --capture "$how" -m 2048 -v >"$tmp/out" 2>"$tmp/err" &
	pid=$!
	until grep -q poll /proc/$pid/wchan 2>/dev/null; do sleep 0.05; done
	load "$load" # the reader's code is compiled
	before=$(process_cpu $pid)
	load_ns=$(cpu "$load")
	sleep 0.2
	reader_ns=$(($(process_cpu $pid) - before))
	kill -INT $pid
	wait $pid
	n=$(($(events) / 2)) # of two equal loads
	grep -q ' 0 lost' "$tmp/err" || echo "$load, $how: events were lost" >&2
}

lowest() { sort -n "$1" | head -n 1; }

echo 'load        task: perf      bpf   ratio   reader: perf     bpf   ratio   (ns per event)'
for name in ${@:-tight pipe switch}; do
	case $name in
	switch) list=(sched:sched_switch sched:sched_wakeup) ;;
	*) list=(raw_syscalls:sys_enter raw_syscalls:sys_exit) ;;
	esac
	rm -f "$tmp"/*.ns
	for ((i = 0; i < rounds; i++)); do
		cpu $name >>"$tmp/none.ns"
		echo >>"$tmp/none.ns"
		for how in perf bpf; do
			traced $how $name "${list[@]}"
			echo "$load_ns $n" >>"$tmp/$how.task.ns"
			awk -v cpu="$reader_ns" -v n="$n" 'BEGIN { print cpu / n }' >>"$tmp/$how.reader.ns"
		done
	done
	none=$(lowest "$tmp/none.ns")
	for how in perf bpf; do
		awk -v none="$none" '{ print ($1 - none) / $2 }' "$tmp/$how.task.ns" >"$tmp/$how.added.ns"
	done
	awk -v name=$name -v perf="$(lowest "$tmp/perf.added.ns")" -v bpf="$(lowest "$tmp/bpf.added.ns")" \
		-v reader="$(lowest "$tmp/perf.reader.ns")" -v ours="$(lowest "$tmp/bpf.reader.ns")" 'BEGIN {
		printf "%-12s %9.0f %8.0f %7.2f %14.1f %7.1f %7.2f\n", name, perf, bpf, bpf / perf, reader, ours, ours / reader }'
done
