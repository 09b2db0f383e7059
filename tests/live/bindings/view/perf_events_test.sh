#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only
# Software, hardware and clock events: what they count and sample, and the messages about those that do not exist.
# Runs alone.
. "$(dirname "$0")/../../../lib.sh"
needs_tracepoint sched:sched_switch
cd "$TMP" || exit 1

# Each page of this program's memory faults once.
cat >touch.c <<'C'
#include <stdlib.h>
int main(void)
{
	volatile char *p = aligned_alloc(4096, 1000 * 4096);
	for (int i = 0; i < 1000; i++)
		p[i * 4096] = 1;
}
C
if gcc -O1 -o touch touch.c 2>/dev/null; then
	"$PROFSCRIPT" exec -e minor-faults 'count()' --format csv -- ./touch >out
	n=$(tail -n 1 out | sed 's/.*,//')
	check "page faults are counted one by one ($n)" test "$n" -ge 1000 -a "$n" -lt 1500
	"$PROFSCRIPT" exec -e minor-faults//period=10/ 'count()' --format csv -- ./touch >out
	n=$(tail -n 1 out | sed 's/.*,//')
	check "every tenth ($n)" test "$n" -ge 100 -a "$n" -lt 150
fi
# The periods of the samples add up to the time that the program used, except for the last one. perf counts the same.
workload states run 300
perf stat -x, -o perf.csv -e task-clock -p $WORKLOAD &
peer=$!
start exec -e task-clock//freq=200/ 'sum(ev._period)' --format csv -p $WORKLOAD
wait_for 20 grep -q -E 'nanosleep|poll' /proc/$peer/wchan
go
wait $tracer $peer
ours=$(tail -n 1 out | sed 's/.*,//')
perfs=$(awk -F, '/task-clock/ { print int($1 * 1e6) }' perf.csv)
check "a clock sampled by frequency adds up to the program's time ($ours of $perfs ns)" \
	test "${ours%.*}" -ge $((perfs / 2)) -a "${ours%.*}" -le $((perfs + 5000000))
spin=("$TOP/build/workloads/states" run 100)
expect_line 'the period is printed' ': cpu-clock: 1000000$' \
	<("$PROFSCRIPT" trace -e cpu-clock/period=1000000/ -N 3 -- "${spin[@]}")
expect_line 'a period of time' ': cpu-clock: 2000000$' \
	<("$PROFSCRIPT" trace -e cpu-clock --period 2ms -N 3 -- "${spin[@]}")
refused 'no such event' 2 ".*not a tracepoint.*did you mean 'cpu-clock'" trace -e cpu-clok
refused 'too fast' 2 '.*exceeds kernel.perf_event_max_sample_rate' trace -e cpu-clock//freq=900000000/
refused 'never' 2 ".*'freq' must be more than 0" trace -e cpu-clock/freq=0/
refused 'either' 2 '.*period and freq are mutually exclusive' trace -e cpu-clock//freq=9/period=9/
if compgen -G '/sys/bus/event_source/devices/cpu*' || compgen -G '/sys/bus/event_source/devices/arm*'; then
	skip 'events without their PMU' 'this machine has a hardware PMU'
else
	refused 'an event without its PMU' 3 ".*'cycles' needs a hardware PMU, and this machine has none" trace -e cycles
	refused 'a raw event without its PMU' 3 ".*'r1a8' needs a hardware PMU" trace -e r1a8
fi
if [ -d /sys/bus/event_source/devices/msr/format ]; then
	refused 'an unknown term' 2 ".*PMU msr has no term 'tsx'; did you mean 'tsc'\\? at column 5" trace -e msr/tsx/
fi
