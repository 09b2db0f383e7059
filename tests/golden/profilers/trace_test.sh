#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only
# Every event of every recording, as text, JSON and CSV, is what perf script prints for the same file.
. "$(dirname "$0")/../../lib.sh"

# perf's lines for a recording, once for all formats
peer() {
	perf script -i "$1" --ns -G -F +pid 2>/dev/null >"$TMP/peer"
}

for data in "$DATA"/*.data; do
	[[ $data != */groups.data ]] || continue # perf prints the leader's fields as those of the members
	peer "$data"
	formats='text json csv'
	# Numbers in JSON and CSV are doubles, which cannot hold the ns since 1970.
	[[ $data != */realtime.data && $data != */tai.data ]] || formats=text
	for format in $formats; do
		"$PROFSCRIPT" trace --input "$data" --format $format >"$TMP/ours" 2>"$TMP/err"
		check "$(basename "$data"): $format is what perf says" \
			luajit "$TOP/tests/tools/compare.lua" $format "$TMP/peer" "$TMP/ours"
	done
done

# The wall clock: perf prints the time of day with microseconds.
for data in syscalls pipe; do
	perf script -i "$DATA/$data.data" -F tod 2>/dev/null | tr -d ' ' | cut -c1-26 >"$TMP/peer"
	TZ=UTC "$PROFSCRIPT" trace --input "$DATA/$data.data" | cut -c1-26 | tr -d ' ' >"$TMP/ours"
	check "$data: wall times are perf's" diff "$TMP/peer" "$TMP/ours"
done

# Other inputs: standard input as a pipe, and as a file.
"$PROFSCRIPT" trace --input "$DATA/pipe.data" >"$TMP/want"
expect_text 'a pipe on standard input' "$TMP/want" \
	bash -c "cat '$DATA/pipe.data' | '$PROFSCRIPT' trace --input -"
expect_text 'a pipe that comes in pieces' "$TMP/want" \
	bash -c "{ head -c 5000; sleep 0.1; head -c 9001; sleep 0.1; cat; } <'$DATA/pipe.data' |
		'$PROFSCRIPT' trace --input -"
"$PROFSCRIPT" trace --input "$DATA/syscalls.data" >"$TMP/want"
expect_text 'a file on standard input' "$TMP/want" \
	bash -c "'$PROFSCRIPT' trace --input - <'$DATA/syscalls.data'"

# Selecting events: by name, in time order; filters of each event and of all.
perf script -i "$DATA/sched.data" -F event 2>/dev/null | grep -c sched_switch >"$TMP/want"
expect_text 'one of two events' "$TMP/want" \
	bash -c "'$PROFSCRIPT' trace -e sched:sched_switch --input '$DATA/sched.data' | wc -l"
perf script -i "$DATA/sched.data" -F trace 2>/dev/null | grep -c 'next_pid=0 ' >"$TMP/want"
expect_text 'a filter' "$TMP/want" \
	bash -c "'$PROFSCRIPT' trace -e sched:sched_switch/next_pid==0/ --input '$DATA/sched.data' | wc -l"
expect_text '--filter' "$TMP/want" \
	bash -c "'$PROFSCRIPT' trace -e sched:sched_switch --filter next_pid==0 --input '$DATA/sched.data' | wc -l"
perf script -i "$DATA/sched.data" -F trace 2>/dev/null | grep 'prev_comm=sched-pipe' |
	grep -c 'next_pid=0 ' >"$TMP/want"
expect_text 'a filter and --filter' "$TMP/want" bash -c "'$PROFSCRIPT' trace \
	-e 'sched:sched_switch/prev_comm==\"sched-pipe\"/' --filter next_pid==0 --input '$DATA/sched.data' | wc -l"

# The end: -N, and --duration in the time of the recording.
"$PROFSCRIPT" trace --input "$DATA/sched.data" >"$TMP/all"
head -n 7 "$TMP/all" >"$TMP/want"
expect_text '-N 7' "$TMP/want" "$PROFSCRIPT" trace -N 7 --input "$DATA/sched.data"
perf script -i "$DATA/sched.data" --ns -F time 2>/dev/null | awk '
	{ sub(/:/, ""); split($1, t, "."); ns = t[1] * 1e9 + t[2]; if (!n++) first = ns; if (ns - first <= 5e6) kept++ }
	END { print kept }' >"$TMP/kept"
head -n "$(cat "$TMP/kept")" "$TMP/all" >"$TMP/want"
expect_text '--duration 5ms' "$TMP/want" "$PROFSCRIPT" trace --duration 5ms --input "$DATA/sched.data"

# Where the output goes.
expect_text '-o FILE leaves nothing for stdout' /dev/null \
	"$PROFSCRIPT" trace --input "$DATA/sched.data" -o "$TMP/out"
check '-o FILE has all of it' cmp "$TMP/all" "$TMP/out"
"$PROFSCRIPT" trace --input "$DATA/sched.data" -o "$TMP/out"
cat "$TMP/all" "$TMP/all" >"$TMP/want"
check '-o FILE appends' cmp "$TMP/want" "$TMP/out"

# Losses: the sum of the LOST records; perf's sums of the same losses are not counted again.
lost=$(perf script -i "$DATA/lost.data" --show-lost-events 2>/dev/null |
	awk '/PERF_RECORD_LOST / { sum += $NF } END { print sum }')
"$PROFSCRIPT" trace --input "$DATA/lost.data" -v >/dev/null 2>"$TMP/err"
expect_line 'losses are counted once' "^profscript: 108 events, $lost lost, 0 late$" "$TMP/err"
"$PROFSCRIPT" trace --input "$DATA/lost.data" -q >/dev/null 2>"$TMP/err"
check '-q does not mention them' test ! -s "$TMP/err"

# --lost: the events are the same, with or without a message.
lost=(trace --input "$DATA/lost.data")
"$PROFSCRIPT" "${lost[@]}" >"$TMP/want" 2>"$TMP/err"
expect_line 'losses are reported' '^trace: lost 3058 events on CPU #0 between 3140\.345779 and 3140\.385007 s \(3058 in total\)$' "$TMP/err"
expect_text '--lost=ignore: the same events' "$TMP/want" "$PROFSCRIPT" "${lost[@]}" --lost=ignore
check 'and no message' test ! -s "$TMP/.err"
