#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only
# nested-trace: functions within functions, by probes.
. "$(dirname "$0")/../../lib.sh"
needs_tracepoint sched:sched_switch
[ -w /sys/kernel/tracing/uprobe_events ] && [ -r /sys/bus/event_source/devices/uprobe/type ] ||
	skip_all 'no uprobes (CONFIG_UPROBE_EVENTS, uprobe PMU)'
program=$TOP/build/workloads/relations
at=@\"$program\"

functions=()
for f in outer inner factorial; do
	functions+=(-e "uprobe:$f$at//alias=$f/,uretprobe:$f$at")
done
"$PROFSCRIPT" nested-trace -m 1024 "${functions[@]}" --format csv -- "$program" 500 >"$TMP/out" 2>"$TMP/err"
result $? 'it runs' "$TMP/err"
cut -d, -f3-6 "$TMP/out" | tail -n +2 | sort >"$TMP/got"
printf '%s\n' 'factorial,true,1,1500' 'inner,false,2,1000' 'outer,false,1,500' >"$TMP/want"
check 'calls, and the recursive one' diff "$TMP/want" "$TMP/got"
awk -F, '$3 == "outer" { outer = $7; own = $8 } $3 == "inner" { inner = $7 } END { exit !(own > 0 && own == outer - inner) }' "$TMP/out"
result $? 'self is the total without the calls' "$TMP/out"
"$PROFSCRIPT" nested-trace -m 1024 "${functions[@]}" --impl delay --format csv -- "$program" 500 >"$TMP/out" 2>"$TMP/err"
expect_line '--impl delay' '^latency,.*,inner,.*,1000,' "$TMP/out"

# Each outer calls inner twice, factorial(3) recurses twice, factorial(2) once.
"$PROFSCRIPT" nested-trace -m 1024 "${functions[@]}" --than 1ns --detail=samekey --heatmap "$TMP/calls" --format json \
	-- "$program" 100 >"$TMP/out" 2>"$TMP/err"
result $? '--detail runs' "$TMP/err"
for part in first between second; do
	echo "$part $(grep '"part":"'$part'"' "$TMP/out" | grep -c '"event":"[a-z]*probe:')"
done >"$TMP/got"
printf '%s\n' 'first 600' 'between 1000' 'second 600' >"$TMP/want"
check '--detail: the calls within calls' diff "$TMP/want" "$TMP/got"
wc -l "$TMP"/calls-*.lat | awk '{ sub(/.*calls-/, "", $2); print $2, $1 }' | grep -v total >"$TMP/got"
printf '%s\n' 'factorial-factorial.lat 300' 'inner-inner.lat 200' 'outer-outer.lat 100' >"$TMP/want"
check '--heatmap: each call' diff "$TMP/want" "$TMP/got"
