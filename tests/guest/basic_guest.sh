#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only
# The profilers on a distribution's kernel with four CPUs, whose events differ from those of the host's kernel. In a
# guest exact counts are possible because nothing else runs.
. "$(dirname "$0")/../lib.sh"
cd "$TOP" || exit 1
echo "# $(uname -r)"

# counts NAME REGEX ARGS...: exec with these arguments prints a line that matches
counts() {
	local name=$1 regex=$2
	shift 2
	"$PROFSCRIPT" exec "$@" >"$TMP/out" 2>&1
	expect_line "$name" "$regex" "$TMP/out"
}

check 'print formats' "$PROFSCRIPT" --lua "$(command -v busted)" tests/unit/bindings/print/printfmt_spec.lua

counts 'system calls' '^syscalls +1000$' -e syscalls:sys_enter_getppid 'count(ev._comm)' \
	-- build/workloads/syscalls 1000
counts 'forks' '^forker +forker +20$' -e sched:sched_process_fork \
	'count(ev.parent_comm, ev.child_comm)' -- build/workloads/forker 20
counts 'wakeups' '^ping +pong +1 +500$' -e sched:sched_waking \
	'count(ev._comm, ev.comm, ev.target_cpu)' -- build/workloads/pingpong -c 1 500
counts 'kernel filters' '^pong +500$' -e 'sched:sched_waking/comm=="pong"/' 'count(ev.comm)' \
	-- build/workloads/pingpong -c 1,2 500

"$PROFSCRIPT" multi-trace -e raw_syscalls:sys_enter/id==110/ -e raw_syscalls:sys_exit/id==110/ \
	-k common_pid -- build/workloads/syscalls 1000 >"$TMP/out" 2>&1
expect_line 'pairs of system calls' '^sys_enter => sys_exit +1000 ' "$TMP/out"

"$PROFSCRIPT" trace -e cgroup:cgroup_mkdir -- mkdir /sys/fs/cgroup/lab >"$TMP/out" 2>&1
expect_line 'dynamic strings' 'mkdir .*cgroup:cgroup_mkdir: root=0 id=[0-9]+ level=1 path=/lab$' \
	"$TMP/out"

# Tracing patches the kernel's code when it is switched on.
start misc
echo 1 >/sys/kernel/tracing/events/sched/sched_switch/enable
echo 0 >/sys/kernel/tracing/events/sched/sched_switch/enable
mkdir /sys/fs/cgroup/misc_lab
stop
expect_line 'records: code is patched' \
	'bash .* misc:text_poke: ffffffff[0-9a-f]{8} ([0-9a-f]{2})+ => ([0-9a-f]{2})+ __schedule\+0x' "$TMP/out"
expect_line 'records: a cgroup is created' 'mkdir .* misc:cgroup: id [0-9]+ /misc_lab$' "$TMP/out"
check 'records: this kernel has them all' test ! -s "$TMP/err"

echo 1 >/proc/sys/kernel/sched_schedstats
# A task that goes to sleep does not trace it: its waker does.
start exec -e 'sched:sched_stat_sleep/comm=="usleep"/' 'if ev.delay >= 299e6 then count(ev.comm) end'
for _ in 1 2 3; do usleep 300000; done
stop
expect_line 'schedstat events' '^usleep +3$' "$TMP/out"

echo 'p:lab/open do_sys_openat2 file=+0(%si):ustring' >>/sys/kernel/tracing/kprobe_events
"$PROFSCRIPT" trace -e lab:open -- cat /proc/version >"$TMP/out" 2>&1
expect_line 'probes created by hand' 'cat .* lab:open: \(ffffffff[0-9a-f]+\) file="/proc/version"$' \
	"$TMP/out"

# A kernel that reports all switches: no profiler misses one.
for profiler in oncpu rundelay task-state; do
	build/workloads/pingpong -c 0,3 2000 &
	"$PROFSCRIPT" $profiler -m 1024 --duration 1 >"$TMP/out" 2>"$TMP/err"
	wait $!
	check "$profiler misses no switch" test ! -s "$TMP/err"
done

# Programs add up the times of targets on this kernel, too.
for args in 'oncpu -i 100s' 'task-state --perins'; do
	# shellcheck disable=SC2086 # words
	"$PROFSCRIPT" $args -v -- build/workloads/states sleep 10 thread 10 >"$TMP/out" 2>"$TMP/err"
	expect_line "$args of a workload" '^  sched:sched_switch: .* added up in the kernel, by a BPF program$' "$TMP/err"
	check "$args of a workload: its two threads and no others" test "$(awk '$1 ~ /^[0-9]+$/ { print $1 }' "$TMP/out" | sort -u | wc -l)" = 2
done

modprobe null_blk irqmode=0
counts 'block requests' '^WS +100$' -e block:block_getrq 'count(ev.rwbs)' \
	-- dd if=/dev/zero of=/dev/nullb0 bs=4k count=100 oflag=direct
modprobe -r null_blk
modprobe null_blk irqmode=2 completion_nsec=2000000
start examples/block-latency.lua --format csv
dd if=/dev/zero of=/dev/nullb0 bs=4k count=100 oflag=direct 2>/dev/null
stop
expect_line 'latency of block requests, each of them' '^100$' \
	<(awk -F, '/^latency/ { n += $NF } END { print n }' "$TMP/out")

build/workloads/pingpong -c 0,3 1000000 &
"$PROFSCRIPT" trace -e sched:sched_switch -N 5000 >"$TMP/out" 2>"$TMP/err"
sed 's/.*\[\(...\)\] *\([0-9.]*\): .*/\1 \2/' "$TMP/out" |
	awk '{ lines[$1]++; late += $2 < last; last = $2 }
		END { print lines["000"] + 0, lines["003"] + 0, late + 0 }' >"$TMP/order"
expect_line 'order across CPUs' '^[0-9]{3,} [0-9]{3,} 0$' "$TMP/order"
