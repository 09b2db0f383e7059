#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only
# expr: the values of an expression for an event.
. "$(dirname "$0")/../../lib.sh"
needs_tracepoint sched:sched_switch
needs_tracepoint raw_syscalls:sys_enter
cd "$TMP" || exit 1

"$PROFSCRIPT" expr -e sched:sched_switch '(next_pid << 1) - (next_pid * 2) - 1' -N 1 >out
expect_line 'expr' '^type: int$' out
expect_line 'expr' '^  pid_t next_pid +offset [0-9]+, 4 bytes, signed$' out
expect_line 'expr' '^result: 0xffffffffffffffff \(-1\)$' out
expect_line 'expr of text' '^result: "[^"]+"$' <("$PROFSCRIPT" expr -e sched:sched_switch next_comm -N 1)
expect_line 'expr of a recording' '^result: 0x78 \(120\)$' \
	<("$PROFSCRIPT" expr -e sched:sched_wakeup prio --input "$DATA/sched.data")
check 'expr takes five events' test \
	"$("$PROFSCRIPT" expr -e sched:sched_wakeup pid --input "$DATA/sched.data" | grep -c ^result)" -eq 5
# A field of 64 bits in an array, whose values may be large.
args() { "$PROFSCRIPT" expr -e raw_syscalls:sys_enter -N 1 "$@"; }
expect_line 'an element of an array' '^result: 0x[0-9a-f]+ \([0-9]+\)$' <(args 'args[0]')
expect_line 'an unsigned long is not negative' '^result: 0xffffffffffffffff \(18446744073709551615\)$' <(args 'args[0] | ~0ul')
expect_line 'a long is' '^result: 0xffffffffffffffff \(-1\)$' <(args '(long)(args[0] | ~0ul)')
expect_line 'an address that is no symbol' '^result: "0xffffffffffffffff"$' <(args 'ksymbol(args[0] | ~0ul)')
expect_line 'and what printf prints of it' '^ffffffffffffffff -1$' <(args 'printf("%lx %ld\n", args[0] | ~0ul, args[0] | ~0ul)')
expect_line 'also unchanged' '^[0-9a-f]+ [0-9]+$' <(args 'printf("%lx %lu\n", args[0], args[0])')
refused 'expr without an event' 2 'expr: select one event with -e' expr 'system("true")'
refused 'expr of two events' 2 'expr: select one event with -e' expr -e sched:sched_wakeup,sched:sched_switch prio
refused 'expr of an unknown field' 2 ".*did you mean 'next_pid'" expr -e sched:sched_switch nxt_pid
