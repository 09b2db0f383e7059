#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only
# What selectors, filters, expressions and options mean where it is easy to get them wrong: text that looks
# like a format, strings whose type differs from kernel to kernel, values that are -1, chains without end.
. "$(dirname "$0")/../lib.sh"
cd "$TOP/tests/golden" || exit 1

run() { "$PROFSCRIPT" "$@" --input sched.data; }
run trace -e sched:sched_wakeup,sched:sched_switch >"$TMP/all"
grep sched_wakeup: "$TMP/all" >"$TMP/wakeups"
wakeups=$(grep -c . "$TMP/wakeups")

# lines NAME N ARG...: trace prints N lines
lines() {
	local name=$1 n=$2
	shift 2
	run trace "$@" >"$TMP/out" 2>&1
	echo "$(grep -c . "$TMP/out") lines, not $n" >>"$TMP/out"
	result $(($(grep -c . "$TMP/out") - 1 != n)) "$name" "$TMP/out"
}

# Text of the user is never a format.
run trace -e 'sched:sched_wak*u*//exec=printf("P=%d %s\n",pid,comm)/' >"$TMP/exec"
sed 's/.*comm=\(.*\) pid=\([0-9]*\) .*/P=\2 \1/' "$TMP/wakeups" >"$TMP/want"
check 'a glob hands its attributes on as they are' diff "$TMP/want" <(grep ^P= "$TMP/exec")
lines 'a filter that looks like a format' 0 -e 'sched:sched_wake*/comm~"%s%s%s%s%n%n%n%n"/'
lines 'an alias too' "$wakeups" -e 'sched:sched_wake*//alias="%s%n%d"/'
run multi-trace -e 'sched:sched_wakeup//key=pid/alias="%s%n"/' -e 'sched:sched_switch//key=next_pid/' >"$TMP/out"
expect_line 'which is printed as it is' '^ *%s%n => sched_switch +[0-9]' "$TMP/out"

# Arrays of characters are text, whether the format calls them char or unsigned char.
perf=$(grep -c 'prev_comm=perf ' "$TMP/all")
lines 'a string in a filter' "$perf" -e 'sched:sched_switch/prev_comm == "perf"/'
lines 'and in an expression' "$perf" -e 'sched:sched_switch/prev_comm == "perf" && prev_pid*1>0/'
lines 'a pattern' "$(grep -c 'prev_comm=s[^ ]*pi' "$TMP/all")" -e 'sched:sched_switch/prev_comm ~ "s*pi*" && prev_pid*1>0/'
lines 'any text' "$wakeups" -e 'sched:sched_wakeup/comm ~ "*"/'
lines 'not this text' "$(grep -vc comm=perf- "$TMP/wakeups")" -e 'sched:sched_wakeup/comm != "perf-exec" && pid*1>0/'
lines 'two fields' "$(awk '/sched_switch:/ && /prev_prio=0 .*next_prio=120/' "$TMP/all" | grep -c .)" \
	-e 'sched:sched_switch/prev_prio<next_prio/'

# What an expression cannot do, it says: no signal, no value that another could be.
long=$(printf 'pid+%.0s' $(seq 600))0
run expr -e sched:sched_wakeup "$long" -N 1 >"$TMP/out"
expect_line 'a sum of 600' '^result: 0x2a30 \(10800\)$' "$TMP/out"
expect_line 'a division by zero has no value' '^result: none: a division by zero' \
	<(run expr -e sched:sched_wakeup 'pid / (prio - prio)' -N 1)
lines 'it is no filter that holds' 0 -e 'sched:sched_wakeup/"pid / (prio - prio) || 1"/'
run multi-trace -e 'sched:sched_wakeup//key="pid / (prio - prio)"/' -e sched:sched_switch//key=next_pid/ >"$TMP/out"
check 'and no key' test ! -s "$TMP/out"
check_status 'no address is followed' 2 run expr -e sched:sched_wakeup '*(int *)0'
run multi-trace -e sched:sched_wakeup//key=0-1/ -e sched:sched_switch//key=0-1/ >"$TMP/minus"
run multi-trace -e sched:sched_wakeup//key=7/ -e sched:sched_switch//key=7/ >"$TMP/seven"
check '-1 is a key like any other' diff "$TMP/seven" "$TMP/minus"
run multi-trace -e sched:sched_wakeup//key=0-1/ -e sched:sched_switch//key=0/ >"$TMP/out"
check 'but not 0' test ! -s "$TMP/out"
expect_line '-1 is a result like any other' '^result: 0xffffffffffffffff \(-1\)$' <(run expr -e sched:sched_wakeup 'prio - prio - 1' -N 1)

# Nothing that is given is ignored.
lines 'events of every -e' "$(grep -c . "$TMP/all")" -e sched:sched_wakeup -e sched:sched_switch
lines 'a filter for all of them' "$(grep -c '\[001\]' "$TMP/all")" -e sched:sched_wakeup -e sched:sched_switch --filter '_cpu==1'
run multi-trace --than 1.5ms -e sched:sched_wakeup//key=pid/ -e sched:sched_switch//key=next_pid/ --format csv >"$TMP/short"
run multi-trace --than 1500us -e sched:sched_wakeup//key=pid/ -e sched:sched_switch//key=next_pid/ --format csv >"$TMP/same"
check '1.5ms are 1500us' diff "$TMP/same" "$TMP/short"
run multi-trace --than 1min -e sched:sched_wakeup//key=pid/ -e sched:sched_switch//key=next_pid/ >"$TMP/out"
check 'nothing takes longer than a minute' test "$(grep -c 'sched:' "$TMP/out")" -eq 0
for option in -m-1 -N-1; do
	check_status "$option is no number of anything" 2 run trace -e sched:sched_wakeup $option
done
check_status 'an option of nobody' 2 run trace -e sched:sched_wakeup --tsc
check_status 'the help of a profiler is no failure' 0 "$PROFSCRIPT" trace -h
expect_line 'and goes to stdout' '^usage: profscript trace ' <("$PROFSCRIPT" trace -h 2>/dev/null)
"$PROFSCRIPT" trace -q -e raw_syscalls:sys_enter --input lost.data >"$TMP/quiet" 2>"$TMP/err"
check '-q prints results only' test ! -s "$TMP/err"
"$PROFSCRIPT" trace -e raw_syscalls:sys_enter --input lost.data 2>"$TMP/err" | diff - "$TMP/quiet" >"$TMP/diff"
result $? 'and all of them' "$TMP/diff"
expect_line 'which are not all without it' 'lost [0-9]+ events' "$TMP/err"

# Options of a source are its own.
export PROFSCRIPT_PATH=$TOP/examples
run exec -i 3 -e sched:sched_wakeup 'count()' --format csv >"$TMP/plain"
run exec -i 3 -e 'sched:sched_wakeup,wakeups/-i 1 --top 1 -N 1 --filter pid<0/' 'count()' --format csv >"$TMP/with"
check 'the interval of a source is not that of the run' diff "$TMP/plain" "$TMP/with"

# Breakpoints, also recorded.
"$PROFSCRIPT" exec -e mem:0x40401c:w --input watch.data 'count(("%x"):format(ev._addr), ("%x"):format(ev._ip))' >"$TMP/out"
expect_line 'a recorded breakpoint' '^40401c +40113c +10$' "$TMP/out"
"$PROFSCRIPT" trace -e 'breakpoint/0x40401c -N 4/' --input watch.data >"$TMP/out"
expect_line 'as a source' '^4$' <(grep -c ' breakpoint: 0x40401c/1:W ip [^ ]*$' "$TMP/out")
