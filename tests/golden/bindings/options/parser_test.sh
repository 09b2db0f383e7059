#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only
# No option is silently ignored.
. "$(dirname "$0")/../../../lib.sh"
wakeups=(-e sched:sched_wakeup//key=pid/ -e sched:sched_switch//key=next_pid/)
cd "$DATA" || exit 1

run() { "$PROFSCRIPT" "$@" --input sched.data; }
run trace -e sched:sched_wakeup,sched:sched_switch >"$TMP/all"
expect_text 'events of every -e' "$TMP/all" run trace -e sched:sched_wakeup -e sched:sched_switch
grep '\[001\]' "$TMP/all" >"$TMP/cpu1"
expect_text 'a filter for all of them' "$TMP/cpu1" run trace -e sched:sched_wakeup -e sched:sched_switch --filter '_cpu==1'
run multi-trace --than 1.5ms "${wakeups[@]}" --format csv >"$TMP/short"
run multi-trace --than 1500us "${wakeups[@]}" --format csv >"$TMP/same"
check '1.5ms are 1500us' diff "$TMP/same" "$TMP/short"
run multi-trace --than 1min "${wakeups[@]}" >"$TMP/out"
check 'nothing takes longer than a minute' test "$(grep -c 'sched:' "$TMP/out")" -eq 0
for option in -m-1 -N-1; do
	check_status "$option is not a number" 2 run trace -e sched:sched_wakeup $option
done
check_status 'an unknown option' 2 run trace -e sched:sched_wakeup --no-such-option
check_status 'the help of a profiler is not a failure' 0 "$PROFSCRIPT" trace -h
expect_line 'and goes to stdout' '^usage: profscript trace ' <("$PROFSCRIPT" trace -h 2>/dev/null)
for name in top breakpoint oncpu exec list; do # with and without events, arguments and a workload
	"$PROFSCRIPT" $name -h >"$TMP/help"
	expect_text "help $name" "$TMP/help" "$PROFSCRIPT" help $name
done
expect_text 'help with -v' "$TMP/help" "$PROFSCRIPT" -v help list
expect_line 'help as the word after a profiler without -e' '^usage: profscript profile ' <("$PROFSCRIPT" profile help)
expect_line 'help of an event' '^profscript trace -e raw_syscalls:sys_enter|^raw_syscalls:sys_enter: ' \
	<("$PROFSCRIPT" help trace --input lost.data -e raw_syscalls:sys_enter)
"$PROFSCRIPT" -h >"$TMP/help"
expect_text 'help alone' "$TMP/help" "$PROFSCRIPT" help
refused 'help of a profiler that there is not' 2 "no such profiler 'breakpiont'; did you mean 'breakpoint'" help breakpiont
"$PROFSCRIPT" trace -q -e raw_syscalls:sys_enter --input lost.data >"$TMP/quiet" 2>"$TMP/err"
check '-q prints results only' test ! -s "$TMP/err"
"$PROFSCRIPT" trace -e raw_syscalls:sys_enter --input lost.data 2>"$TMP/err" | diff - "$TMP/quiet" >"$TMP/diff"
result $? 'and all of them' "$TMP/diff"
expect_line 'without it there are also messages' 'lost [0-9]+ events' "$TMP/err"
