#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only
# Times of recordings on other axes. A recording that perf made while tsc_around ran tells what the TSC was.
. "$(dirname "$0")/../../../lib.sh"
cd "$TMP" || exit 1

# times ARG...: the times in the lines of events, from --input on
times() {
	"$PROFSCRIPT" trace "$@" 2>err | sed -E 's/^[0-9][-0-9]* [0-9:.]* //; s/^[^[]*\[...\] (-?[0-9.]+): .*/\1/'
}

# What tsc_around printed: the TSC before and after each call.
cat >readings <<-END
	12525289192 12526621640
	12526628348 12526656610
	12526656766 12526665658
END
times --input "$DATA/tsc.data" --tsc | paste -d ' ' readings - >tsc
check '--tsc: each call is between the readings around it' \
	awk '!($1 < $3 && $3 < $2) { bad = 1 } END { exit bad || NR != 3 }' tsc
csv trace --input "$DATA/tsc.data" --tsc
column clock | paste -d ' ' tsc - >csv
check '--tsc: CSV has the same cycles' awk '$3 != $4 { bad = 1 } END { exit bad || NR != 3 }' csv
perf report -D -i "$DATA/tsc.data" 2>/dev/null | grep -q 'PERF_RECORD_TIME_CONV'
result $? 'perf finds the relation in the same file'
"$PROFSCRIPT" trace --input "$DATA/tsc.data" --tsc -v >out 2>err
expect_line '-v tells the error' '^trace: the printed times are right to within 1 ns$' err

# Offsets, from exact times: perf prints ns.
perf script -i "$DATA/realtime.data" --ns -F time 2>/dev/null | tr -d ' :.' >ns
for offset in 0 1000 -1000 1500000000 -1795415297000000000 0xff 0xfffffffffffffc18 +77 -0x10; do
	while read -r ns; do
		ns=$((ns + offset)) sign=
		[ $ns -ge 0 ] || ns=$((-ns)) sign=-
		us=$(((ns + 500) / 1000))
		[ $us -gt 0 ] || sign=
		printf '%s%d.%06d\n' "$sign" $((us / 1000000)) $((us % 1000000))
	done <ns >want
	expect_text "--clock-offset $offset" want times --input "$DATA/realtime.data" --clock-offset "$offset"
	expect_text "--clock-offset=$offset" want times --input "$DATA/realtime.data" --clock-offset="$offset"
done
while read -r _ _ tsc; do echo $((tsc - 5)); done <tsc >want
expect_text '--tsc with an offset' want times --input "$DATA/tsc.data" --tsc --clock-offset -5
times --input "$DATA/sched.data" >want
expect_text 'an offset of 0 changes nothing' want times --input "$DATA/sched.data" --clock-offset 0

# Only what is printed with events is converted: neither the wall time nor what is computed from times.
"$PROFSCRIPT" multi-trace -e raw_syscalls:sys_enter -e raw_syscalls:sys_exit -k common_pid --input "$DATA/syscalls.data" >want
expect_text 'latencies stay the same' want \
	"$PROFSCRIPT" multi-trace -e raw_syscalls:sys_enter -e raw_syscalls:sys_exit -k common_pid --input "$DATA/syscalls.data" \
	--clock-offset 5000000000
"$PROFSCRIPT" trace --input "$DATA/realtime.data" | cut -c 1-26 >want
expect_text 'the wall time stays the same' want \
	bash -c "'$PROFSCRIPT' trace --input '$DATA/realtime.data' --clock-offset 5000000000 | cut -c 1-26"
"$PROFSCRIPT" trace --input "$DATA/lost.data" --clock-offset 1000000000000 >out 2>err
expect_line 'losses have the times of the events around them' \
	'lost 3058 events on CPU #0 between 4140.345779 and 4140.385007 s' err

# Clocks that a recording does not relate to its own.
for clock in realtime:CLOCK_REALTIME boottime:CLOCK_BOOTTIME tai:CLOCK_TAI raw:CLOCK_MONOTONIC_RAW; do
	refused "--tsc, ${clock#*:}" 1 "--tsc: the times are ${clock#*:}, and nothing tells how the TSC" \
		trace --input "$DATA/${clock%:*}.data" --tsc
	refused "--monotonic, ${clock#*:}" 1 "--monotonic: the times are ${clock#*:}, and nothing tells" \
		trace --input "$DATA/${clock%:*}.data" --monotonic
done
refused '--tsc, a TSC that perf did not write' 1 '--tsc: the recording does not tell how the TSC relates' \
	trace --input "$DATA/kmem.data" --tsc
refused '--kvmclock' 1 '--kvmclock: a recording does not contain the guest' trace --input "$DATA/sched.data" --kvmclock 1
times --input "$DATA/syscalls.data" >want
expect_text '--monotonic, which they are' want times --input "$DATA/syscalls.data" --monotonic

refused 'no number' 2 "trace: option '--clock-offset': '1s' is not an integer of 64 bits" trace --clock-offset 1s
refused 'a number that is too large' 2 "trace: option '--clock-offset': '99999999999999999999' is not an integer" trace --clock-offset 99999999999999999999
refused 'for a source' 2 "bad event 'task-state/--tsc/': task-state: --tsc is not valid for a source" multi-trace -e 'task-state/--tsc/'
