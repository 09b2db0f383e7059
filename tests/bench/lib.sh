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
	awk '{ ns += $1 } END { printf "%d", ns; exit !ns }' "/proc/$1/task/"*/schedstat 2>/dev/null ||
		sed 's/.*) //' "/proc/$1/stat" |
		awk -v hz="$(getconf CLK_TCK)" '{ print ($12 + $13) * 1e9 / hz }'
}

# The N of the summary that -v puts on stderr: `profscript: N events, N lost, N late`
events() {
	sed -n 's/^profscript: \([0-9]*\) events, .*/\1/p' "$tmp/err" | tail -n 1
}
