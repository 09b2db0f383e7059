#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only
# What an event costs when BPF programs find the pairs, and through perf. The columns are those of tests/bench/tally.sh.
#
# BENCH_ROUNDS: rounds (5). BENCH_LOOPS: loops of the pipe benchmark (300000).
cd "$(dirname "$0")/../.." || exit 1
. tests/bench/lib.sh
trap 'rm -rf "$tmp"' EXIT
rounds=${BENCH_ROUNDS:-5}

calls=(-e raw_syscalls:sys_enter -e raw_syscalls:sys_exit)
echo 'command     task: perf      bpf   ratio   reader: perf     bpf   ratio   (ns per event)'
paths 'by CPU' tight multi-trace "${calls[@]}"
paths 'by thread' tight multi-trace "${calls[@]}" -k common_pid
paths 'perins' tight multi-trace "${calls[@]}" -k common_pid --perins
paths '--than 1ms' tight multi-trace "${calls[@]}" -k common_pid --than 1ms
paths '--detail' tight multi-trace "${calls[@]}" -k common_pid --than 100s --detail
paths captured tight multi-trace "${calls[@]}" -k common_pid --than 1ms --heatmap "$tmp/map.svg"
paths syscalls tight syscalls
paths 'perins' tight syscalls --perins
paths 'syscalls --than' tight syscalls --than 1ms
paths 'a source' tight trace -e "multi-trace/${calls[*]} -k common_pid --than 1ms/"
paths 'wakeup' pipe multi-trace -e sched:sched_wakeup//key=pid/ -e sched:sched_switch//key=next_pid/
paths rundelay pipe rundelay
paths 'rundelay --than' pipe rundelay --than 1ms
paths 'rundelay: source' pipe trace -e 'rundelay/--than 1ms/'
paths '... --detail' pipe rundelay --than 100s --detail
paths '-p --than' pipe rundelay -p $$ --than 1ms
