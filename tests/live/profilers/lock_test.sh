#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only
# lock: a thread that waits a known number of times for a mutex of another one, and two that wait for each other.
. "$(dirname "$0")/../../lib.sh"
needs_tracepoint syscalls:sys_enter_futex syscalls:sys_exit_futex
count=20
locks="$TOP/build/workloads/locks"

"$PROFSCRIPT" lock --only user -m 1024 --csv -- "$locks" $count >"$TMP/out" 2>"$TMP/err"
# Which column is which: table,time,task,lock,type,count,total_ns,max_ns,caller,owner
expect_line 'each wait for the mutex, its caller and its owner' \
	"^lock,[0-9.]+,holder \([0-9]+\),work_lock,mutex,$count,[0-9]+,[0-9]+,take_work_lock,holder \([0-9]+\)" "$TMP/out"
"$PROFSCRIPT" lock --only user -m 1024 -g -- "$locks" $count >"$TMP/out" 2>"$TMP/err"
expect_line '-g: stacks' '^    [0-9a-f]+ wait_for_lock\+' "$TMP/out"

start lock --only user -m 1024 --cycle 1ns -- "$locks" deadlock
both_sleep() {
	local n=0 file
	for file in /proc/"$(pgrep -P $tracer | tail -n 1)"/task/*/stat; do
		grep -qs '(\(left\|right\)) S ' "$file" && n=$((n + 1))
	done
	test $n -eq 2
}
wait_for 20 both_sleep
stop
wait='(left|right) \([0-9]+\) waits for 0x[0-9a-f]+ of (left|right) \([0-9]+\)'
expect_line 'threads that wait for each other' \
	"^lock: $wait, $wait\$" "$TMP/err"
expect_line 'waits that last are counted' ' mutex +1 .* lock_both +(left|right) ' "$TMP/out"

"$PROFSCRIPT" lock --only user --holds -m 1024 --csv -- "$locks" $count >"$TMP/out" 2>"$TMP/err"
for thread in holder waiter; do
	expect_line "--holds: the $thread" "^holds \(ns\),[0-9.]+,work_lock,$thread,$count," "$TMP/out"
done
