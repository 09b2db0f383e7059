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
#   stack   the same, sched:sched_switch with its stack in the kernel
#   target  as tight, with -p
#   call    as tight, but by the events of that system call
#   passed  as tight, but with the events of another one: ns for each that is none of its events
#
# BENCH_ROUNDS: rounds (5). BENCH_LOOPS: loops of the pipe benchmark (300000).
cd "$(dirname "$0")/../.." || exit 1
. tests/bench/lib.sh
trap 'rm -rf "$tmp"' EXIT
rounds=${BENCH_ROUNDS:-5}

echo 'load        task: perf      bpf   ratio   reader: perf     bpf   ratio   (ns per event)'
for name in ${@:-tight pipe switch stack target call passed}; do
	list=(raw_syscalls:sys_enter raw_syscalls:sys_exit) load=$name more=() n_made=
	case $name in
	switch) list=(sched:sched_switch sched:sched_wakeup) ;;
	stack) list=(sched:sched_switch) more=(-g --no-user-callchain) ;;
	target) load=tight more=(-p $$) ;; # the load is a child of this shell
	call) list=(syscalls:sys_enter_getppid syscalls:sys_exit_getppid) load=tight ;;
	passed) list=(syscalls:sys_enter_semget syscalls:sys_exit_semget) load=tight n_made=$((loops * 10)) ;;
	esac
	paths "$name" "$load" tests/tools/seen.lua "${list[@]/#/-e}" "${more[@]}"
done
