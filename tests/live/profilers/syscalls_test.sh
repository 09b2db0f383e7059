#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only
# syscalls: calls of a known number, length and result.
. "$(dirname "$0")/../../lib.sh"
needs_tracepoint raw_syscalls:sys_enter raw_syscalls:sys_exit
program=$TOP/build/workloads/relations

"$PROFSCRIPT" syscalls --perins --than 90ms --format json -- "$program" 1 >"$TMP/out"
expect_line 'the nap' '"syscall":"clock_nanosleep".*"calls":1,"total_ns":[1-9][0-9]{8,},.*"err":0,"than":1' "$TMP/out"
expect_line 'the end of the task ends exit_group' '"syscall":"exit_group".*"calls":1,' "$TMP/out"
workload syscalls 5000
trace_workload syscalls -m 1024 -p $WORKLOAD --format json
expect_line 'exactly 5000 calls' '"syscall":"getppid","nr":[0-9]+,"calls":5000,.*"err":0' "$TMP/out"
"$PROFSCRIPT" syscalls --format json -- "$program" 28 >"$TMP/out"
expect_line 'seven that fail' '"syscall":"setns".*"calls":7,.*"err":7' "$TMP/out"
