#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only
# sched: runs, waits and sums as perf sched timehist and perf sched latency print them, and who ran meanwhile.
. "$(dirname "$0")/../../lib.sh"
export TZ=UTC

for recording in schedrecord hogs sched nap; do
	python3 "$TOP/tests/tools/perf_sched.py" "$PROFSCRIPT" "$DATA/$recording.data" >"$TMP/differ" 2>"$TMP/err"
	check "$recording: runs and waits as perf sched prints them" diff /dev/null "$TMP/differ"
	expect_line "$recording: they are compared" '^[0-9]{2,} runs' "$TMP/err"
done
expect_output sched schedrecord sched -q --than 3ms
"$PROFSCRIPT" sched --input "$DATA/schedrecord.data" >"$TMP/out" 2>"$TMP/err"
expect_line 'missing switches are counted' '^sched: the kernel did not report [0-9]+ switches' "$TMP/err"

# Who ran while a task waited takes all of this time, and nobody runs on two CPUs.
for recording in schedrecord hogs; do
	"$PROFSCRIPT" sched -q --input "$DATA/$recording.data" --than 1us --csv 2>/dev/null | grep -a '^sched-wait' >"$TMP/waits"
	check "$recording: the parts of a wait are the wait" awk -F, '
		{ key = $2 FS $4; wait[key] = $5; ran[key] += $9; n++ }
		END { for (key in wait) if (wait[key] != ran[key]) { print key, wait[key], ran[key]; bad++ } exit bad > 0 || n < 20 }' "$TMP/waits"
done

# With lost events less is known, but nothing else: each run and wait is one of the whole recording.
runs() { "$PROFSCRIPT" sched -q --input "$1" --runs --csv 2>/dev/null | grep -a '^sched-run' | cut -d, -f "$2" | sort; }
whole() { runs "$1" 2-9 | grep -v ',-'; }
waits() { "$PROFSCRIPT" sched -q --input "$1" --than 1ns --csv 2>/dev/null | grep -a '^sched-wait' | cut -d, -f 2-5 | sort -u; }
for seed in 1 2 3; do
	luajit "$TOP/tests/tools/lose.lua" "$DATA/hogs.data" "$TMP/lost.data" 10 $seed >/dev/null
	for what in runs whole waits; do
		$what "$DATA/hogs.data" 2-5,9 >"$TMP/all"
		$what "$TMP/lost.data" 2-5,9 >"$TMP/some"
		check "losses $seed: no other $what" diff /dev/null <(comm -13 "$TMP/all" "$TMP/some")
		check "losses $seed: fewer $what" test $(($(wc -l <"$TMP/some") * 10)) -gt $(($(wc -l <"$TMP/all") * 4))
	done
	check "losses $seed: they are holes" bash -c "'$PROFSCRIPT' sched -q --input '$TMP/lost.data' --csv | grep -a '^sched-cpu' |
		awk -F, '\$8 > 0 { found = 1 } END { exit !found }'"
done
check '-t: only the waits of this thread' bash -c "[ \"\$('$PROFSCRIPT' sched -q --input '$DATA/schedrecord.data' -t 32617 \\
	--than 1us --csv | grep -a '^sched-wait' | cut -d, -f 4 | sort -u)\" = 32617 ]"

# The timelines show the same waits.
"$PROFSCRIPT" export -q "$DATA/schedrecord.data" -o "$TMP/t.html" 2>"$TMP/err"
check 'a timeline has the same waits' test "$(grep -o '"waits":{"n":[0-9]*' "$TMP/t.html" | grep -o '[0-9]*$')" = \
	"$("$PROFSCRIPT" sched -q --input "$DATA/schedrecord.data" --top 1000 --csv | awk -F, '/^sched-task/ { n += $5 } END { print n }')"
