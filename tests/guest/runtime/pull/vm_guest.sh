#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only
# Events of a nested virtual machine, which it stamps with its own clock, among those of its host: each lies between
# the entry before it and the exit that it causes.
. "$(dirname "$0")/../../../lib.sh"
cd "$TOP" || exit 1
{ modprobe kvm_amd || modprobe kvm_intel; } 2>"$TMP/err"
[ -e /dev/kvm ] || skip_all 'no KVM: the CPU of the guest has no SVM or VMX'
mount -t debugfs none /sys/kernel/debug
EVENTS=1000
REMOTE="small:out//pull=\"unix:$TMP/s\"/"

# vm COUNT [JUMP]: creates a machine that sends its events to unix:$TMP/s, and waits for a receiver and for `go`
vm() {
	rm -f "$TMP/go" "$TMP/s"
	mkfifo "$TMP/go"
	build/workloads/vmclock -w "$1" "${2:-0}" "$TMP/s" <"$TMP/go" >"$TMP/clocks" 2>"$TMP/vm.err" &
	vm=$!
	exec {go}>"$TMP/go"
	wait_for 20 test -S "$TMP/s"
}

# shellcheck disable=SC2317 # wait_for calls it
has_events() { readlink /proc/$tracer/fd/* | grep -q perf_event; }

# run ARG...: profscript while the machine runs. The machine does not send heart-beats, so nothing waits too long for it.
run() {
	./profscript "$@" -m 4096 -v --remote-slack 60000 >"$TMP/out" 2>"$TMP/err" &
	tracer=$!
	wait_for 20 has_events # it polls before that, too, for the connection
	wait_ready $tracer
	echo >&$go
	exec {go}>&-
	wait $vm
	result $? 'the machine ran' "$TMP/vm.err"
	wait_for 60 grep -q 'Disconnect from' "$TMP/err"
	result $? 'its stream has ended' "$TMP/err"
	kill -INT $tracer
	wait $tracer
}

# in_order N: the output has N events of the machine; between two of them are the exit that the first one causes and
# the entry before the second one, in this order
in_order() {
	awk -v events="$1" '
		/ kvm:kvm_entry: / { if (state == "exit") state = "entry" }
		/ kvm:kvm_exit: / { if (/ reason io /) state = "exit"; else if (state == "entry") state = "exit" }
		/ small:out: / {
			if (last !~ / kvm:kvm_entry: / || state != "entry") print "not after an entry: " last "\n" $0
			n++
			state = "event"
			at = $0
		}
		state == "event" && last ~ / small:out: / && !/ kvm:kvm_exit: / { print "not before an exit: " last "\n" $0 }
		BEGIN { state = "exit" }
		{ last = $0 }
		END { if (n != events) print n + 0 " events" }' "$TMP/out" | head -n 20 >"$TMP/wrong"
	[ ! -s "$TMP/wrong" ]
}

vm $EVENTS
run trace -e "${REMOTE}vm=$vm/" -e kvm:kvm_entry,kvm:kvm_exit
in_order $EVENTS
result $? "each of $EVENTS events lies between its entry and its exit" "$TMP/wrong"
check 'they are those of the thread that runs the virtual CPU' \
	test "$(grep -c " G       CPU 0/KVM $(printf %6d $vm) .* small:out: " "$TMP/out")" -eq $EVENTS
expect_line 'how exact the times are' 'the times of small are right to within [0-9]{1,3} ns .by KVM.s TSC offset.' "$TMP/err"

# The clock of the records is that of the machine, and what the host traces is printed with it, too. A time was converted
# to the host's clock and back, so it is as exact as the two conversions say.
vm 1000
run trace -e "${REMOTE}vm=$vm/" -e kvm:kvm_entry,kvm:kvm_exit --kvmclock $vm --csv
stated=$(sed -n 's/^trace: the .*times.* are right to within \([0-9]*\) ns.*/\1/p' "$TMP/err" | awk '{ n += $1 } END { print n }')
awk -F '[ ,]' -v CONVFMT=%.9f -v stated="$stated" '
	BEGIN { seen = n = 0 }
	NR == FNR { clock[n++] = $2 / 1e9; next }
	$1 == "small:out" {
		off = ($9 - clock[seen]) * 1e9
		if (off > stated || off < -stated) print "event " seen ": off by " off " ns, not up to " stated ": " $0
		seen++
	}
	$1 == "kvm:kvm_exit" { # the clock is between those of two events
		exits++
		if (seen && $8 < clock[seen - 1] || seen < n && $8 > clock[seen])
			print "exit between " clock[seen - 1] " and " clock[seen] ": " $0
	}
	END { if (seen != n || exits < 2 * n) print seen + 0 " events, " exits + 0 " exits" }' \
	"$TMP/clocks" "$TMP/out" | head -n 5 >"$TMP/wrong"
[ ! -s "$TMP/wrong" ]
result $? "--kvmclock is the clock of its events, also for the host's exits" "$TMP/wrong"
expect_line 'how exact the printed times are' '^trace: the printed times are right to within [0-9]+ ns' "$TMP/err"
expect_line 'its first readings end the wait' "^trace: the clock of $vm is known" "$TMP/err"

vm 100
run multi-trace -e "${REMOTE}vm=$vm/role=\"n%2==0?1:2\"/,kvm:kvm_exit//untraced/,kvm:kvm_entry//untraced/,task-state//untraced/" \
	--cycle --kvmclock $vm -i 100s --order --than 1ns '--detail=sametid,hide<1us'
expect_line 'multi-trace: pairs' '^ *out => out +50 ' "$TMP/out"
awk '/ G .* small:out: / { is_between = !is_between; next }
	/ kvm:kvm_exit: .* reason io / { if (!is_between) bad = 1; exits++ }
	END { print exits; exit bad || exits != 100 }' "$TMP/out" >"$TMP/wrong"
result $? 'multi-trace: --detail has the exits in between' "$TMP/wrong"

vm 200 1
run trace -e "${REMOTE}vm=$vm/" -e kvm:kvm_entry,kvm:kvm_exit
in_order 200
result $? 'the TSC is set while it runs' "$TMP/wrong"
