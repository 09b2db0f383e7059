# SPDX-License-Identifier: GPL-2.0-only
# shellcheck shell=bash
# Events of another profscript on this machine: all of them arrive, or are reported as lost.
. "$(dirname "$0")/../../../lib.sh"
needs_tracepoint raw_syscalls:sys_enter
CALLS="raw_syscalls:sys_enter/id==$GETPPID"

# sender ARG...: starts a sender of the workload's calls to unix:$TMP/s; its pid is $sender
sender() {
	rm -f "$TMP/sent"
	"$PROFSCRIPT" trace -e "$CALLS/push=\"unix:$TMP/s\"/" -p "$WORKLOAD" -v "$@" >"$TMP/sent" 2>&1 &
	sender=$!
	wait_for 20 grep -q '^Listen at' "$TMP/sent"
	wait_ready $sender
}

# receiver SOCKET ARG...: starts a receiver; its pid is $receiver
receiver() {
	rm -f "$TMP/err"
	"$PROFSCRIPT" trace -e "raw_syscalls:sys_enter//pull=\"unix:$1\"/" "${@:2}" >"$TMP/out" 2>"$TMP/err" &
	receiver=$!
	wait_for 20 grep -q 'Connected to' "$TMP/err"
}

# link: starts a link that can be broken, $TMP/l; its pid is $link
link() {
	rm -f "$TMP/l" "$TMP/link"
	python3 "$TOP/tests/tools/link.py" "$TMP/l" to "$TMP/s" >"$TMP/link" 2>&1 &
	link=$!
	wait_for 20 grep -q listening "$TMP/link"
}

# lets_go: lets the workload run without waiting for its end
lets_go() {
	echo >&"$workload_go"
	exec {workload_go}>&-
}

# adds_up NAME COUNT: the events and the losses that were reported are COUNT, and all events are remote
adds_up() {
	local got lost
	got=$(grep -c ' G ' "$TMP/out")
	lost=$(grep -o 'lost [0-9]* events' "$TMP/err" | awk '{ n += $2 } END { print n + 0 }')
	{
		echo "$got events, $lost lost, expected $2; sender $sender, link ${link-}"
		cat "$TMP/err" "$TMP/sent"
	} >"$TMP/sum"
	[ $((got + lost)) -eq "$2" ] && [ "$got" -eq "$(wc -l <"$TMP/out")" ]
	result $? "$1: events and losses add up, none is local" "$TMP/sum"
}

# arrived N: so many events
arrived() { [ "$(wc -l <"$TMP/out")" -ge "$1" ]; }

# calls_made: how many calls the last event that arrived says that there were: each has its number as an argument
calls_made() { echo $((0x$(sed -n "\$s/.*sys_enter: NR $GETPPID [a-z ]*(\([0-9a-f]*\),.*/\1/p" "$TMP/out") + 1)); }

# end_workload: ends one that would run for long
end_workload() { { kill -KILL "$WORKLOAD" && wait "$WORKLOAD"; } 2>/dev/null; }

workload syscalls 20000
sender
receiver "$TMP/s" -v
go
kill -INT $sender 2>/dev/null # it ends with the workload
wait $receiver
check 'the end of the sender is the end of the run' test $? -eq 0
adds_up 'all arrive' 20000
check 'none is lost' bash -c "! grep -q 'lost [1-9]' '$TMP/err'"
expect_line 'their task has its name' "^[-0-9]+ [:0-9.]+ G +syscalls +$WORKLOAD " "$TMP/out"
check 'they are in order' bash -c "grep -o '[0-9]*\.[0-9]*: raw' '$TMP/out' | sort -nsc"


workload syscalls 100000000 20000
sender
link
receiver "$TMP/l" -v
lets_go
for i in 1 2 3; do
	wait_for 20 arrived $(($(wc -l <"$TMP/out") + 4000))
	# shellcheck disable=SC2317 # wait_for calls it
	connected() { [ "$(grep -c 'Connected to' "$TMP/err")" -ge "$1" ]; }
	kill -USR1 $link
	wait_for 20 connected $((i + 1))
done
wait_for 20 arrived $(($(wc -l <"$TMP/out") + 4000))
end_workload
kill -INT $sender 2>/dev/null # it ends with the workload
wait $receiver
check 'broken links are no end' test $? -eq 0
adds_up 'the link breaks three times' "$(calls_made)"
check 'some events are lost then' grep -q 'lost [1-9][0-9]* events on .* between' "$TMP/err"
check 'it connects again each time' test "$(grep -c 'Connected to' "$TMP/err")" -ge 4

# More than the queue of the sender (8 MiB) and the sockets hold.
workload syscalls 400000
sender -m 4096
receiver "$TMP/l" -v
kill -USR2 $link
go
sleep 1
kill -USR2 $link
wait_for 20 grep -q 'lost [1-9]' "$TMP/err"
kill -INT $sender 2>/dev/null # it ends with the workload
wait $receiver
adds_up 'the link is too slow' 400000
check 'some events are lost then' grep -q 'lost [1-9][0-9]* events on .* between' "$TMP/err"

# The same, and the events are sent on: the losses, too.
workload syscalls 400000
sender -m 4096
"$PROFSCRIPT" trace --input "unix:$TMP/l" --push "unix:$TMP/r" >"$TMP/relay" 2>&1 &
relay=$!
wait_for 20 grep -q '^Listen at' "$TMP/relay"
receiver "$TMP/r" -v
kill -USR2 $link
go
sleep 1
kill -USR2 $link
wait_for 20 grep -q 'lost [1-9]' "$TMP/err"
kill -INT $sender 2>/dev/null # it ends with the workload
wait $relay $receiver
adds_up 'events are sent on' 400000
check 'some events are lost before that' grep -q 'lost [1-9][0-9]* events on .* between' "$TMP/err"
kill $link

workload syscalls 100000000 20000
sender
receiver "$TMP/s"
lets_go
check 'events of a sender' wait_for 20 arrived 5000
kill -KILL $sender
wait_for 20 grep -q 'Disconnect from' "$TMP/err"
before=$(wc -l <"$TMP/out")
sender
wait_for 20 grep -q 'lost an unknown number of events on .* between' "$TMP/err"
check 'a sender that starts again is another one: how many are lost is unknown' test $? -eq 0
check 'events of the other sender' wait_for 20 arrived $((before + 5000))
end_workload
kill -INT $sender 2>/dev/null # it ends with the workload
wait $receiver
check 'no local events take their place' test "$(grep -c ' G ' "$TMP/out")" -eq "$(wc -l <"$TMP/out")"
check 'fewer events than calls arrive' test "$(wc -l <"$TMP/out")" -lt "$(calls_made)"

# An event that is sent twice is used once, and none is missed.
workload syscalls 1000
sender -e "raw_syscalls:sys_enter/id>=$GETPPID && id<=$GETPPID/push=\"unix:$TMP/s\"/"
receiver "$TMP/s" -v
go
kill -INT $sender 2>/dev/null # it ends with the workload
wait $receiver
check 'events that are sent twice are used once' test "$(grep -c ' G ' "$TMP/out")" -eq "$(calls_made)"
check 'and none is missed' bash -c "! grep -q 'were received, but' '$TMP/err'"
check 'though all were sent' test "$(awk '/^events of / { print $7 }' "$TMP/err")" -eq 2000

# A sender that stops does not stop the events of this machine.
workload syscalls 20000 20000
sender -m 4096
rm "$TMP/err"
"$PROFSCRIPT" trace -e "raw_syscalls:sys_enter//pull=\"unix:$TMP/s\"/" -e sched:sched_wakeup >"$TMP/out" 2>"$TMP/err" &
receiver=$!
wait_for 20 grep -q 'Connected to' "$TMP/err"
wait_for 20 grep -q sched_wakeup "$TMP/out"
lets_go
wait_for 20 grep -q ' G ' "$TMP/out"
kill -STOP $sender
sleep 0.5
grep -c sched_wakeup "$TMP/out" >"$TMP/before"
sleep 1
grep -c sched_wakeup "$TMP/out" >"$TMP/after"
kill -CONT $sender
wait "$WORKLOAD"
wait_for 20 grep -q 'Disconnect from' "$TMP/err"
kill -INT $receiver
wait $receiver
check 'a sender that is silent does not hold back local events' test "$(<"$TMP/after")" -gt "$(<"$TMP/before")"
expect_line 'it says that the events of the sender are late' 'was silent for more than 200 ms: its events are late' "$TMP/err"
check 'they arrive' test "$(grep -c ' G ' "$TMP/out")" -eq 20000

# The same with a relay, and the sender has its events in another order.
needs_tracepoint raw_syscalls:sys_exit
# both ARG...: starts a sender of calls and returns
both() {
	rm -f "$TMP/sent"
	"$PROFSCRIPT" trace "$@" -p "$WORKLOAD" --push "unix:$TMP/s" >"$TMP/sent" 2>&1 &
	sender=$!
	wait_for 20 grep -q '^Listen at' "$TMP/sent"
	wait_ready $sender
}
RETURNS="raw_syscalls:sys_exit/id==$GETPPID/"
workload syscalls 10000000 5000
both -e "$CALLS/" -e "$RETURNS"
"$PROFSCRIPT" trace --input "unix:$TMP/s" --push "unix:$TMP/r" >"$TMP/relay" 2>&1 &
relay=$!
wait_for 20 grep -q '^Listen at' "$TMP/relay"
"$PROFSCRIPT" trace --input "unix:$TMP/r" >"$TMP/out" 2>"$TMP/err" &
receiver=$!
lets_go
# shellcheck disable=SC2317 # wait_for calls it
more() { [ "$(grep -c 'raw_syscalls:sys_exit: ' "$TMP/out")" -gt $((before + 2000)) ]; }
before=0
wait_for 20 more
kill -KILL $sender
wait_for 20 grep -q 'Disconnect from' "$TMP/relay"
before=$(grep -c 'raw_syscalls:sys_exit: ' "$TMP/out")
both -e "$RETURNS" -e "$CALLS/"
wait_for 20 more
result $? 'a relay sends on a sender that was started again' "$TMP/relay"
kill -KILL "$WORKLOAD"
wait "$WORKLOAD" $sender $relay $receiver 2>/dev/null
check 'each event keeps its name, though their order has changed' awk -v id=$GETPPID -v parent=$$ '
	/sys_exit: / { exits++; if ($0 !~ "NR " id " = " parent "$") bad = 1 }
	/sys_enter: / { enters++; if ($0 !~ "NR " id " [(]") bad = 1 }
	END { exit bad || exits < 4000 || enters < 1000 }' "$TMP/out"

# Two senders: their CPUs are different ones.
workload syscalls 20000
sender
"$PROFSCRIPT" trace -e "$CALLS/push=\"unix:$TMP/t\"/" -p "$WORKLOAD" >"$TMP/sent2" 2>&1 &
second=$!
wait_for 20 grep -q '^Listen at' "$TMP/sent2"
wait_ready $second
rm "$TMP/err"
"$PROFSCRIPT" multi-trace -e "raw_syscalls:sys_enter//pull=\"unix:$TMP/s,unix:$TMP/t\"/" --cycle --format csv -i 100s \
	>"$TMP/out" 2>"$TMP/err" &
receiver=$!
# shellcheck disable=SC2317 # wait_for calls it
both() { [ "$(grep -c 'Connected to' "$TMP/err")" -eq 2 ]; }
wait_for 20 both
go
wait $sender $second $receiver
rows 'the events of two senders are two rows of pairs' 'c["calls"] >= 19990 && c["calls"] < 20000'
check 'no pair has an event of each' test "$(total calls)" -lt 40000 -a "$(total calls)" -ge 39980

# The first event of each pair is remote, the second is local.
workload syscalls 20000
sender
rm "$TMP/err"
"$PROFSCRIPT" multi-trace -e "raw_syscalls:sys_enter//pull=\"unix:$TMP/s\"/" -e "raw_syscalls:sys_exit/id==$GETPPID/" \
	-k common_pid --format csv -i 100s -m 4096 >"$TMP/out" 2>"$TMP/err" &
receiver=$!
wait_for 20 grep -q 'Connected to' "$TMP/err"
wait_ready $receiver
go
wait_for 20 grep -q 'Disconnect from' "$TMP/err" # the sender ends with the workload
kill -INT $receiver
wait $receiver $sender
rows 'pairs of a remote and a local event' 'c["calls"] == 20000 || c["count"] == 20000'
