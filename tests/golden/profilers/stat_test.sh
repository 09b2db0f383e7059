#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only
# stat: samples compared with perf script's text, the output with an *.expect file.
. "$(dirname "$0")/../../lib.sh"

# Samples are counted by period and CPU, each once.
for data in sched zstd; do
	"$PROFSCRIPT" stat --period 1ms -i 3 --perins --input "$DATA/$data.data" --format json >"$TMP/json"
	perf script -i "$DATA/$data.data" -F event 2>/dev/null | sort | uniq -c | awk '{ print $2, $1 }' | LC_ALL=C sort >"$TMP/want"
	luajit "$TOP/tests/tools/counts.lua" "$TMP/json" >"$TMP/got"
	check "stat $data: all samples of perf script" diff "$TMP/want" "$TMP/got"
done
expect_output stat sched stat -e sched:sched_switch,sched:sched_wakeup --period 1ms -i 3 --perins
"$PROFSCRIPT" stat --input "$DATA/sched.data" -e 'sched:sched_switch/prev_pid==-5/' >"$TMP/out" 2>"$TMP/err"
expect_line 'stat: no counts' '^stat: nothing to report' "$TMP/err"
