#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only
# The words after the workload belong to it, and so does standard input.
. "$(dirname "$0")/../../../lib.sh"
needs_tracepoint syscalls:sys_enter_getppid
event=syscalls:sys_enter_getppid
cd "$TMP" || exit 1

expect_line 'words after a workload' '^-N 1 -o hi$' <("$PROFSCRIPT" exec -e $event 'count()' echo -N 1 -o hi)
expect_line 'with -- too' '^-N 1 -o hi$' <("$PROFSCRIPT" exec -e $event 'count()' -- echo -N 1 -o hi)
PATH=/no/a:/no/b:/no/c:$PATH "$PROFSCRIPT" exec -e syscalls:sys_exit_execve 'count(ev.ret)' --format csv -- true >out 2>&1
expect_line 'finding the program is not part of it' '^1 ' <(grep -c '^count(ev.ret),' out | tr '\n' ' ')
expect_line 'executing it is' '^count\(ev.ret\),[0-9.]+,0,1$' out
"$PROFSCRIPT" exec -e $event 'count()' < <(sleep 60) >out 2>&1 &
tracer=$!
wait_ready $tracer
flags=$(awk '/^flags/ { print $2 }' /proc/$tracer/fdinfo/0)
check "standard input still blocks ($flags)" test $((8#$flags & 8#4000)) -eq 0
stop
