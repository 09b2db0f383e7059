# SPDX-License-Identifier: GPL-2.0-only
# shellcheck shell=bash
# Links to other profscripts that are silent, broken or slow to come, and the ends of runs that pull.
. "$(dirname "$0")/../../../lib.sh"
needs_tracepoint raw_syscalls:sys_enter
CALLS="raw_syscalls:sys_enter/id==$GETPPID"
NEVER=raw_syscalls:sys_enter/id==9999/
PULLED=raw_syscalls:sys_enter

# sender ARG...: starts a sender to unix:$TMP/s; its pid is $sender
sender() {
	rm -f "$TMP/sent"
	"$PROFSCRIPT" trace "$@" --push "unix:$TMP/s" >"$TMP/sent" 2>&1 &
	sender=$!
	wait_for 20 grep -q '^Listen at' "$TMP/sent"
	wait_ready $sender
}

# receiver ARG...: starts a receiver; its pid is $receiver
receiver() {
	rm -f "$TMP/err"
	"$PROFSCRIPT" trace "$@" >"$TMP/out" 2>"$TMP/err" &
	receiver=$!
}

# timed ARG...: runs profscript; its status is $status, 124 if it does not end, and its CPU time in ms $cpu
timed() {
	local TIMEFORMAT='%U %S'
	{ time timeout 30 "$PROFSCRIPT" "$@" >"$TMP/out" 2>"$TMP/err"; } 2>"$TMP/time"
	status=$?
	cpu=$(awk '{ print int(($1 + $2) * 1000) }' "$TMP/time")
	echo "status $status, CPU $cpu ms" >>"$TMP/err"
}

# serve FILE...: sends the files, one to each client, from unix:$TMP/u
serve() {
	rm -f "$TMP/u" "$TMP/link"
	python3 "$TOP/tests/tools/link.py" "$TMP/u" "$@" >"$TMP/link" 2>&1 &
	link=$!
	wait_for 20 grep -q listening "$TMP/link"
}

# lost_events: the sum of the losses in $TMP/err
lost_events() { grep -o 'lost [0-9]* events' "$TMP/err" | awk '{ n += $2 } END { print n + 0 }'; }

# --- --duration, whatever the sender does
sender -e "$NEVER"
timed trace --input "unix:$TMP/s" -e $PULLED --duration 2s
test $status -eq 0
result $? '--duration ends a run without events' "$TMP/err"
check 'which sleeps meanwhile' test "$cpu" -lt 300
timed trace --input "unix:$TMP/s" -e $PULLED --push "unix:$TMP/t" --duration 1s
test $status -eq 0
result $? 'and one that would send them on' "$TMP/err"
kill -INT $sender
wait $sender
timed trace --input "unix:$TMP/s" -e $PULLED --duration 1s
test $status -eq 1
result $? 'no sender comes: --duration counts from the start' "$TMP/err"
expect_line 'the reason' "^profscript: never connected: unix:$TMP/s: No such file or directory$" "$TMP/err"
timed trace -e "$PULLED//pull=\"unix:$TMP/s\"/" -e sched:sched_switch --duration 1s
test $status -eq 1
result $? 'the same with pull=' "$TMP/err"
for last in --dry-run help; do
	timed trace -e "$PULLED//pull=\"unix:$TMP/s\"/" $last
	test $status -eq 1
	result $? "$last does not wait for a sender" "$TMP/err"
	expect_line 'and says what is unknown' 'never connected: .*; what the sender sends is not known without it$' "$TMP/err"
done

# --- perf has no heart-beats, and its clock is not known: --duration ends the run all the same
perf record -a -k CLOCK_MONOTONIC -e raw_syscalls:sys_enter -o - -- true >"$TMP/perf" 2>"$TMP/err"
mkfifo "$TMP/silent"
for from in "--input unix:$TMP/u" "-e $PULLED//pull=\"unix:$TMP/u\"/"; do
	exec {silent}<>"$TMP/silent"
	serve "$TMP/silent"
	cat "$TMP/perf" >"$TMP/silent" &
	# shellcheck disable=SC2086 # several words
	timed trace $from --duration 1s
	result $status "--duration ends a run whose perf sender is silent: ${from%% *}" "$TMP/err"
	kill $link
	exec {silent}>&-
done

# --- a sender that comes late is tried often if it is on this machine
receiver --input "unix:$TMP/s" -e $PULLED
sleep 7 # by now a sender of another machine would be tried each 5 s
sender -e "$NEVER"
since=$EPOCHREALTIME
wait_for 20 grep -q 'Connected to' "$TMP/err"
check 'it is connected soon' test $((${EPOCHREALTIME/./} - ${since/./})) -lt 3000000
kill -INT $receiver $sender
wait $receiver $sender

# --- a link that is dead: nothing arrives, and nobody says so
workload syscalls 30000
sender -e "$CALLS/" -p "$WORKLOAD" -m 4096
python3 "$TOP/tests/tools/link.py" "$TMP/l" to "$TMP/s" >"$TMP/link" 2>&1 &
link=$!
wait_for 20 grep -q listening "$TMP/link"
receiver --input "unix:$TMP/l" -e $PULLED -v --remote-slack 10.5s
wait_for 20 grep -q 'Connected to' "$TMP/err"
kill -USR2 $link
wait_for 30 grep -q "Disconnect from unix:$TMP/l: it has sent nothing for 10.5 s" "$TMP/err"
result $? 'a silent link counts as broken' "$TMP/err"
kill -USR2 $link
# shellcheck disable=SC2317 # wait_for calls it
again() { [ "$(grep -c 'Connected to' "$TMP/err")" -ge 2 ]; }
wait_for 20 again
result $? 'it is connected again' "$TMP/err"
go
wait $receiver
result $? 'and the end of the sender is the end of the run' "$TMP/err"
check 'events and losses add up' test $(($(wc -l <"$TMP/out") + $(lost_events))) -eq 30000
kill $link
wait $sender

# --- a sender that is stopped for less long loses nothing
workload syscalls 20000
sender -e "$CALLS/" -p "$WORKLOAD" -m 4096
receiver --input "unix:$TMP/s" -e $PULLED -v
wait_for 20 grep -q 'Connected to' "$TMP/err"
kill -STOP $sender
go
sleep 3
kill -CONT $sender
wait $receiver $sender
check 'a sender that is stopped for 3 s loses nothing' test "$(wc -l <"$TMP/out")" -eq 20000

# --- the run ends with threads of this machine: what was sent before is still read
for i in 1 2 3; do
	workload syscalls 5000
	sender -e "$CALLS/" -p "$WORKLOAD" -p $$ -m 4096
	sleep 100 &
	target=$!
	receiver -e "$PULLED//pull=\"unix:$TMP/s\"/" -e sched:sched_switch -p $target
	wait_for 20 grep -q 'Connected to' "$TMP/err"
	wait_ready $receiver
	go
	kill $target
	wait $receiver
	echo "$(grep -c ' G ' "$TMP/out") events, $(lost_events) lost" >>"$TMP/err"
	[ $(($(grep -c ' G ' "$TMP/out") + $(lost_events))) -eq 5000 ]
	result $? "the last events before the end of -p arrive ($i)" "$TMP/err"
	kill -INT $sender
	wait $sender $target 2>/dev/null
done

# --- a run that ends while the sender is silent, or away
sender -e "$CALLS/" -p $$
receiver --input "unix:$TMP/s" -e $PULLED
wait_for 20 grep -q 'Connected to' "$TMP/err"
kill -STOP $sender
sleep 0.5
kill -INT $receiver
wait $receiver
result $? 'Ctrl-C while the sender is silent' "$TMP/err"
expect_line 'it may have had more' 'lost an unknown number of events on .* between' "$TMP/err"
kill -CONT $sender
kill -KILL $sender
wait $sender 2>/dev/null

# --- a sender whose clock is an hour ahead
python3 - "$DATA/pushed.data" >"$TMP/ahead" <<'PYTHON'
import struct, sys, time
data = bytearray(open(sys.argv[1], 'rb').read())
hello = data.index(b'PSHELLO1')
data[hello + 16:hello + 32] = b'\xff' * 16  # of another boot: the wall clocks tell
at = -1
shift = None
while (at := data.find(b'PSPAIR01', at + 1)) >= 0:
    real, = struct.unpack_from('<Q', data, at + 8 + 24)
    shift = shift or time.time_ns() + 3600 * 10**9 - real
    struct.pack_into('<Q', data, at + 8 + 24, real + shift)
    struct.pack_into('<I', data, at + 8 + 36, 0)
sys.stdout.buffer.write(data)
PYTHON
serve "$TMP/ahead"
timed trace -e "$PULLED//pull=\"unix:$TMP/u\"/" -e sched:sched_switch -v --duration 1s
check 'events of a time that does not come are not delivered' test "$(grep -c ' G ' "$TMP/out")" -eq 0
expect_line 'but told' 'lost 60 events on ' "$TMP/err"
wait $link

# --- a virtual machine that is started again has another pid
# machine: starts what looks like a QEMU; its pid is $machine
ln -s "$(python3 -c 'import sys; print(sys.executable)')" "$TMP/qemu-system-x86_64"
machine() {
	"$TMP/qemu-system-x86_64" -c 'import ctypes, time
ctypes.CDLL(None).prctl(15, b"ALL CPUs/TCG", 0, 0, 0)
time.sleep(100)' -uuid 11111111-2222-3333-4444-555555555555 &
	machine=$!
	wait_for 20 grep -qx 'ALL CPUs/TCG' "/proc/$machine/comm"
}
machine
first=$machine
mkfifo "$TMP/fifo"
head -c -3000 "$DATA/pushed.data" >"$TMP/part"
serve "$TMP/part" "$TMP/fifo"
receiver -e "$PULLED//pull=\"unix:$TMP/u\"/vm=11111111-2222-3333-4444-555555555555/"
wait_for 20 grep -q 'Disconnect from' "$TMP/err"
kill $machine
wait $machine 2>/dev/null
machine
timeout 20 cat "$DATA/pushed.data" >"$TMP/fifo"
wait $receiver
result $? 'a machine that is started again' "$TMP/err"
check 'events before are of the one process' grep -q " G  *ALL CPUs/TCG  *$first " "$TMP/out"
check 'and later ones of the other' grep -q " G  *ALL CPUs/TCG  *$machine " "$TMP/out"
kill $machine
