#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only
# Reports of lockups while they last: CPUs of this guest really hang.
. "$(dirname "$0")/../../lib.sh"
cd "$TOP" || exit 1
echo 1 >/proc/sys/kernel/watchdog_thresh

# An offline CPU has no timer: that is not a lockup.
taskset 1 ./profscript watchdog -F 10 >"$TMP/out" 2>"$TMP/err" &
tracer=$!
wait_ready $tracer
sleep 1
echo 0 >/sys/devices/system/cpu/cpu3/online
sleep 3
kill -INT $tracer
wait $tracer
check 'a CPU that goes offline' bash -c "! grep WILL '$TMP/out'"
echo 1 >/sys/devices/system/cpu/cpu3/online

# A BPF program disables interrupts on CPU 2. The kernel cannot see that here, because there is no NMI.
export XDG_CACHE_HOME=$TOP/build/cache
hard_lockup() {
	taskset 1 ./profscript watchdog -F 10 -C 1-3 >"$TMP/out" 2>"$TMP/err" &
	tracer=$!
	wait_ready $tracer
	sleep 1
	check 'no lockup is reported without one' test ! -s "$TMP/out"
	taskset 1 ./profscript tests/scripts/bpf/hang.lua --cpu 2 --ns 4s --duration 6 >"$TMP/hang" 2>&1 &
	hanger=$!
	# Reported while it lasts: the hanging CPU does not answer yet.
	check 'a hard lockup is reported' wait_for 30 grep -q '^WILL: hard lockup - CPU#2 .*, seen by CPU#[13]$' "$TMP/out"
	sed -n 's/^WILL: hard lockup - CPU#2 \[\([0-9]*\) .*/\1/p' "$TMP/out" | head -n 1 >"$TMP/first"
	check 'before it ends' test "$(cat "$TMP/first")" -lt 4000000000
	wait $hanger
	expect_line 'it was one' '^hung	1$' "$TMP/hang"
	kill -INT $tracer
	wait $tracer
	check 'of no other CPU' bash -c "! grep -E 'hard lockup - CPU#[013]' '$TMP/out'"
}
if [ -d "$XDG_CACHE_HOME/profscript/bpf" ]; then
	hard_lockup
else
	skip 'a hard lockup' 'no BPF programs: live/bindings/bpf/program_test compiles them, on the host'
fi

# A module computes hashes on CPU 2 for at least five seconds, without letting any other task run there.
dmesg -c >/dev/null
taskset 1 ./profscript watchdog -F 10 -g -C 1-3 >"$TMP/out" 2>"$TMP/err" &
tracer=$!
wait_ready $tracer
sleep 1 # two periods, after which the timers are known
taskset 4 modprobe tcrypt mode=304 sec=5 >"$TMP/modprobe" 2>&1 & # sha256
hasher=$!
wait_for 60 bash -c "dmesg | grep -q 'soft lockup - CPU#2' || ! kill -0 $hasher"
kill -0 $hasher 2>/dev/null || skip_all "tcrypt does not run: $(<"$TMP/modprobe")"
kill -INT $tracer
check_status 'SIGINT ends it' 0 wait $tracer
dmesg | sed -n 's/^\[ *\([0-9.]*\)\].*soft lockup - CPU#2 stuck.*/\1/p' | head -n 1 >"$TMP/kernel"
expect_line 'the kernel reports a soft lockup' '^[0-9]+\.[0-9]+$' "$TMP/kernel"
grep -A 1 '^WILL: soft lockup - CPU#2 ' "$TMP/out" | sed -n 's/.*\[002\] \([0-9.]*\): timer:.*/\1/p' | head -n 1 >"$TMP/ours"
expect_line 'so does profscript' '^[0-9]+\.[0-9]+$' "$TMP/ours"
check 'before the kernel' awk 'NR == 1 { ours = $1 } NR == 2 { exit !(ours < $1) }' "$TMP/ours" "$TMP/kernel"
expect_line 'with the stack of the task on the CPU' 'test_ahash_speed.* \(\[tcrypt\]\)$' "$TMP/out"
