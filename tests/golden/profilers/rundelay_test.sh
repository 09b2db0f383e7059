#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only
# rundelay: numbers compared with those computed from perf script's text, outputs with *.expect files.
. "$(dirname "$0")/../../lib.sh"
export TZ=UTC
expect_output rundelay hogs rundelay
expect_output rundelay-threads hogs rundelay --perins --filter 'timeout,s?'
expect_output rundelay-detail hogs rundelay -e 'sched:sched_wakeup*,sched:sched_switch' \
	-e 'sched:sched_switch,sched:sched_migrate_task//untraced/' --than 9ms --detail=samecpu
# A wait starts when a task is woken, unless it wakes itself or its CPU already runs it, and when it stops although
# it could run (R: its time slice is over, or it yielded; R+: it was preempted).
perf script -i "$DATA/hogs.data" --ns -G -F tid,cpu,time,event,trace 2>/dev/null |
	sed -E 's/^ *([0-9]+) +\[0*([0-9]+)\] +([0-9]+)\.([0-9]+): +/\1 \2 \3\4 /' |
	awk 'function field(name) { match($0, " " name "=[^ ]+"); return substr($0, RSTART + length(name) + 2, RLENGTH - length(name) - 2) }
		$4 ~ /sched_wakeup/ {
			pid = field("pid"); cpu = field("target_cpu") + 0
			if ($4 !~ /_new/ && ($1 == pid || (cpu in runs && runs[cpu] == pid))) next
			kind[pid] = $4; since[pid] = $3 }
		$4 == "sched:sched_switch:" {
			prev = field("prev_pid"); next_ = field("next_pid")
			if (prev > 0 && field("prev_state") ~ /^R/) { kind[prev] = $4; since[prev] = $3 }
			if (next_ in since && since[next_] < $3) { n[kind[next_]]++; sum[kind[next_]] += $3 - since[next_] }
			delete since[next_]
			runs[$2] = next_ }
		END { for (k in n) { name = k; gsub(/sched:|:$/, "", name); print name "," n[k] "," sum[k] } }' | sort >"$TMP/want"
"$PROFSCRIPT" rundelay --input "$DATA/hogs.data" --format csv | tail -n +2 | cut -d, -f3,5,6 | sort >"$TMP/got"
check 'rundelay: numbers' diff "$TMP/want" "$TMP/got"
expect_line 'rundelay: tasks that could run but had to stop' '^sched_switch,[0-9]{2,},' "$TMP/got"
check_status 'rundelay: an event of another kind' 2 "$PROFSCRIPT" rundelay -e sched:sched_wakeup -e sched:sched_migrate_task \
	--input "$DATA/hogs.data"
check_status 'rundelay: too few events' 2 "$PROFSCRIPT" rundelay -e sched:sched_wakeup -e sched:sched_switch \
	--input "$DATA/hogs.data"
# Two of its events are sched_switch, with different filters. A switch that passes both is shown once.
"$PROFSCRIPT" rundelay --than 5ms --detail=samecpu --input "$DATA/hogs.data" >"$TMP/out" 2>"$TMP/err"
awk '/^[0-9]/ { if (++ends % 2) delete seen } # the first event of a pair
	/^[0-9|]/ { if (seen[substr($0, 29)]++) print }' "$TMP/out" >"$TMP/twice"
check 'rundelay: details show each switch once' diff /dev/null "$TMP/twice"
"$PROFSCRIPT" rundelay --filter nosuchtask --input "$DATA/hogs.data" >"$TMP/out" 2>"$TMP/err"
expect_line 'rundelay: no task has the name' \
	"^rundelay: nothing to report: the filter 'comm == \"nosuchtask\"' rejected all 229 sched:sched_wakeup; " "$TMP/err"
check 'and one line says so' test "$(grep -c . "$TMP/err")" -eq 1
