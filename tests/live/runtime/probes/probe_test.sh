#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only
# uprobes, return probes and USDT probes of a program that passes them an exact number of times with known arguments.
# None of them stays in the kernel, however the run ends.
# Runs alone.
. "$(dirname "$0")/../../../lib.sh"
. "$TOP/tests/tools/probes.sh"

# the distance of a probe from the start of its function
addr=$("$PROFSCRIPT" usdt -v list "lab:bare@$PROGRAM" | sed -n 's/.*Addr: \(0x[0-9a-f]*\),.*/\1/p')
plus=$((addr - 0x$(nm "$PROGRAM" | awk '$3 == "probed_twice" { print $1 }')))

check 'a function and its return, without arguments' trace \
	"uprobe:probed_twice$at,uretprobe:probed_twice$at,uprobe:probed_twice+$plus$at" -- "$PROGRAM" $N
lines 'every call is seen once' $N uprobe:probed_twice
lines 'every return is seen once' $N uretprobe:probed_twice
lines 'so is each place inside' $N "uprobe:probed_twice+$plus"

check 'a function and its return, with arguments' trace \
	"uprobe:probed_twice$at(i=%di:s32, text=+0(%si):string),uretprobe:probed_twice$at(r=\$retval:s64)" \
	-- "$PROGRAM" $N
lines 'every call has its arguments' $N uprobe:probed_twice "\"i=\" i \" text=\\\"\" $text \"\\\"\""
lines 'every return has its value' $N uretprobe:probed_twice '"r=" 2 * i'
nothing_left 'after a run'

check 'USDT' trace "usdt:lab:plain$at(i=%s text=+0(%s):string),usdt:lab:bare$at,usdt:inlined$at" -- "$PROGRAM" $N
# an s8 of 128 and more wraps
lines 'arguments of a USDT probe' $N usdt:lab:plain \
	"\"i=\" i \" text=\\\"\" $text \"\\\" arg3=\" ((256 * i - i + 128) % 256 - 128)"
lines 'a USDT probe without arguments' $N usdt:lab:bare
lines 'a USDT probe in two places' $N usdt:inlined '"arg1=" (i % 2 ? i : -i)'
check 'the semaphore of an untraced probe stays down' grep -qx 0 "$TMP/seen"

check 'USDT with a semaphore' trace "usdt:lab:guarded$at" -- "$PROGRAM" $N
lines 'memory, constants and a variable as arguments' $N usdt:lab:guarded \
	'"arg1=" (-i) " arg2=7 arg3=-8 arg4=" 39 + i'
check 'the semaphore is up while it is traced' grep -qx $N "$TMP/seen"
expect_line 'an argument that cannot be fetched is named' \
	'cannot fetch argument 5 of lab:guarded \(8f@.*\): skipped' "$TMP/out"

check 'USDT with a semaphore and no arguments' trace "usdt:lab:silent$at" -- "$PROGRAM" $N
lines 'the PMU raises the semaphore too' $N usdt:lab:silent

check 'a filter on arguments' trace "uprobe:probed_twice$at(i=%di:s32)/i > 10 && i <= 13/" -- "$PROGRAM" $N
lines 'it keeps what it matches' 3 uprobe:probed_twice '"i=" 10 + i'
check 'a filter on the address' trace "uprobe:probed_twice$at/__probe_ip == 0/" -- "$PROGRAM" $N
lines 'it keeps nothing' 0 uprobe:probed_twice

offset=$("$PROFSCRIPT" usdt -v list "lab:bare@$PROGRAM" | sed -n 's/.*Uprobe: .*:\(0x[0-9a-f]*\)$/\1/p')
check 'a place by its offset' trace "uprobe:$offset$at" -- "$PROGRAM" $N
lines 'it is passed each time' $N "uprobe:$offset"

workload probes $N
"$PROFSCRIPT" trace -o "$TMP/attached" -e "usdt:lab:guarded$at,uretprobe:probed_twice$at" -p "$WORKLOAD" 2>/dev/null &
tracer=$!
attached() {
	[ "$(find /proc/$tracer/fd -lname '*perf_event*' | wc -l)" -ge 2 ]
}
check 'attached to a running process' wait_for 10 attached
wait_ready $tracer
go >"$TMP/seen"
wait $tracer
mv "$TMP/attached" "$TMP/out"
lines 'its probes with a semaphore are seen' $N usdt:lab:guarded '"arg1=" (-i) " arg2=7 arg3=-8 arg4=" 39 + i'
lines 'its returns are seen' $N uretprobe:probed_twice
nothing_left 'after the process has ended'

# start: a background run with probes in tracefs, until it is killed
start() {
	"$PROFSCRIPT" trace -e "usdt:lab:plain$at,uprobe:probed_twice$at(i=%di)" >/dev/null 2>&1 &
	tracer=$!
}
for signal in INT TERM; do
	start
	check "SIG$signal: the probes exist before" wait_for 10 left_over
	kill -$signal $tracer
	wait $tracer
	nothing_left "SIG$signal"
done

check_status 'a second event that does not exist' 1 trace "usdt:lab:plain$at,uprobe:absent$at" -- "$PROGRAM" 1
nothing_left 'a failed start'
check_status 'a handler that fails' 1 "$PROFSCRIPT" exec -e "usdt:lab:plain$at" 'error("enough")' -- "$PROGRAM" 1
nothing_left 'a failed handler'

# Killed at any point, the last time when the probes exist.
for delay in 0.01 0.02 0.04 0.06 0.08 0.1 0.12 0.15; do
	start
	sleep $delay
	kill -KILL $tracer
	wait $tracer 2>/dev/null
done
start
wait_for 10 left_over >"$TMP/left"
kill -KILL $tracer
wait $tracer 2>/dev/null
check 'SIGKILL leaves probes' left_over
check 'the run after SIGKILL' "$PROFSCRIPT" trace --input "$DATA/sched.data" -N 1
nothing_left 'the run after SIGKILL'

# refused EVENTS REGEX: stderr has this line
refused() {
	expect_line "refused: $1" "$2" <("$PROFSCRIPT" trace -e "$1" -- true 2>&1)
}
refused "uprobe:probed_twicd$at" "no function 'probed_twicd' in .*; did you mean 'probed_twice'\?"
refused "usdt:lab:plane$at" "no USDT probe 'lab:plane' in .*; did you mean 'lab:plain'\?"
refused "uprobe:probed_twice$at(i=%zz)" "uprobe:probed_twice: .*: '%zz'"
refused 'uprobe:mallok@libc' "no function 'mallok' in /.*libc.so.6; did you mean 'malloc'\?"
refused 'uprobe:malloc@bash' "only imports 'malloc'"
refused 'uprobe:malloc@absent.so' "no library or program 'absent.so'"
refused "uretprobe:probed_twice+1$at" 'a return probe takes no offset'
if [ ! -e /sys/bus/event_source/devices/kprobe ] && [ ! -e /sys/kernel/tracing/kprobe_events ]; then
	refused kprobe:vfs_read 'this kernel has no kprobes \(CONFIG_KPROBES\)'
fi
