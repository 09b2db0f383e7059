#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only
# Errors in events, their attributes, filters and keys are reported in one line, with the nearest name.
. "$(dirname "$0")/../../../lib.sh"
switch=sched:sched_switch
needs_tracepoint $switch

refused 'an unknown event' 2 "no such event 'sched:sched_swich'; did you mean 'sched:sched_switch'\\?" trace -e sched:sched_swich
refused 'an unknown system' 2 "no such event system 'shced'; did you mean 'sched'\\?" trace -e shced:sched_switch
refused 'an event without system' 2 "cannot trace 'sched_switch': .*; did you mean 'sched:sched_switch'\\?" trace -e sched_switch
refused 'a glob without match' 2 "no event matches 'sched:nosu\\*'" trace -e 'sched:nosu*'
refused 'no event at all' 2 "bad event '': missing event name at column 1" trace -e ''
refused 'an empty event' 2 "bad event 'sched:sched_switch,,': missing event name at column 20" trace -e "$switch,,"
refused 'an unknown attribute' 2 "bad event .*unknown attribute 'kye' at column 21; did you mean 'key'\\?" \
	multi-trace -e $switch//kye=next_pid/
expect_line 'with a caret' '^ {22}\^$' "$TMP/err"
refused 'a field in a filter' 2 "bad filter of $switch 'prev_pdi==1': .*'prev_pdi' at column 1; did you mean 'prev_pid'\\?" \
	trace -e $switch/prev_pdi==1/
refused 'an attribute for a filter' 2 "bad filter .*'stack'.*; attributes follow the filter: $switch//stack/" \
	trace -e $switch/stack/
refused 'a filter that ends early' 2 "bad filter of $switch 'prev_pid==': expected a value, found the end at column 11" \
	trace -e $switch/prev_pid==/
expect_line 'with a caret' '^ {12}\^$' "$TMP/err"
refused 'a field in --filter' 2 "bad filter of $switch 'prev_pdi==1': .*did you mean 'prev_pid'" trace -e $switch --filter prev_pdi==1
refused 'a field in a key' 2 "bad key of sched:sched_wakeup 'pdi': unknown variable 'pdi' at column 1; did you mean 'pid'\\?" \
	multi-trace -e sched:sched_wakeup//key=pdi/ -e $switch//key=next_pid/
refused 'a key that ends early' 2 "bad key of $switch 'next_pid\\+': expected a value, found the end at column 10" \
	multi-trace -e sched:sched_wakeup//key=pid/ -e $switch//key=next_pid+/
refused 'a key that one event lacks' 2 "bad key of $switch 'pid': unknown variable 'pid'" \
	multi-trace -e sched:sched_wakeup -e $switch -k pid
refused 'a key for one of two events' 2 "multi-trace: sched:sched_wakeup has a key and $switch has none: they never match" \
	multi-trace -e sched:sched_wakeup//key=pid/ -e $switch
refused 'keys of two types' 2 'the key of .* is a string but the key of .* is a number' \
	multi-trace -e sched:sched_wakeup//key=comm/ -e $switch//key=next_pid/
refused 'one stage' 2 'multi-trace: a latency needs two stages or more' multi-trace -e $switch
refused 'nothing traced' 2 'multi-trace: -e number 1: all events are untraced' \
	multi-trace -e sched:sched_wakeup//untraced/ -e $switch
refused 'a tracepoint without its system' 2 "cannot trace 'sched_switch': .*; did you mean 'sched:sched_switch'\\?" trace -e sched_switch
refused 'an assignment' 2 "bad filter of $switch 'next_pid=1': .* at column 9; did you mean '=='\\?" trace -e $switch/next_pid=1/
refused 'a CPU that no kernel has' 2 ".*invalid CPU list '999999' at column 17" trace -e cpu-clock//cpus=999999/
refused 'a path without quotes' 2 '.*an unquoted path ends at its first slash' trace -e uprobe:main@./w
refused 'an address beyond the file' 2 '.*has only [0-9]+ bytes' trace -e 'uprobe:0xffffffffffffffff@libc'
refused 'no samples a second' 2 "bad event 'cpu-clock/freq=0/': 'freq' must be more than 0 at column 16" \
	trace -e cpu-clock/freq=0/ -N 1
refused 'every 0th event' 2 ".*'period' must be more than 0" trace -e cpu-clock/period=0/ -N 1

# Not p*: other tests set and remove probes of profscript at the same time.
"$PROFSCRIPT" trace -e '[a-o]*:*,[q-z]*:*' --dry-run >"$TMP/out" 2>"$TMP/err"
check 'all events at once' test $? -eq 0
check 'but none that nobody can sample' test "$(grep -cE '^  (ftrace:|irq_vectors:irq_work_exit)' "$TMP/out")" -eq 0
"$PROFSCRIPT" trace -e 'ftrace:*' --dry-run >"$TMP/out" 2>"$TMP/err"
check 'unless they alone are named' grep -q '^  ftrace:' "$TMP/out"
