#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only
# A thread that has ended still runs until its last switch. The kernel has no ids for it then.
# Runs alone.
. "$(dirname "$0")/../../../lib.sh"
needs_tracepoint sched:sched_switch

workload threads 20
process=$WORKLOAD
trace_workload trace -m 1024 -e sched:sched_switch --format json
grep '"prev_comm":"threads"' "$TMP/out" | grep -E '"prev_state":(16|32|48),' >"$TMP/last"
check 'the last switches of its threads are there' test "$(grep -vc '"prev_pid":'"$process," "$TMP/last")" -ge 40
grep -v '"comm":"threads"' "$TMP/last" >"$TMP/unnamed"
check 'they have its name' test ! -s "$TMP/unnamed"
sed -nE 's/.*"tid":(-?[0-9]+),.*"prev_pid":([0-9]+),.*/\1 \2/p' "$TMP/last" | awk '$1 != $2' >"$TMP/wrong"
check 'and their own id' test ! -s "$TMP/wrong"
grep -v '"pid":'"$process," "$TMP/last" | grep -c . >"$TMP/others"
check 'and that of the process, but for its child' test "$(<"$TMP/others")" -eq 1
expect_line 'nothing has no id' '^0$' - < <(grep -c '"[pt]id":-1' "$TMP/out")
