#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only
# num-dist: the numbers of an exact number of events.
# Runs alone.
. "$(dirname "$0")/../../lib.sh"
needs_tracepoint raw_syscalls:sys_enter sched:sched_switch
syscalls=$TOP/build/workloads/syscalls
call=raw_syscalls:sys_enter/id==$GETPPID

csv num-dist -m 1024 -e "$call/num=id/" -e "$call/num=-id*2/alias=twice/" -- "$syscalls" 3000
rows 'a number' "c[\"event\"] == \"sys_enter\" && c[\"calls\"] == 3000 && c[\"total\"] == 3000 * $GETPPID"
rows 'its bounds' "c[\"event\"] == \"sys_enter\" && c[\"min\"] == $GETPPID && c[\"max\"] == $GETPPID"
rows 'negative numbers' \
	"c[\"event\"] == \"twice\" && c[\"total\"] == -6000 * $GETPPID && c[\"p99\"] == -2 * $GETPPID && c[\"avg\"] == c[\"max\"]"
csv num-dist -e "$call/num=id/" --perins -- "$syscalls" 10
rows '--perins: the thread' 'c["instance"] > 1 && c["calls"] == 10'
"$PROFSCRIPT" num-dist -e "$call/num=id/" --than $((GETPPID - 1)) -- "$syscalls" 7 >"$TMP/out"
check '--than prints the events' test "$(grep -c "sys_enter: NR $GETPPID" "$TMP/out")" = 7
for than in 5ms 5000000; do
	"$PROFSCRIPT" num-dist -e "$call/num='id+5000000'/" --than $than -- "$syscalls" 7 >"$TMP/out"
	check "--than $than" test "$(grep -c "sys_enter: NR $GETPPID" "$TMP/out")" = 7
done
"$PROFSCRIPT" num-dist -e "$call/num='id+5000000'/" --than 6ms -- "$syscalls" 7 >"$TMP/out"
check '--than 6ms' test "$(grep -c "sys_enter: NR $GETPPID" "$TMP/out")" = 0
refused '--than with a wrong unit' 2 "num-dist: option '--than': '5mm' is not a number" num-dist -e "$call/num=id/" --than 5mm
total_is_perfs calls num-dist -e raw_syscalls:sys_enter//num=id/
check_status 'it needs num=' 2 "$PROFSCRIPT" num-dist -e sched:sched_switch -- true
check_status 'it needs a number' 2 "$PROFSCRIPT" num-dist -e sched:sched_switch//num=next_comm/ -- true
ends_on_ctrl_c num-dist -e sched:sched_switch//num=next_pid/
