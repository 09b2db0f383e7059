#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only
# --kvmclock on a nested virtual machine, which tells what its own clocks were between its exits.
. "$(dirname "$0")/../../../lib.sh"
cd "$TOP" || exit 1
{ modprobe kvm_amd || modprobe kvm_intel; } 2>"$TMP/err"
[ -e /dev/kvm ] || skip_all 'no KVM: the CPU of the guest has no SVM or VMX'
TURNS=3000 # two exits each, one for each half of the TSC
IO='exit_reason==0x7b||exit_reason==30'

# vm ARG...: creates a machine, which waits for `go`
vm() {
	rm -f "$TMP/go"
	mkfifo "$TMP/go"
	build/workloads/vmclock -w "$@" <"$TMP/go" >"$TMP/clocks" 2>"$TMP/vm.err" &
	vm=$!
	exec {go}>"$TMP/go"
	wait_for 20 grep -q 'CPU 0/KVM' /proc/$vm/comm
}

# trace_clocks: starts two tracers, one for each clock, lets the machine run, and waits until all have ended
trace_clocks() {
	local tsc kvmclock
	./profscript trace -e "kvm:kvm_exit/$IO/" --kvmclock $vm --tsc -p $vm -m 2048 -v --csv >"$TMP/tsc" 2>"$TMP/tsc.err" &
	tsc=$!
	./profscript trace -e "kvm:kvm_exit/$IO/" --kvmclock $vm -p $vm -m 2048 -v --csv >"$TMP/kvmclock" 2>"$TMP/kvmclock.err" &
	kvmclock=$!
	for pid in $tsc $kvmclock; do wait_ready $pid; done
	echo >&$go
	exec {go}>&-
	wait $vm
	result $? 'the machine ran' "$TMP/vm.err"
	wait $tsc && wait $kvmclock
	result $? 'the tracers ended with it' "$TMP/tsc.err"
}

# in_order FILE COLUMN FACTOR: each two exits in FILE lie between two neighbouring readings of the guest
in_order() {
	awk -F '[ ,]' -v column="$2" -v factor="$3" '
		NR == FNR { clock[++n] = $column; next }
		$1 == "kvm:kvm_exit" {
			i = int(exits++ / 2) + 1
			time = $8 * factor # event,time,cpu,pid,tid,CPU 0/KVM,clock
			if (time < clock[i] || i < n && time > clock[i + 1])
				print "exit " exits ": " clock[i] " " time " " clock[i + 1]
		}
		END { if (exits != 2 * n) print exits " exits, " n " readings" }' "$TMP/clocks" "$TMP/$1" | head -n 5 >"$TMP/wrong"
	[ ! -s "$TMP/wrong" ]
}

./profscript trace -e kvm:kvm_exit --kvmclock web1 >"$TMP/out" 2>&1
check 'a machine that does not exist' grep -q "no virtual machine 'web1'; none runs here" "$TMP/out"

vm $TURNS
./profscript trace -e kvm:kvm_exit --kvmclock web1 >"$TMP/out" 2>&1
expect_line 'the machines that exist' "no virtual machine 'web1'; there are CPU 0/KVM .pid $vm." "$TMP/out"
./profscript trace -e kvm:kvm_exit --kvmclock $vm --tsc >"$TMP/out" 2>&1
expect_line 'without debugfs' '/sys/kernel/debug/kvm: No such file or directory .mount -t debugfs' "$TMP/out"
mount -t debugfs none /sys/kernel/debug
trace_clocks
in_order tsc 1 1
result $? "the guest's TSC at $((2 * TURNS)) exits" "$TMP/wrong"
in_order kvmclock 2 1e9
result $? "the guest's kvmclock at $((2 * TURNS)) exits" "$TMP/wrong"
expect_line 'it tells that it waits' "trace: waiting for KVM to update the clock of $vm, which" "$TMP/kvmclock.err"
expect_line 'and that this is over' "trace: the clock of $vm is known" "$TMP/kvmclock.err"
expect_line 'the error' 'trace: the printed times are right to within [0-9]{1,3} ns' "$TMP/kvmclock.err"

vm 200 1
trace_clocks
in_order tsc 1 1
result $? "a guest's TSC that is set while it runs" "$TMP/wrong"
expect_line 'it tells that' 'the TSC of CPU 0/KVM was set: its offset changed by [0-9]+ cycles' "$TMP/tsc.err"
