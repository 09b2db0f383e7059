#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only
# --tsc and --clock-offset on live events. A workload reads the TSC around each of its system calls.
. "$(dirname "$0")/../../../lib.sh"
needs_tracepoint raw_syscalls:sys_enter
cd "$TMP" || exit 1
CALLS=5000
EVENT='raw_syscalls:sys_enter/id==110/'

# calls [NAME=VALUE...] ARG...: traces the calls of tsc_around, which prints its readings
calls() {
	workload -C 0 tsc_around $CALLS 2000 >readings
	start trace -m 512 -e "$EVENT" -t "$WORKLOAD" --format csv "$@"
	go
	wait $tracer
	result $? "trace $*" err
}

# between OFFSET: each event lies between the readings around its call, shifted by OFFSET
between() {
	column clock | paste -d ' ' readings - | awk -v offset="$1" -v calls=$CALLS '
		!($1 + offset <= $3 && $3 <= $2 + offset) { print NR ": " $0; bad = 1 }
		END { exit bad || NR != calls }' >wrong
	result $? "$CALLS events, each between two readings of the TSC, shifted by $1" wrong
}

if "$PROFSCRIPT" trace -e "$EVENT" --tsc --duration 1ms >out 2>err; then
	calls --tsc -v
	between 0
	expect_line 'the error' '^trace: the printed times are right to within [0-9]+ ns$' err
	calls --tsc --clock-offset 1000000
	between 1000000
	calls --tsc --clock-offset -123456
	between -123456
else
	skip '--tsc' "$(head -n 1 err)"
fi

# The same event twice, from one ring: the line of -vv has the same time as that of JSON.
"$PROFSCRIPT" trace -e "$EVENT" --clock-offset 0x10000000000 --json -- "$TOP/build/workloads/tsc_around" 3 >out 2>err
sed -n 's/.*"clock":\([0-9.]*\).*/\1/p' out >times
check '--clock-offset moves live events' \
	awk -v up="$(cut -d ' ' -f 1 /proc/uptime)" '$1 - 1099.511627776 > up + 1 || $1 - 1099.511627776 < up - 60 { bad = 1 }
		END { exit bad || NR != 3 }' times
"$PROFSCRIPT" trace -e "$EVENT" --monotonic -- "$TOP/build/workloads/tsc_around" 3 >out 2>err
result $? '--monotonic' err
check 'its events' test "$(grep -c 'sys_enter: NR 110' out)" = 3

# Profilers that print events in other ways, or none.
for profiler in 'multi-trace -e raw_syscalls:sys_enter -e raw_syscalls:sys_exit -k common_pid --than 1ns' 'top -e raw_syscalls:sys_enter' \
	'task-state --than 1ns --json' 'rundelay' 'profile -F 99' 'syscalls' 'oncpu' 'signal --print'; do
	# shellcheck disable=SC2086 # words
	"$PROFSCRIPT" $profiler --clock-offset 1000000 --tsc -- "$TOP/build/workloads/tsc_around" 3 >out 2>err
	status=$?
	unavailable $status "${profiler%% *}" || result $status "${profiler%% *} takes the options" err
done
"$PROFSCRIPT" stat -e raw_syscalls:sys_enter --tsc --clock-offset 1 -- true >out 2>err
expect_line 'a profiler that only counts ignores them' 'stat: --tsc has no effect, because the events are only counted' err
refused 'a machine that does not exist' 1 "--kvmclock: no virtual machine 'no.such'" trace -e "$EVENT" --kvmclock no.such
