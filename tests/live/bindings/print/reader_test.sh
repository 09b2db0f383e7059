#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only
# The reader of the output does not read: the run ends nevertheless, and says what it dropped.
. "$(dirname "$0")/../../../lib.sh"
needs_tracepoint raw_syscalls:sys_enter

# start_unread ARG...: returns when the pipe is full
start_unread() {
	rm -f "$TMP/unread"
	mkfifo "$TMP/unread"
	exec {unread}<>"$TMP/unread"
	"$PROFSCRIPT" trace -e raw_syscalls:sys_enter "$@" >"$TMP/unread" 2>"$TMP/err" &
	tracer=$!
	wait_for 60 is_full
}
is_full() { ! timeout 0.2 dd if=/dev/zero of="$TMP/unread" bs=4096 count=1 status=none; }

ended() { ! kill -0 $tracer; }
ends_with_status_1() {
	check "$1" wait_for 5 ended
	kill -9 $tracer 2>/dev/null
	wait $tracer 2>/dev/null
	check "$1: status 1" test $? -eq 1
	expect_line "$1" '^profscript: dropped [0-9]+ bytes of output: its reader does not read$' "$TMP/err"
	exec {unread}>&-
}

for signal in TERM HUP; do
	start_unread
	kill -$signal $tracer
	ends_with_status_1 "SIG$signal"
done
start_unread --duration 0.1
kill -TERM $tracer
ends_with_status_1 'SIGTERM after --duration'

# Ctrl-C reaches a pager, too, but does not end it: it may still read.
start_unread -N 5000
kill -INT $tracer
sleep 0.3
check 'after Ctrl-C it waits for the reader' kill -0 $tracer
kill -INT $tracer
ends_with_status_1 'a second Ctrl-C'
workload syscalls 2000
mkfifo "$TMP/late"
{ until [ -e "$TMP/ended" ]; do sleep 0.05; done && cat; } <"$TMP/late" >"$TMP/out" &
reader=$!
"$PROFSCRIPT" trace -m 1024 -e raw_syscalls:sys_enter -p "$WORKLOAD,$$" >"$TMP/late" 2>"$TMP/err" &
tracer=$!
wait_ready $tracer
go
kill -INT $tracer
: >"$TMP/ended"
wait $tracer $reader
check 'what comes late gets the whole output' test "$(tail -c 1 "$TMP/out" | xxd -p)" = 0a -a \
	"$(grep -c "sys_enter: NR $GETPPID " "$TMP/out")" -ge 2000

# --dry-run has no session that could end.
"$PROFSCRIPT" trace --dry-run -e 'syscalls:*' 2>"$TMP/err" | { sleep 1; cat; } >"$TMP/out"
check '--dry-run waits, too' test "${PIPESTATUS[0]}" -eq 0 -a "$(stat -c %s "$TMP/out")" -gt 70000
