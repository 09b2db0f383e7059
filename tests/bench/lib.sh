# SPDX-License-Identifier: GPL-2.0-only
# shellcheck shell=bash disable=SC2034 # used by those that source it
# What the benchmarks share: sourced by tests/bench.sh and tests/bench/perf_prof.sh.

profscript=./profscript
loops=${BENCH_LOOPS:-300000}
tmp=$(mktemp -d)
failed=0
[ -d /sys/kernel/tracing/events ] || mount -t tracefs nodev /sys/kernel/tracing 2>/dev/null

# row NAME OURS PEER
row() {
	awk -v name="$1" -v ours="$2" -v peer="$3" 'BEGIN {
		printf "%-14s %12.1f %12s %8s\n", name, ours,
			peer == "-" ? peer : sprintf("%.1f", peer),
			peer == "-" ? peer : sprintf("%.3f", ours / peer) }'
}

fail() {
	echo "$1: failed: $(tail -n 1 "$tmp/err")" >&2
	failed=1
}

per_event() {
	awk -v cpu="$1" -v n="$2" 'BEGIN { print cpu / n }'
}

# ns of CPU that a process has used: exact where the kernel keeps that, else in ticks
process_cpu() {
	awk '{ ns += $1 } END { printf "%.0f", ns; exit !ns }' "/proc/$1/task/"*/schedstat 2>/dev/null ||
		sed 's/.*) //' "/proc/$1/stat" |
		awk -v hz="$(getconf CLK_TCK)" '{ printf "%.0f", ($12 + $13) * 1e9 / hz }'
}

# The N of the summary that -v puts on stderr: `profscript: N events, N lost, N late`
events() {
	sed -n 's/^profscript: \([0-9]*\) events, .*/\1/p' "$tmp/err" | tail -n 1
}

# load NAME: runs a load on CPU 0: tight is getppid in a loop, any other perf bench sched pipe
load() {
	case $1 in
	tight) taskset -c 0 build/workloads/syscalls $((loops * 5)) ;;
	*) taskset -c 0 perf bench sched pipe -l "$loops" >/dev/null ;;
	esac
}

# cpu LOAD: ns of CPU that it takes
cpu() {
	local TIMEFORMAT='%U %S'
	{ time load "$1" 2>/dev/null; } 2>&1 | awk '{ printf "%.0f", ($1 + $2) * 1e9 }'
}

# traced HOW LOAD COMMAND...: runs a command of profscript on CPU 1; sets $load_ns, $reader_ns and $n
traced() {
	local how=$1 load=$2 before pid
	shift 2
	taskset -c 1 $profscript "$@" --capture "$how" -m 2048 -v >"$tmp/out" 2>"$tmp/err" &
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
	# A profiler's own program counts only what it sends: the events are those of the run through perf, which comes first.
	if [ -n "${n_made-}" ]; then n=$n_made; elif [ "$how" = perf ] || [ $n -gt $((n_before / 2)) ]; then n_before=$n; else n=$n_before; fi
	grep -q ' 0 lost' "$tmp/err" || echo "$load, $how: events were lost" >&2
}

lowest() { sort -g "$1" | head -n 1; }

# paths NAME LOAD COMMAND...: prints the costs of an event with perf and with BPF, the lowest of $rounds rounds
paths() {
	local name=$1 load=$2 how none i
	shift 2
	rm -f "$tmp"/*.ns
	for ((i = 0; i < rounds; i++)); do
		cpu "$load" >>"$tmp/none.ns"
		echo >>"$tmp/none.ns"
		for how in perf bpf; do
			traced $how "$load" "$@"
			echo "$load_ns $n" >>"$tmp/$how.task.ns"
			awk -v cpu="$reader_ns" -v n="$n" 'BEGIN { print cpu / n }' >>"$tmp/$how.reader.ns"
		done
	done
	none=$(lowest "$tmp/none.ns")
	for how in perf bpf; do
		awk -v none="$none" '{ print ($1 - none) / $2 }' "$tmp/$how.task.ns" >"$tmp/$how.added.ns"
	done
	awk -v name="$name" -v perf="$(lowest "$tmp/perf.added.ns")" -v bpf="$(lowest "$tmp/bpf.added.ns")" \
		-v reader="$(lowest "$tmp/perf.reader.ns")" -v ours="$(lowest "$tmp/bpf.reader.ns")" 'BEGIN {
		printf "%-12s %9.0f %8.0f %7.2f %14.1f %7.1f %7.2f\n", name, perf, bpf, bpf / perf, reader, ours, ours / reader }'
}
