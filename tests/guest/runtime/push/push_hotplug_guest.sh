#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only
# CPUs go offline and come online while their events are sent: receivers get those before and after, exactly, on the
# new rings of the CPU under the id that the header of the stream names.
. "$(dirname "$0")/../../../lib.sh"
cd "$TOP" || exit 1

CPU=/sys/devices/system/cpu/cpu
EVENT=syscalls:sys_enter_getppid

# online CPU: it is back, and the sender has said that it has its events
online() {
	said=$(notices "$1")
	echo 1 >${CPU}$1/online
	wait_for 20 noticed "$1"
}
notices() { grep "CPU #$1 came online" "$TMP/sent" | grep -vc 'its events before'; }
noticed() { [ "$(notices "$1")" -gt "$said" ]; }

# away SECONDS: CPU 2 is offline for this time
away() {
	echo 0 >${CPU}2/online
	sleep "$1"
	online 2
}

# send: a sender to a receiver that counts by CPU, and to a file
send() {
	rm -f "$TMP/sent"
	"$PROFSCRIPT" trace -v -e $EVENT --push "unix:$TMP/s,$TMP/file.data" >"$TMP/sent" 2>&1 &
	sender=$!
	wait_for 20 grep -q '^Listen at' "$TMP/sent"
	wait_ready $sender
	"$PROFSCRIPT" exec -v --input "unix:$TMP/s" -e $EVENT 'count(ev._event, ev._cpu)' >"$TMP/out" 2>&1 &
	receiver=$!
	wait_for 20 grep -q '^Accept client' "$TMP/sent"
	sleep 0.5
}

finish_sender() {
	sleep 0.3
	kill -INT $sender
	wait $sender $receiver
	"$PROFSCRIPT" exec --input "$TMP/file.data" -e $EVENT 'count(ev._event, ev._cpu)' >"$TMP/file" 2>&1
	perf script -i "$TMP/file.data" 2>/dev/null | grep -c getppid >"$TMP/perf"
}

# got NAME CPU N: both have N events of this CPU
got() {
	expect_line "$1: the receiver has $3 of CPU $2" "getppid +$2 +$3\$" "$TMP/out"
	expect_line "$1: so has the file" "getppid +$2 +$3\$" "$TMP/file"
}

send
calls_on 2 1000
away 0.3
calls_on 1 100
calls_on 2 2000
finish_sender
got 'offline and online again' 2 3000
got 'offline and online again' 1 100
check 'perf reads all of them' test "$(<"$TMP/perf")" -ge 3100
expect_line 'the sender reports the gap' 'CPU #2 came online; its events before [0-9.]+ s are missing$' "$TMP/sent"

send
for _ in 1 2 3; do
	calls_on 2 1000
	away 0
done
calls_on 2 1000
finish_sender
got 'away for a moment' 2 4000

echo 0 >${CPU}3/online
send
online 3
calls_on 3 1000
finish_sender
got 'online later than the sender' 3 1000

# While events flow, both ends agree. Those on CPU 1 are all sent; others may be on CPU 2 before its ring is there.
send
taskset 2 build/workloads/syscalls 30000 10000 &
loads=$!
build/workloads/syscalls 9000 3000 &
loads="$loads $!"
for _ in 1 2 3 4 5; do away 0.1; done
# shellcheck disable=SC2086 # two ids
wait $loads
finish_sender
sent=$(sed -nE 's/^push unix:.*: ([0-9]+) events, .*/\1/p' "$TMP/sent" | tail -n 1)
received=$(awk '/getppid +[0-9]+ +[0-9]+$/ { n += $NF } END { print n }' "$TMP/out")
check 'many were sent' test "$sent" -ge 30000
check 'those that were sent arrive' test "$received" -eq "$sent"
