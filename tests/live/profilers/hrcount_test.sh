#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only
# Counts in the samples of a clock: all of a program's system calls are in some period, those of each event
# stand at its name; and profilers that need what this machine lacks say so.
. "$(dirname "$0")/../../lib.sh"
needs_tracepoint raw_syscalls:sys_enter sched:sched_switch sched:sched_stat_runtime
case $(uname -m) in
x86_64) getppid=110 ;;
aarch64 | riscv64) getppid=173 ;;
*) skip_all "the number of getppid on $(uname -m) is not known here" ;;
esac
cd "$TMP" || exit 1

# start ARG...: runs profscript in the background until it counts; its pid is $tracer
start() {
	"$PROFSCRIPT" "$@" >out 2>err &
	tracer=$!
	wait_ready $tracer
}

# run_through: ends it when the workload's CPU has had a sample after it. Kernels were seen that give no
# samples while a CPU other than the first is idle.
run_through() {
	taskset -cp 0 "$WORKLOAD" >/dev/null
	go
	sleep 0.3
	kill -INT $tracer
	wait $tracer
}

sum_of() {
	grep -o "\"$1\":[0-9]*" out | awk -F: '{ sum += $2 } END { print sum + 0 }' >sum
}

for period in 1ms 10ms; do
	workload syscalls 20000
	start hrcount -e "raw_syscalls:sys_enter/id==$getppid&&common_pid==$WORKLOAD/alias=calls/,sched:sched_switch" \
		--period $period -i 50 --perins --format json
	run_through
	grep '"event":"calls"' out >calls
	cp calls out
	sum_of total
	expect_line "hrcount --period $period: N system calls" '^20000$' sum
	check 'in rows of an interval' awk -F'[][]' -v cells=$((50 / ${period%ms})) '
		split($2, n, ",") > cells { exit 1 }' calls
done
"$PROFSCRIPT" hrcount -e sched:sched_switch -i 20 --period 2ms -N 3 >out
check 'hrcount -N 3: three reports' test "$(grep -c 'total' out)" -eq 3
expect_line 'ten periods' '^sched:sched_switch +([0-9]+\| *){9}[0-9]+ \| total [0-9]+$' out
"$PROFSCRIPT" hrcount -e sched:sched_switch -i 20 -N 2 --filter 'prev_pid == -1' >out
expect_line 'hrcount --filter: of what is counted, not of its clock' '^sched:sched_switch 0 \| total 0$' out

workload syscalls 20000
start hrtimer -e "sched:sched_switch//cpus=0/alias=zero/,raw_syscalls:sys_enter/id==$getppid&&common_pid==$WORKLOAD/alias=calls/" \
	--period 5ms 'calls > 0' --format json
run_through
sum_of calls
expect_line 'hrtimer: all calls are in periods that have some' '^20000$' sum
check 'an event of CPU 0 is on CPU 0' awk '/"cpu":0/ != /"zero":[0-9]/ { exit 1 }' out
"$PROFSCRIPT" hrtimer -e sched:sched_switch -F 100 'sched_switch * 0 + 2' -N 3 >out
check 'every value but 0 is true' test "$(grep -c 'hrtimer: cpu-clock [0-9]* ns' out)" -eq 3
expect_line 'with its counts' '^    sched_switch [0-9]+$' out
"$PROFSCRIPT" hrtimer -e sched:sched_switch -F 100 -g 'period > 0' -N 4 >out
expect_line 'and stacks' '^    [0-9a-f]{16} ' out
"$PROFSCRIPT" hrcount -e sched:sched_switch -C 0 --duration 0.1 >out 2>err # its period is a second
expect_line 'hrcount: less than a period is not known' 'gave no period of CPU 0: what they counted is not known$' err
began=$(cut -d. -f1 /proc/uptime)
"$PROFSCRIPT" hrtimer -e sched:sched_switch -F 100 -g 'period > 0' -N 1 --format json >out
expect_line 'stacks in JSON' '"sched_switch":[0-9]+,"stack":\["[0-9a-f]{16} ' out
check 'and the time of the kernel' test "$(sed 's/.*"time":\([0-9]*\).*/\1/' out)" -ge "$began"
timeout 20 "$PROFSCRIPT" irq-off --period 1ms --than 1000001ns -N 2 >out # any jitter is more than 1 ns
check 'irq-off prints what is late' test "$(grep -c 'irq-off: cpu-clock [0-9]* ns' out)" -eq 2

# CPU time, in the kernel's ticks and ours.
"$PROFSCRIPT" cpu-util --format json -i 10s -- bash -c \
	'for ((i = 0; i < 300000; i++)); do :; done; read -r _ _ _ _ _ _ _ _ _ _ _ _ _ user sys _ </proc/self/stat
	echo $((user + sys)) >ticks' >out
sum_of busy_ns
used=$(($(<ticks) * 1000000000 / $(getconf CLK_TCK)))
check "cpu-util: $(<sum) of $used ns" test "$(<sum)" -ge $((used - 30000000)) -a "$(<sum)" -le $((used + 60000000))
taskset -c 0 "$TOP/build/workloads/syscalls" 1000000000 &
"$PROFSCRIPT" cpu-util -C 0 --format json -i 300 -N 1 >out
kill $!
expect_line 'a busy CPU' '"util":(9[0-9]|10[0-9])[.,]' out

# What cannot be: one line, and the status of a mistake or of a failure.
# fails STATUS REGEX ARG...
fails() {
	local want=$1 regex=$2
	shift 2
	"$PROFSCRIPT" "$@" >out 2>err
	local status=$?
	[ $status -eq "$want" ] && [ "$(wc -l <err)" -eq 1 ] && grep -Eq -- "$regex" err
	result $? "$*" err
}
fails 2 'hrcount: no events: name some with -e' hrcount -N 1
fails 2 'give --period or -F' hrtimer -e sched:sched_switch 1
fails 2 '--than must be more than --period' irq-off --than 1ms
for args in '-p 1' '--input x' -g '-F 9' '--prio 100'; do
	# shellcheck disable=SC2086 # an option and its value
	check_status "hrcount has no $args" 2 "$PROFSCRIPT" hrcount -e sched:sched_switch $args
	expect_line 'and says so' "option '${args% *}' does not apply to this profiler" "$TMP/.check"
done
check_status 'nor a workload' 2 "$PROFSCRIPT" hrcount -e sched:sched_switch true
if [ -d /sys/bus/event_source/devices/cpu ]; then
	skip 'profilers without their counters' 'this machine has a hardware PMU'
else
	for name in hwstat llcstat tlbstat; do
		fails 1 'needs a hardware PMU, and this machine has none' $name
	done
	fails 1 "^profscript: (split-lock: no event of this processor is known|'r[0-9a-f]+' needs a hardware PMU)" split-lock
	for name in ldlat-loads ldlat-stores; do
		fails 1 "^profscript: $name: it needs (an Intel processor|a hardware PMU)" $name
	done
fi
fails 2 '-g is for samples' split-lock -g
fails 2 'not recordings' ldlat-loads --input "$TOP/tests/recordings/sched.data"
