#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only
# Selectors, filters, expressions and options whose meaning is easy to get wrong: text that looks like a
# format, strings whose type differs between kernels, values of -1, endless chains.
. "$(dirname "$0")/../../../lib.sh"
cd "$DATA" || exit 1

run() { "$PROFSCRIPT" "$@" --input sched.data; }
run trace -e sched:sched_wakeup,sched:sched_switch >"$TMP/all"
grep sched_wakeup: "$TMP/all" >"$TMP/wakeups"
wakeups=$(grep -c . "$TMP/wakeups")

# lines NAME N ARG...: trace prints N lines
lines() {
	local name=$1 n=$2
	shift 2
	run trace "$@" >"$TMP/out" 2>"$TMP/err"
	echo "$(grep -c . "$TMP/out") lines, not $n" >>"$TMP/out"
	result $(($(grep -c . "$TMP/out") - 1 != n)) "$name" "$TMP/out"
	[ "$n" -gt 0 ] || expect_line "$name: a line says so" '^trace: the filter .* rejected all 123 sched:sched_wakeup$' "$TMP/err"
}

# Text from the user is never a format.
run trace -e 'sched:sched_wak*u*//exec=printf("P=%d %s\n",pid,comm)/' >"$TMP/exec"
sed 's/.*comm=\(.*\) pid=\([0-9]*\) .*/P=\2 \1/' "$TMP/wakeups" >"$TMP/want"
check 'a glob passes its attributes on unchanged' diff "$TMP/want" <(grep ^P= "$TMP/exec")
lines 'a filter that looks like a format' 0 -e 'sched:sched_wake*/comm~"%s%s%s%s%n%n%n%n"/'
lines 'an alias too' "$wakeups" -e 'sched:sched_wake*//alias="%s%n%d"/'
run multi-trace -e 'sched:sched_wakeup//key=pid/alias="%s%n"/' -e 'sched:sched_switch//key=next_pid/' >"$TMP/out"
expect_line 'which is printed unchanged' '^ *%s%n => sched_switch +[0-9]' "$TMP/out"

# Character arrays are text, whether the format declares them as char or unsigned char.
perf=$(grep -c 'prev_comm=perf ' "$TMP/all")
lines 'a string in a filter' "$perf" -e 'sched:sched_switch/prev_comm == "perf"/'
lines 'and in an expression' "$perf" -e 'sched:sched_switch/prev_comm == "perf" && prev_pid*1>0/'
lines 'a pattern' "$(grep -c 'prev_comm=s[^ ]*pi' "$TMP/all")" -e 'sched:sched_switch/prev_comm ~ "s*pi*" && prev_pid*1>0/'
lines 'any text' "$wakeups" -e 'sched:sched_wakeup/comm ~ "*"/'
lines 'not this text' "$(grep -vc comm=perf- "$TMP/wakeups")" -e 'sched:sched_wakeup/comm != "perf-exec" && pid*1>0/'
lines 'two fields' "$(awk '/sched_switch:/ && /prev_prio=0 .*next_prio=120/' "$TMP/all" | grep -c .)" \
	-e 'sched:sched_switch/prev_prio<next_prio/'

# An expression that cannot be evaluated is an error: no signal, and no value that could be valid.
long=$(printf 'pid+%.0s' $(seq 600))0
run expr -e sched:sched_wakeup "$long" -N 1 >"$TMP/out"
expect_line 'a sum of 600' '^result: 0x2a30 \(10800\)$' "$TMP/out"
expect_line 'a division by zero has no value' '^result: none: division by zero' \
	<(run expr -e sched:sched_wakeup 'pid / (prio - prio)' -N 1)
lines 'it is no filter that holds' 0 -e 'sched:sched_wakeup/"pid / (prio - prio) || 1"/'
run multi-trace -e 'sched:sched_wakeup//key="pid / (prio - prio)"/' -e sched:sched_switch//key=next_pid/ >"$TMP/out"
check 'and no key' test ! -s "$TMP/out"
check_status 'no address is dereferenced' 2 run expr -e sched:sched_wakeup '*(int *)0'
run multi-trace -e sched:sched_wakeup//key=0-1/ -e sched:sched_switch//key=0-1/ >"$TMP/minus"
run multi-trace -e sched:sched_wakeup//key=7/ -e sched:sched_switch//key=7/ >"$TMP/seven"
check '-1 is a key like any other' diff "$TMP/seven" "$TMP/minus"
run multi-trace -e sched:sched_wakeup//key=0-1/ -e sched:sched_switch//key=0/ >"$TMP/out"
check 'but not 0' test ! -s "$TMP/out"
expect_line '-1 is a result like any other' '^result: 0xffffffffffffffff \(-1\)$' <(run expr -e sched:sched_wakeup 'prio - prio - 1' -N 1)
