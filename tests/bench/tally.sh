#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only
# What an event costs when BPF programs count it, and through perf. Prints a line for each command: ns of CPU that an
# event adds to the traced task, and ns that the reader takes, with perf and with BPF, and their ratios. All are the
# lowest of several rounds, in turn with rounds without a tracer. Needs root, perf and two CPUs; the load is on CPU 0,
# the reader on CPU 1.
#
# BENCH_ROUNDS: rounds (5). BENCH_LOOPS: loops of the pipe benchmark (300000).
cd "$(dirname "$0")/../.." || exit 1
. tests/bench/lib.sh
trap 'rm -rf "$tmp"' EXIT
rounds=${BENCH_ROUNDS:-5}

calls=raw_syscalls:sys_enter,raw_syscalls:sys_exit
switches=sched:sched_wakeup//key=pid/comm=comm/,sched:sched_switch//key=prev_pid/comm=prev_comm/
echo 'command     task: perf      bpf   ratio   reader: perf     bpf   ratio   (ns per event)'
paths 'count()' tight exec -e $calls 'count()'
paths 'count(id)' tight exec -e $calls 'count(ev.id)'
paths 'count(comm)' tight exec -e $calls 'count(ev._comm)'
paths 'hist(id)' tight exec -e $calls 'hist(ev.id)'
paths 'hist(id,cpu)' tight exec -e $calls 'hist(ev.id, ev._cpu)'
paths num-dist tight num-dist -e raw_syscalls:sys_enter//num=id/,raw_syscalls:sys_exit//num=ret/
paths 'top -k id' tight top -e $calls -k id -i 1000
paths 'top switch' pipe top -e $switches -i 1000
paths task-state pipe task-state
paths 'perins' pipe task-state --perins
paths '--than 1ms' pipe task-state --than 1ms
