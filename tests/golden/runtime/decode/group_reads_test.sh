#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only
# In a recording of a group ({a,b}:S), the leader's samples hold the counts of all members. The events and
# their periods are those of perf script.
. "$(dirname "$0")/../../../lib.sh"

perf script -i "$DATA/groups.data" --ns -F tid,cpu,time,event,period 2>/dev/null |
	awk '{ gsub(/[][]/, ""); sub(/:$/, "", $3); sub(/:$/, "", $5); print $1, $2 + 0, $3, $4, $5 }' >"$TMP/peer"
"$PROFSCRIPT" exec 'print(ev._tid, ev._cpu, ev._event, ev._period)' --input "$DATA/groups.data" |
	tr '\t' ' ' >"$TMP/ours"
cut -d' ' -f1,2,4,5 "$TMP/peer" | awk '{ print $1, $2, $4, $3 }' >"$TMP/want"
check 'the events and periods of perf script, in its order' diff "$TMP/want" "$TMP/ours"

# One member alone has the same counts: its previous counts are its own.
grep sched_switch "$TMP/want" >"$TMP/switches"
expect_text 'one member alone' "$TMP/switches" bash -c "'$PROFSCRIPT' exec -e sched:sched_switch \
	'print(ev._tid, ev._cpu, ev._event, ev._period)' --input '$DATA/groups.data' | tr '\t' ' '"

# Members have no fields of their own, only the common ones.
"$PROFSCRIPT" trace -e sched:sched_switch --input "$DATA/groups.data" >"$TMP/out" 2>"$TMP/err"
expect_line 'a line says so' '^trace: only the leader of their group was sampled .*:S.: the fields of sched:sched_switch are 0$' "$TMP/err"
check 'once' test "$(wc -l <"$TMP/err")" -eq 1
"$PROFSCRIPT" trace -e sched:sched_wakeup --input "$DATA/groups.data" >/dev/null 2>"$TMP/err"
check 'but not of the leader' test ! -s "$TMP/err"
check 'a member has a line per event' test "$(wc -l <"$TMP/out")" -eq "$(wc -l <"$TMP/switches")"
grep -v 'prev_comm= prev_pid=0 prev_prio=0 prev_state=R ==> next_comm= next_pid=0 next_prio=0$' "$TMP/out" >"$TMP/others"
check 'its fields are 0' test ! -s "$TMP/others"
