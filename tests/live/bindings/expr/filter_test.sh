#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only
# Filters and expressions on this kernel that are hard because of their size.
. "$(dirname "$0")/../../../lib.sh"
needs_tracepoint sched:sched_process_exec syscalls:sys_enter_getppid
cd "$TMP" || exit 1

# A list of processes that exceeds the kernel's limit for filters.
workload syscalls 1000
ids=common_pid==$WORKLOAD
for ((i = 3; i < 2400; i += 7)); do ids+="||common_pid==$((4194303 - i))"; done
start exec -e "syscalls:sys_enter_getppid/$ids/" 'count()' -N 1000
go
wait $tracer
expect_line "a filter of ${#ids} characters" '^ *1000$' out

# A payload of some hundred bytes.
deep=$(printf 'd%.0s' {1..200})/$(printf 'e%.0s' {1..200})
mkdir -p "$deep"
cp /bin/true "$deep/true"
"$PROFSCRIPT" trace -e 'sched:sched_process_exec/filename ~ "*eee/true" && pid*1>0/' -- "$deep/true" >out 2>&1
expect_line 'an expression on a long payload' "filename=$deep/true pid=" out
"$PROFSCRIPT" exec -e sched:sched_process_exec 'print(#ev.filename)' -- "$deep/true" >out 2>&1
expect_line 'every byte is read' "^$((${#deep} + 5))\$" out
