# SPDX-License-Identifier: GPL-2.0-only
# shellcheck shell=bash
# Events of two machines that are closer together than the error of their clocks are marked with ~. The sender is on
# this kernel, but seems to be on another one, so pings tell how exact its times are.
. "$(dirname "$0")/../../../lib.sh"
needs_tracepoint raw_syscalls:sys_enter
echo 01234567-89ab-cdef-0123-456789abcdef >"$TMP/boot_id"
unshare -m mount --bind "$TMP/boot_id" /proc/sys/kernel/random/boot_id 2>"$TMP/err" || skip_all "$(<"$TMP/err")"

# pairs ARG...: runs multi-trace on the calls of a workload, each of which is seen twice: by the sender and by this
# machine. Which of the two events seems to come first depends on the error of the clocks, but there are 100 ms between
# two calls.
pairs() {
	local sender
	workload syscalls 30 10
	unshare -m bash -c "mount --bind $TMP/boot_id /proc/sys/kernel/random/boot_id && exec $PROFSCRIPT trace \
		-e raw_syscalls:sys_enter/id==$GETPPID/,raw_syscalls:sys_exit/id==$GETPPID/ --push unix:$TMP/s -p $WORKLOAD" 2>"$TMP/sent" &
	sender=$!
	wait_for 20 grep -q '^Listen at' "$TMP/sent"
	start multi-trace --cycle -e "raw_syscalls:sys_enter//pull=\"unix:$TMP/s\"/" \
		-e "raw_syscalls:sys_enter/id==$GETPPID/,raw_syscalls:sys_exit//untraced/pull=\"unix:$TMP/s\"/,raw_syscalls:sys_exit//untraced/" \
		-k common_pid -p "$WORKLOAD" --than 1ns "$@"
	go
	wait $sender
	stop
}

pairs --detail=-5ms
expect_line 'the latency of a short pair is marked' '^\|~?\+ ~[0-9.]+ us( |$)' "$TMP/out"
expect_line 'that of a long pair is not' '^\|~?\+ 9[0-9]{4}\.[0-9]+ us( |$)|^\|~?\+ 1[0-9]{5}\.[0-9]+ us( |$)' "$TMP/out"
expect_line 'an event that may have come before the one above it' '^\|~.* raw_syscalls:sys_exit: NR' "$TMP/out"
expect_line 'an event that did not' '^\| .* raw_syscalls:sys_exit: NR' "$TMP/out"
expect_line 'a second event that may have come before the first' '^~ .* raw_syscalls:sys_enter: NR' "$TMP/out"
expect_line 'the number of short pairs is reported' \
	'^multi-trace: [0-9]+ of [0-9]+ pairs of different machines are shorter than the error of the clocks' "$TMP/err"

pairs
expect_line 'without details, the second event of a short pair is marked' "^[-0-9]+ [0-9:.]+~[ G] +syscalls " "$TMP/out"
expect_line 'not the other events' "^[-0-9]+ [0-9:.]+ [ G] +syscalls " "$TMP/out"

pairs --json
expect_line 'short pairs in JSON' '"part":"second","offset_ns":[0-9]{1,7},.*"uncertain":true}$' "$TMP/out"
expect_line 'long pairs in JSON' '"part":"second","offset_ns":[0-9]{8,9},.*"uncertain":false}$' "$TMP/out"

"$PROFSCRIPT" multi-trace -e raw_syscalls:sys_enter -e raw_syscalls:sys_exit,raw_syscalls:sys_enter//untraced/ -k common_pid \
	--than 1ns --detail -- true >"$TMP/out" 2>"$TMP/err"
check 'events of one machine are in order' bash -c "grep -q sys_exit '$TMP/out' && ! grep -E '^(\|~|~|.*\+ ~)' '$TMP/out'"
