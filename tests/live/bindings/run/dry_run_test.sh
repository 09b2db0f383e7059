#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only
# --dry-run: the events that would be opened, and the part of a filter that the kernel evaluates.
. "$(dirname "$0")/../../../lib.sh"
needs_tracepoint raw_syscalls:sys_enter

"$PROFSCRIPT" trace -e 'raw_syscalls:sys_enter/id==1 && id+1>1/' --dry-run -C 0 >"$TMP/out"
check 'a dry run succeeds' test $? -eq 0
expect_line 'a dry run' '^    filter in the kernel: \(id==1\) && \(common_pid != [0-9]+ \|\| common_flags & 24\)$' "$TMP/out"
expect_line 'a dry run' '^    filter in (profscript|the program): id\+1>1$' "$TMP/out"
if grep -q 'captured by a BPF program' "$TMP/out"; then
	check 'a program that captures checks the filter' grep -q '^    filter in the program: ' "$TMP/out"
fi
"$PROFSCRIPT" trace -e 'raw_syscalls:sys_enter/id==1 && id+1>1/' --dry-run -C 0 --capture perf >"$TMP/out"
expect_line 'perf events: profscript checks it' '^    filter in profscript: id\+1>1$' "$TMP/out"
expect_line 'a dry run' '^target: CPUs 0$' "$TMP/out"
