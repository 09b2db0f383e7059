#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only
# Events through a virtual machine socket: here from this machine to itself.
. "$(dirname "$0")/../../../lib.sh"
cd "$TOP" || exit 1
modprobe vsock_loopback 2>"$TMP/err" || skip_all 'no vsock_loopback'
export PROFSCRIPT_SECRET=between-two-machines
CALLS="raw_syscalls:sys_enter/id==$GETPPID"

./profscript trace -e "raw_syscalls:sys_enter//pull=vsock:1:9900/" -v >"$TMP/out" 2>"$TMP/err" &
receiver=$!
wait_for 20 grep -q 'waiting for' "$TMP/err"
expect_line 'a receiver waits for the sender' '^profscript: waiting for vsock:1:9900: ' "$TMP/err"
workload syscalls 20000
./profscript trace -e "$CALLS/push=vsock:9900/" -p "$WORKLOAD" -m 1024 -v >"$TMP/sent" 2>&1 &
sender=$!
wait_for 20 grep -q '^Accept client' "$TMP/sent"
wait_ready $sender
go
wait $sender
result $? 'the sender ends with the workload' "$TMP/sent"
wait $receiver
result $? 'the end of the sender is the end of the run' "$TMP/err"
expect_line 'the sender listens' '^Listen at vsock:.*9900$' "$TMP/sent"
expect_line 'all events were sent' '^push vsock:9900: 20000 events, 20000 sent, 0 dropped$' "$TMP/sent"
check 'all events arrive' test "$(grep -c " G .* raw_syscalls:sys_enter: " "$TMP/out")" -eq 20000
expect_line 'the times need no conversion' 'the times of .* are exact .by the same kernel.' "$TMP/err"
