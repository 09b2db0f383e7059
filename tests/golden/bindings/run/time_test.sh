#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only
# --time reads a part of a recording: the events that perf script prints with the same times, of files and of pipes.
. "$(dirname "$0")/../../../lib.sh"
events=(-e 'sched:*,raw_syscalls:*')

# names ARG...: the names of the events that trace prints, in their order
names() { "$PROFSCRIPT" trace "$@" 2>"$TMP/err" | grep -o ' [a-z_]*:[a-z_]*: ' | tr -d ' '; }
perf script -i "$DATA/nap.data" --ns -F time 2>/dev/null | tr -d ' :' >"$TMP/times"
n=$(wc -l <"$TMP/times")
from=$(sed -n "$((n / 4))p" "$TMP/times") till=$(sed -n "$((n / 2))p" "$TMP/times")
for time in "$from,$till" "$from," ",$till" "0,99999" "$till,$till"; do
	perf script -i "$DATA/nap.data" --time "$time" -F event 2>/dev/null | tr -d ' ' >"$TMP/want"
	names "${events[@]}" --input "$DATA/nap.data" --time "$time" | sed 's/$/:/; s/::$/:/' >"$TMP/got"
	[ -s "$TMP/want" ] || echo 'perf has none' >>"$TMP/want"
	check "--time $time: the events of perf" diff "$TMP/want" "$TMP/got"
done
names "${events[@]}" --input - --time "$from,$till" <"$DATA/nap.data" >"$TMP/got"
names "${events[@]}" --input "$DATA/nap.data" --time "$from,$till" >"$TMP/want"
check 'from a pipe' diff "$TMP/want" "$TMP/got"

# The parts of a recording have all of its events, and intervals begin with the part.
count() { "$PROFSCRIPT" exec --csv -q "${events[@]}" 'count()' --input "$DATA/nap.data" "$@" 2>/dev/null | tail -n +2 | awk -F, '{ n += $NF } END { print n + 0 }'; }
just_before=${till%?}$((${till: -1} > 0 ? ${till: -1} - 1 : 0))
echo "$(count --time ",$just_before") + $(count --time "$till," -i 3) = $(count)" >"$TMP/sum"
check 'two parts are the whole' test $(($(count --time ",$just_before") + $(count --time "$till," -i 3))) -eq "$(count)"

"$PROFSCRIPT" exec -e sched:sched_switch 'count()' --input "$DATA/nap.data" --time 9999, >"$TMP/got" 2>"$TMP/err"
expect_line 'a part without events' '^exec: nothing to report: the recording has no sched:sched_switch in the part of --time$' "$TMP/err"
"$PROFSCRIPT" export -q "$DATA/nap.data" --time "$from,$till" -o "$TMP/part.json" 2>"$TMP/err"
result $? 'a part is exported' "$TMP/err"
for wrong in 5 7,5 a,b 1.1234567890,; do
	refused "--time $wrong" 2 "trace: option '--time': '$wrong' is not two times in seconds" trace --time "$wrong" --input "$DATA/nap.data"
done
refused 'live events' 2 'trace: --time is only for recordings' trace --time 1,2 -e sched:sched_switch
