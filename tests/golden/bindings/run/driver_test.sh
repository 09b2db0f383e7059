#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only
# What the driver adds to the handlers of every profiler. -vv prints each event, as trace does, and nothing twice.
. "$(dirname "$0")/../../../lib.sh"

# prints_events RECORDING EVENTS PROFILER ARG...: the lines of these events, a comma between them, are those of trace
prints_events() {
	local recording=$1 events=$2
	shift 2
	"$PROFSCRIPT" trace -e "$events" --input "$DATA/$recording.data" >"$TMP/want" 2>"$TMP/err"
	[ -s "$TMP/want" ] || cat "$TMP/err"
	"$PROFSCRIPT" "$@" -vv --input "$DATA/$recording.data" 2>"$TMP/err" |
		grep -E "^.{24,}\] [0-9.]+: (${events//,/|}): " >"$TMP/got"
	diff "$TMP/want" "$TMP/got" >"$TMP/diff" && [ -s "$TMP/want" ]
	result $? "$1 -vv" "$TMP/diff"
}

switches=sched:sched_switch,sched:sched_wakeup
prints_events sched sched:sched_switch top -e sched:sched_switch//key=prev_pid/
prints_events syscalls raw_syscalls:sys_exit num-dist -e raw_syscalls:sys_exit//num=ret/
prints_events sched $switches task-state
prints_events sched sched:sched_switch oncpu
prints_events kmem kmem:kmalloc,kmem:kfree kmemleak --alloc kmem:kmalloc --free kmem:kfree
prints_events sched sched:sched_switch trace -e sched:sched_switch
prints_events sched sched:sched_switch stat -e sched:sched_switch
prints_events sched sched:sched_switch exec -e sched:sched_switch 'count(ev.next_pid)'

"$PROFSCRIPT" top -e sched:sched_switch -v --input "$DATA/sched.data" >"$TMP/out" 2>/dev/null
check '-v prints none' bash -c "! grep 'sched:sched_switch: ' '$TMP/out'"

# exec= is evaluated for each event of any profiler, after its handlers.
"$PROFSCRIPT" trace -e sched:sched_switch --input "$DATA/sched.data" 2>/dev/null | grep -c . >"$TMP/want"
for profiler in top 'exec count(ev.next_pid)' 'multi-trace -e sched:sched_switch//key=next_pid/' stat; do
	read -r name rest <<<"$profiler"
	# shellcheck disable=SC2086 # options without blanks
	"$PROFSCRIPT" $name -e 'sched:sched_switch//key=prev_pid/exec=printf("was %d\n",prev_pid)/' $rest \
		--input "$DATA/sched.data" 2>/dev/null | grep -c '^was [0-9]' >"$TMP/got"
	check "exec= in $name" diff "$TMP/want" "$TMP/got"
done
refused 'exec= with a command' 2 '.*system.. is not allowed.* allow it with --allow-exec' \
	top -e 'sched:sched_switch//exec=system("echo ran")/' --input "$DATA/sched.data"
"$PROFSCRIPT" expr -e sched:sched_switch 'system("echo ran")' --allow-exec -N 2 --input "$DATA/sched.data" >"$TMP/out"
check 'expr --allow-exec' [ "$(grep -c '^ran$' "$TMP/out")" -eq 2 ]

# An attribute that a profiler does not read is ignored with a warning. What does not exist stays an error.
ignores() {
	local attribute=$1
	shift
	"$PROFSCRIPT" "$@" --input "$DATA/kmem.data" >"$TMP/out" 2>"$TMP/err"
	result $? "$1 takes $attribute=" "$TMP/err"
	check 'with one warning' [ "$(grep -cx "$1: the attribute '$attribute' has no effect on this profiler" "$TMP/err")" -eq 1 ]
}
ignores comm expr -e kmem:kmalloc//alias=x/comm=common_pid/ bytes_req
ignores key kmemleak --alloc kmem:kmalloc//ptr=ptr/key=ptr/stack/ --free kmem:kfree//ptr=ptr/key=ptr/
ignores top-by trace -e kmem:kmalloc//top-by=bytes_req/,kmem:kfree
refused 'a misspelled attribute' 2 ".*unknown attribute 'kye' at column 15; did you mean 'key'.*" \
	trace -e kmem:kmalloc//kye=ptr/ --input "$DATA/kmem.data"

# A limit below a microsecond without a unit is hardly meant.
for option in than only-than; do
	"$PROFSCRIPT" syscalls --$option 20 --input "$DATA/nap.data" >/dev/null 2>"$TMP/err"
	expect_line "--$option 20" "^syscalls: --$option 20 is 20ns; give a unit for more, such as --$option 20ms\$" "$TMP/err"
done
for value in 0 20ns 1000 20ms; do
	"$PROFSCRIPT" syscalls --than $value --input "$DATA/nap.data" >/dev/null 2>"$TMP/err"
	check "--than $value may be meant" test ! -s "$TMP/err"
done

# The numbers of raw_syscalls do not say whether a call is i386's.
"$PROFSCRIPT" exec --input "$DATA/narrow.data" 'count(ev.id)' >/dev/null 2>"$TMP/err"
expect_line 'calls of 32-bit programs' '^exec: the recording has 1 32-bit program: the numbers of its system calls are those of i386' "$TMP/err"
"$PROFSCRIPT" exec --input "$DATA/syscalls.data" 'count(ev.id)' >/dev/null 2>"$TMP/err"
check 'none of them' test ! -s "$TMP/err"
