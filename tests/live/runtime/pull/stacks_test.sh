# SPDX-License-Identifier: GPL-2.0-only
# shellcheck shell=bash
# Stacks of another machine: their kernel functions are those that the sender names.
# Runs alone.
. "$(dirname "$0")/../../../lib.sh"
needs_tracepoint raw_syscalls:sys_enter
CALLS="raw_syscalls:sys_enter/id==$GETPPID"

workload syscalls 20 1000
start trace -g -e "$CALLS/" -e "raw_syscalls:sys_exit/id==$GETPPID/" -p "$WORKLOAD" --push "$TMP/pushed"
go
stop
python3 "$TOP/tests/tools/foreign.py" <"$TMP/pushed" >"$TMP/foreign"

# named NAME LETTERS: 20 stacks, whose kernel functions end with such a letter and have names
named() {
	local stacks functions
	stacks=$(grep -c 'raw_syscalls:sys_enter' "$TMP/out")
	functions=$(grep -c -E "^ +ffff[0-9a-f]+ [a-z_0-9A-Z.]*$2\+0x[0-9a-f]+ \(\[kernel.kallsyms\]\)" "$TMP/out")
	[ "$stacks" -eq 20 ] && [ "$functions" -ge 40 ] && ! grep -q 'Unknown (\[kernel' "$TMP/out"
	result $? "$1" "$TMP/out"
}

"$PROFSCRIPT" trace -g -e "raw_syscalls:sys_enter//pull=\"$TMP/foreign\"/" >"$TMP/out"
named 'a pulled file of another kernel' f
"$PROFSCRIPT" trace -g -e raw_syscalls:sys_enter --input "$TMP/foreign" >"$TMP/out"
named 'a recording of another kernel' f
"$PROFSCRIPT" trace -g -e "raw_syscalls:sys_enter//pull=\"$TMP/pushed\"/" >"$TMP/out"
named 'this kernel needs no symbols of the sender' '[a-z0-9]'

# over FILE ARG...: a run that receives a file through a link
over() {
	rm -f "$TMP/l" "$TMP/link"
	python3 "$TOP/tests/tools/link.py" "$TMP/l" "$1" >"$TMP/link" 2>&1 &
	link=$!
	wait_for 20 grep -q listening "$TMP/link"
	"$PROFSCRIPT" trace -g "${@:2}" >"$TMP/out" 2>"$TMP/err"
	wait $link
}

over "$TMP/foreign" -e raw_syscalls:sys_enter --input "unix:$TMP/l"
named 'a whole run on what another kernel sends' f
over "$TMP/foreign" -e "raw_syscalls:sys_enter//pull=\"unix:$TMP/l\"/"
named 'events that another kernel sends' f

# Both are this machine, but one of them seems to be another: their clocks are compared by wall time, if at all.
"$PROFSCRIPT" multi-trace -e "raw_syscalls:sys_enter//pull=\"$TMP/foreign\"/" \
	-e "raw_syscalls:sys_exit//pull=\"$TMP/pushed\"/" -k common_pid >"$TMP/out" 2>"$TMP/err"
expect_line 'pairs that are shorter than the error of the clocks' \
	'^multi-trace: [0-9]+ of [0-9]+ pairs of different machines are shorter than the error of the clocks \((unknown|[0-9.]+ us(, unknown for [0-9]+ of them)?)\)$' "$TMP/err"
"$PROFSCRIPT" multi-trace -e "raw_syscalls:sys_enter//pull=\"$TMP/pushed\"/" -e "raw_syscalls:sys_enter//pull=\"$TMP/pushed\"/" \
	-k common_pid >"$TMP/out" 2>"$TMP/err"
check 'the clock of one machine has no error' bash -c "! grep 'error of the clocks' '$TMP/err'"
