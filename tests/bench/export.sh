#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only
# export.sh: prints a line for each format and kind of event: name, ns of CPU time (user and system) that exporting
# a recording to /dev/null adds per event, the goal of 150 ns, and the ratio; and the whole cost of a conversion
# to a file with the goal of 1000 ns. Needs root and perf.
#
# BENCH_LOOPS: loops of the pipe benchmark, each about eight events (300000).
set -u
cd "$(dirname "$0")/../.." || exit 1
. tests/bench/lib.sh
trap 'rm -rf "$tmp"' EXIT
[ -w /dev/shm ] && rm -rf "$tmp" && tmp=$(mktemp -d /dev/shm/export.XXXXXX)

# cpu ARG...: sets $ns to the least ns of CPU time of profscript in three runs
cpu() {
	local TIMEFORMAT='%U %S' i
	ns=
	for i in 1 2 3; do
		{ time $profscript "$@" >/dev/null 2>"$tmp/err"; } 2>"$tmp/time" || return
		ns=$(awk -v least="${ns:-1e18}" '{ t = ($1 + $2) * 1e9; printf "%.0f", t < least ? t : least }' "$tmp/time")
	done
}

# exports NAME EVENT...
exports() {
	local name=$1 n idle
	shift
	perf record -q --synth no -a -m 4096 -k CLOCK_MONOTONIC -o "$tmp/perf.data" "${@/#/-e}" -- \
		perf bench sched pipe -l "$loops" >/dev/null 2>"$tmp/err" || { fail "$name"; return; }
	cpu export "$tmp/perf.data" -o folded:/dev/null || { fail "$name"; return; } # there are no stacks
	idle=$ns
	for format in perfetto chrome; do
		cpu export "$tmp/perf.data" -o $format:/dev/null || { fail "$name"; continue; }
		n=$(sed -n 's/.*exported \([0-9]*\) events.*/\1/p' "$tmp/err")
		row "${format}_$name" "$(per_event $((ns - idle)) "$n")" 150
		cpu export "$tmp/perf.data" -o "$format:$tmp/file" || { fail "$name"; continue; }
		row "${format}_file" "$(per_event "$ns" "$n")" 1000
	done
}

exports syscalls raw_syscalls:sys_enter raw_syscalls:sys_exit
exports sched sched:sched_switch sched:sched_wakeup
exit $failed
