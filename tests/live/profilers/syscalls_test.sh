#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only
# syscalls: calls of a known number, length and result. Its system calls of i386 are told to all who trace system calls.
# Runs alone.
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

# System calls of i386: 64 is getppid there, and semget on x86-64.
numbers=$TOP/build/workloads/numbers
if "$numbers" 1 2>/dev/null &&
	"$PROFSCRIPT" trace -e raw_syscalls:sys_enter -N 1 --capture bpf -- true >/dev/null 2>"$TMP/err"; then
	"$PROFSCRIPT" syscalls -- "$numbers" 50 >"$TMP/out" 2>"$TMP/err"
	expect_line 'calls of i386 have a row' '^i386:getppid\(64\) +50 ' "$TMP/out"
	expect_line 'and are no others' '^semget\(64\) +100 ' "$TMP/out"
	"$PROFSCRIPT" syscalls --than 1ns -- "$numbers" 5 >"$TMP/out" 2>"$TMP/err"
	check 'details have their name' test "$(grep -c 'sys_enter: NR [0-9]* i386:getppid' "$TMP/out")" -eq 5
	"$PROFSCRIPT" exec -e raw_syscalls:sys_exit/id==64/ 'count(ev._comm)' -- "$numbers" 50 >"$TMP/out" 2>"$TMP/err"
	expect_line 'a filter by number takes the calls of x86-64' '^numbers +100$' "$TMP/out"
	"$PROFSCRIPT" sql -e raw_syscalls:sys_enter --query 'SELECT syscall(id), count(*) FROM sys_enter GROUP BY 1' \
		-- "$numbers" 50 >"$TMP/out" 2>"$TMP/err"
	expect_line 'SQL has their name' '^i386:getppid +50$' "$TMP/out"
	"$PROFSCRIPT" syscalls --capture perf -- "$numbers" 50 >"$TMP/out" 2>"$TMP/err"
	expect_line 'perf does not know, and a line says so' ': [0-9]+ system calls of i386, in any task, happened' "$TMP/err"
	"$PROFSCRIPT" syscalls --capture perf -- true >"$TMP/out" 2>"$TMP/err"
	check 'but not without such calls' test "$(grep -c i386 "$TMP/err")" -eq 0
else
	skip 'calls of i386' 'programs cannot take system calls here, or the kernel runs no 32-bit programs'
fi
