#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only
# nested-trace: numbers compared with those computed from perf script's text, outputs with *.expect files.
. "$(dirname "$0")/../../lib.sh"
export TZ=UTC

# shellcheck disable=SC2054 # commas join the events
nested=(nested-trace -e irq:softirq_entry,irq:softirq_exit -e timer:timer_expire_entry,timer:timer_expire_exit)
expect_output nested-trace timers "${nested[@]}"
expect_output nested-trace-call timers "${nested[@]}" --impl call
expect_output nested-trace-delay timers "${nested[@]}" --impl delay --perins
perf_text timers | awk '
	$3 == "irq:softirq_entry:" { at[$1] = $2; timer[$1] = 0 }
	$3 == "timer:timer_expire_entry:" { t[$1] = $2 }
	$3 == "timer:timer_expire_exit:" && $1 in t { timers++; all += $2 - t[$1]; timer[$1] += $2 - t[$1]; delete t[$1] }
	$3 == "irq:softirq_exit:" && $1 in at { n++; sum += $2 - at[$1]; own += $2 - at[$1] - timer[$1]; delete at[$1] }
	END { print "softirq_entry," n "," sum "," own; print "timer_expire_entry," timers "," all "," all }' >"$TMP/want"
"$PROFSCRIPT" "${nested[@]}" --input "$DATA/timers.data" --format csv | tail -n +2 | cut -d, -f3,6-8 >"$TMP/got"
check 'nested-trace: numbers' diff "$TMP/want" "$TMP/got"

# Details of calls: the events within them, on the same CPU. Each call of more than 20 us is shown with all
# events of its CPU from its start to its end.
expect_output nested-trace-detail timers "${nested[@]}" --than 20us --detail=samecpu,-20us,+10us
perf_text timers | awk '
	{ line[$1, ++n[$1]] = $3; time[$1, n[$1]] = $2 }
	$3 == "irq:softirq_entry:" { at[$1] = n[$1] }
	$3 == "irq:softirq_exit:" && $1 in at {
		if ($2 - time[$1, at[$1]] > 20000) for (i = at[$1]; i <= n[$1]; i++) print line[$1, i]
		delete at[$1] }' >"$TMP/want"
"$PROFSCRIPT" "${nested[@]}" --than 20us --detail=samecpu --input "$DATA/timers.data" |
	grep -oE '(irq:softirq|timer:timer)_(expire_)?(entry|exit):' >"$TMP/got"
check 'nested-trace --detail: the events within long calls' diff "$TMP/want" "$TMP/got"
check 'nested-trace --detail: calls within them' grep -q timer_expire_exit "$TMP/got"
expect_line 'nested-trace: the events before' '^-Previous -[0-9]+\.[0-9]{3} us$' "$HERE/nested-trace-detail.expect"
expect_line 'and after' '^`After [0-9]+\.[0-9]{3} us$' "$HERE/nested-trace-detail.expect"
"$PROFSCRIPT" "${nested[@]}" --than 20us --detail=samekey --format json --input "$DATA/timers.data" >"$TMP/json"
expect_line 'nested-trace --detail: as JSON' '"event":"timer:timer_expire_entry",.*"part":"between","offset_ns":[0-9]+' "$TMP/json"
"$PROFSCRIPT" nested-trace -e irq:softirq_entry,irq:softirq_exit,timer:timer_expire_entry//untraced/ --than 20us --detail=samecpu \
	--input "$DATA/timers.data" >"$TMP/out" 2>"$TMP/err"
expect_line 'nested-trace: untraced events' '^\|.* timer:timer_expire_entry: ' "$TMP/out"
check 'nested-trace: which are not calls' test "$(grep -cE '^ *\|-' "$TMP/out")" -eq 0
check 'nested-trace: no warnings' diff /dev/null "$TMP/err"
check_status 'nested-trace: an unknown word of --detail' 2 "$PROFSCRIPT" "${nested[@]}" --than 1us --detail=samecup \
	--input "$DATA/timers.data"
"$PROFSCRIPT" "${nested[@]}" --detail --input "$DATA/timers.data" 2>&1 >/dev/null | grep -c 'shows nothing without' >"$TMP/n"
check 'nested-trace: --detail without --than is reported' test "$(cat "$TMP/n")" -eq 1
check 'a recording that loses half of it' luajit "$TOP/tests/tools/lose.lua" "$DATA/timers.data" "$TMP/timers50.data" 50 1
"$PROFSCRIPT" "${nested[@]}" --than 2us --detail=samecpu --input "$TMP/timers50.data" >"$TMP/out" 2>"$TMP/err"
expect_line 'nested-trace: a call whose end may be lost' '^\| >= +[0-9]+\.[0-9]{3} us, event2 may be lost\.$' "$TMP/out"
expect_line 'nested-trace: dropped calls are reported' '^nested-trace: [0-9]+ calls dropped \(' "$TMP/err"

# The heat maps contain each call once: their count and total time are those of the table.
"$PROFSCRIPT" "${nested[@]}" --heatmap "$TMP/nest" --format csv --input "$DATA/timers.data" 2>/dev/null |
	awk -F, 'NR > 1 { print $3, $6, $7 }' | sed 's/timer_expire_entry/& timer_expire_exit/; s/softirq_entry/& softirq_exit/' >"$TMP/want"
for pair in 'softirq_entry softirq_exit' 'timer_expire_entry timer_expire_exit'; do
	awk -v name="$pair" '{ n++; sum += $2 } END { print name, n, sum }' "$TMP/nest-${pair/ /-}.lat"
done >"$TMP/got"
check 'nested-trace --heatmap' diff "$TMP/want" "$TMP/got"

# -vv prints every event, as trace does.
"$PROFSCRIPT" trace --input "$DATA/timers.data" >"$TMP/want"
"$PROFSCRIPT" "${nested[@]}" -vv --input "$DATA/timers.data" 2>/dev/null | grep -E '^20.* (irq|timer):' >"$TMP/got"
check 'nested-trace -vv: every event' diff "$TMP/want" "$TMP/got"
