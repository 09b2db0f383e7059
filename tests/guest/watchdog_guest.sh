#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only
# A soft lockup: a module computes hashes on CPU 2 for five seconds, without letting any other task run
# there. What profscript says of it comes before what the kernel does. (No module of this kernel
# keeps interrupts off, which a hard lockup takes.)
. "$(dirname "$0")/../lib.sh"
cd "$TOP" || exit 1
echo 1 >/proc/sys/kernel/watchdog_thresh
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
expect_line 'the kernel tells of a soft lockup' '^[0-9]+\.[0-9]+$' "$TMP/kernel"
grep -A 1 '^WILL: soft lockup - CPU#2 ' "$TMP/out" | sed -n 's/.*\[002\] \([0-9.]*\): timer:.*/\1/p' | head -n 1 >"$TMP/ours"
expect_line 'so does profscript' '^[0-9]+\.[0-9]+$' "$TMP/ours"
check 'before the kernel' awk 'NR == 1 { ours = $1 } NR == 2 { exit !(ours < $1) }' "$TMP/ours" "$TMP/kernel"
expect_line 'with the stack of what keeps the CPU' 'test_ahash_speed.* \(\[tcrypt\]\)$' "$TMP/out"
