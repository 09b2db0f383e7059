# SPDX-License-Identifier: GPL-2.0-only
# shellcheck shell=bash
# Events of a guest without a network: through a virtio-serial port, which QEMU serves as a unix socket.
. "$(dirname "$0")/../../../lib.sh"
needs_tracepoint sched:sched_switch
PORT=/dev/virtio-ports/org.profscript.0
SWITCH="sched:sched_switch//push=\"$PORT\"/"
PULL="sched:sched_switch//pull=\"unix:$TMP/s\""

# guest COMMAND: boots a guest; it is lab-$lab here, the process of QEMU is $qemu
guest() {
	rm -f "$TMP/s"
	bash "$TOP/tests/guest/lab.sh" -s "$TMP/s" -t 100 "$1" >"$TMP/guest" 2>"$TMP/guest.err" &
	lab=$!
	wait_for 60 test -S "$TMP/s" || ! kill -0 $lab 2>/dev/null
	if [ ! -S "$TMP/s" ]; then
		wait $lab
		[ $? -eq 126 ] && skip_all "$(tail -n 1 "$TMP/guest.err")"
	fi
	qemu=$(pgrep -P "$(pgrep -P $lab timeout)")
}

# receiver NAME PROFILER ARG...: starts one; its pid is $receiver
receiver() {
	"$PROFSCRIPT" "${@:2}" -v >"$TMP/$1" 2>"$TMP/$1.err" &
	receiver=$!
}

# has FILE TEXT [N]: TEXT is in at least N lines
has() { [ "$(grep -c -- "$2" "$TMP/$1")" -ge "${3:-1}" ]; }

# The receiver is there before the guest has booted.
guest "./profscript trace -e '$SWITCH' -i 1000 -v & p=\$!
	sleep 12; kill -INT \$p; wait \$p; echo status \$?"
receiver all trace -e "$PULL/vm=lab-$lab/"
wait $receiver
check 'the end of the sender is the end of the run' test $? -eq 0
wait $lab
expect_line 'the sender ends well' '^status 0$' "$TMP/guest"
read -r _ _ produced _ sent _ dropped _ <<<"$(grep "^push $PORT: .* sent" "$TMP/guest" | tail -n 1)"
lost=$(grep -o 'lost [0-9]* events' "$TMP/all.err" | awk '{ n += $2 } END { print n + 0 }')
echo "$produced events, $sent sent, $dropped dropped; $(wc -l <"$TMP/all") received, $lost lost" >"$TMP/sum"
[ "$produced" -gt 100 ] && [ $(($(wc -l <"$TMP/all") + lost)) -eq "$produced" ]
result $? "all of the guest's events arrive, or are reported as lost" "$TMP/sum"
check 'they are those of the thread that runs the virtual CPUs' \
	test "$(grep -Ec "^[-0-9]+ [:0-9.]+ G +ALL CPUs/TCG +[0-9]+ .* sched:sched_switch: " "$TMP/all")" -eq "$produced"
check 'they are in order' bash -c "grep -o '[0-9]*\.[0-9]*: sched:' '$TMP/all' | sort -nsc"
expect_line 'pings relate the clocks, to within 10 ms' 'the times of .* are right to within [0-9]{1,7} ns .by pings.' \
	"$TMP/all.err"

# The sender is killed, another one takes its place, and then the guest dies. No connection ends but the last one.
guest "for i in 1 2; do ./profscript trace -e '$SWITCH' -i 1000 & p=\$!
	sleep 8; [ \$i = 2 ] || kill -KILL \$p; done; echo b >/proc/sysrq-trigger"
receiver first trace -e "$PULL/vm=lab-$lab/" -N 100
wait $receiver
result $? 'a receiver that ends early' "$TMP/first.err"
pid=$qemu
receiver pairs multi-trace -e "$PULL/vm=lab-$lab/role=\"(next_pid?1:0)|(prev_pid?2:0)\"/,task-state//untraced/" \
	--cycle -i 1000 -p "$pid" --order --than 100us '--detail=sametid,hide<1ms'
wait_for 20 has pairs '=> sched_switch  *[1-9]' 2
kill -INT $receiver
wait $receiver
result $? 'multi-trace of its tasks, and of its threads here' "$TMP/pairs.err"
expect_line 'multi-trace: the events of the guest' "^[-0-9]+ [:0-9.]+ G +ALL CPUs/TCG +[0-9]+ .* sched:sched_switch: " "$TMP/pairs"
expect_line 'multi-trace: what its thread did meanwhile' '^\|.* sametid-?[0-9]* +ALL CPUs/TCG +[0-9]+ .* sched:sched_' "$TMP/pairs"
receiver again trace -e "$PULL/vm=lab-$lab/"
wait_for 30 has again.err 'Connected to' 2
result $? 'another sender on the same connection: it connects again' "$TMP/again.err"
wait $lab
wait_for 20 has again.err 'Disconnect from' 2
kill -INT $receiver
wait $receiver
result $? 'the guest dies, and Ctrl-C ends the wait for it' "$TMP/again.err"
expect_line 'what is missing is told' 'lost an unknown number of events on .* between' "$TMP/again.err"
check 'no local events take their place' test "$(grep -c ' G ' "$TMP/again")" -eq "$(wc -l <"$TMP/again")"
