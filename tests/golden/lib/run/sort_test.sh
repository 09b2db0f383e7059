#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only
# --sort: the rows of any table, in text and as data, by a name with or without its unit; a wrong one is refused.
. "$(dirname "$0")/../../../lib.sh"
pairs=(multi-trace --input "$DATA/sched.data" -e sched:sched_wakeup//key=pid/ -e sched:sched_switch//key=next_pid/ --perins)

"$PROFSCRIPT" "${pairs[@]}" --csv >"$TMP/rows" 2>/dev/null
column() { "$PROFSCRIPT" "${pairs[@]}" --csv --sort "$1" 2>/dev/null | sed 1d | cut -d, -f"$2"; }
max=$(head -n 1 "$TMP/rows" | tr , '\n' | grep -nx max_ns | cut -d: -f1)
check 'values, from the largest' diff <(column max "$max") <(sed 1d "$TMP/rows" | cut -d, -f"$max" | sort -rn)
check 'the whole name' diff <(column max "$max") <(column MAX_NS "$max")
check 'keys, in their order' diff <(column key 3) <(sed 1d "$TMP/rows" | cut -d, -f3 | sort -n)
check 'there are several rows' test "$(wc -l <"$TMP/rows")" -gt 4
"$PROFSCRIPT" "${pairs[@]}" --sort max 2>/dev/null | sed 1,3d |
	awk 'BEGIN { of["ns"] = 1; of["us"] = 1e3; of["ms"] = 1e6 } { print $(NF - 1) * of[$NF] }' >"$TMP/shown"
check 'text, too' diff "$TMP/shown" <(sort -rn "$TMP/shown")
refused 'a column that no table has' 2 "multi-trace: --sort: no table has a column 'cals'; did you mean 'calls'.; there are key, " \
	"${pairs[@]}" --sort cals
"$PROFSCRIPT" "$TOP/examples/wakeups.lua" --input "$DATA/sched.data" --sort pid --csv 2>/dev/null | sed 1d | cut -d, -f3 >"$TMP/pids"
check 'counts, by their key' diff "$TMP/pids" <(sort -n "$TMP/pids")
check 'one-liners have their own' diff \
	<("$PROFSCRIPT" exec --input "$DATA/sched.data" -e sched:sched_switch 'count(ev.next_comm)' --sort key --csv 2>/dev/null | sed 1d | cut -d, -f3) \
	<("$PROFSCRIPT" exec --input "$DATA/sched.data" -e sched:sched_switch 'count(ev.next_comm)' --csv 2>/dev/null | sed 1d | cut -d, -f3 | LC_ALL=C sort)
