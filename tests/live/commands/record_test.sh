#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only
# `profscript record` writes the events of a command to a file that perf and profscript read.
. "$(dirname "$0")/../../lib.sh"
needs_tracepoint raw_syscalls:sys_enter
cd "$TMP" || exit 1

"$PROFSCRIPT" record -e "raw_syscalls:sys_enter/id==$GETPPID/" -g -o calls.data -- "$TOP/build/workloads/syscalls" 300 >out 2>err
result $? 'a command is recorded' err
check 'nothing is printed but what was written' diff <(echo 'record calls.data: 300 events, 0 dropped') <(cat out err)
"$PROFSCRIPT" exec -e raw_syscalls:sys_enter 'count(ev.id)' --format csv --input calls.data >out 2>err
expect_line 'profscript reads it' ",$GETPPID,300\$" out
"$PROFSCRIPT" trace -g -N 1 --input calls.data >out 2>err
expect_line 'it has stacks' '^    [0-9a-f]{16} .*syscall' out
check 'perf reads it' test "$(perf script -i calls.data 2>/dev/null | grep -c ": raw_syscalls:sys_enter: NR $GETPPID ")" -eq 300
"$PROFSCRIPT" record -e raw_syscalls:sys_enter --input calls.data -o copy.data 2>err
check 'a recording is copied' diff <("$PROFSCRIPT" trace --input calls.data) <("$PROFSCRIPT" trace --input copy.data)
refused 'it needs a file' 2 "record: option '-o FILE' is required" record -e raw_syscalls:sys_enter
refused 'and events' 2 'record: no events' record -o calls.data
