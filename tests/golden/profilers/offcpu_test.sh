#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only
# offcpu: times and wakers compared with those computed from perf script's text.
. "$(dirname "$0")/../../lib.sh"
export TZ=UTC

# waits RECORDING: "task,state,waker,count,total_ns" of all waits. A wait lasts from the switch from a task to the one
# to it, or to the end of the recording.
waits() {
	perf script -i "$DATA/$1.data" --ns -G -F comm,tid,time,event,trace 2>/dev/null |
		sed -E 's/^ *(.*[^ ]) +([0-9]+) +([0-9]+)\.([0-9]+): +/\1|\2|\3\4|/; s/ ==> / /' |
		awk -F '|' '
			function field(name) {
				if (!match($4, "(^| )" name "=")) return ""
				rest = substr($4, RSTART + RLENGTH)
				match(rest, / [a-z_]+=|$/)
				return substr(rest, 1, RSTART - 1)
			}
			function ended(tid, comm, at) {
				key = comm "," state[tid] "," waker[tid]
				n[key]++; sum[key] += at - since[tid]
				delete since[tid]
			}
			{ last = $3 }
			$4 ~ /sched_wakeup:/ && field("pid") in since {
				waker[field("pid")] = $2 in name ? name[$2] : $1 ~ /^:/ ? "<...>" : $1
			}
			$4 ~ /sched_switch:/ {
				prev = field("prev_pid"); tid = field("next_pid"); s = field("prev_state")
				if (prev > 0) {
					name[prev] = field("prev_comm")
					delete waker[prev]
					if (s !~ /^[XZ]/) { since[prev] = $3; state[prev] = s ~ /^R/ ? "RD" : substr(s, 1, 1) }
				}
				if (tid > 0 && tid in since) ended(tid, field("next_comm"), $3)
			}
			END {
				for (tid in since) ended(tid, name[tid], last)
				for (key in n) print key "," n[key] "," sum[key]
			}' | sort
}

# perf's text does not say what happened in an interrupt.
for recording in sched hogs; do
	waits $recording >"$TMP/want"
	csv offcpu --input "$DATA/$recording.data" --top 1000
	tail -n +2 "$TMP/out" | awk -F, -v OFS=, '{ key = $3 FS $4 FS $5; n[key] += $6; sum[key] += $7 }
		END { for (key in n) print key, n[key], sum[key] }' | sort >"$TMP/got"
	for file in want got; do
		awk -F, -v OFS=, '{ n[$1 FS $2] += $4; sum[$1 FS $2] += $5 } END { for (key in n) print key, n[key], sum[key] }' \
			"$TMP/$file" | sort >"$TMP/$file.states"
	done
	check "$recording: waits by task and state" diff "$TMP/want.states" "$TMP/got.states"
	awk -F, 'NR == FNR { n[$1, $2, $3] = $4; next } $3 !~ /^\[/ && $4 > n[$1, $2, $3]' "$TMP/want" "$TMP/got" >"$TMP/wrong"
	check "$recording: wakers" diff /dev/null "$TMP/wrong"
done
check 'there are preempted tasks, sleeps that other tasks end, and interrupts' \
	bash -c "grep -q ',RD,,' '$TMP/got' && grep -q ',S,[a-z]' '$TMP/got' && grep -q ',D,\[interrupt\],' '$TMP/got'"

csv offcpu --input "$DATA/hogs.data" --top 1000 --than 5ms
check '--than: only long waits' bash -c "[ \$(grep -c . '$TMP/out') -gt 2 ] &&
	tail -n +2 '$TMP/out' | awk -F, '\$7 / \$6 <= 5e6 { exit 1 }'"
check '--top' test "$("$PROFSCRIPT" offcpu --input "$DATA/hogs.data" --top 3 --json 2>/dev/null | wc -l)" -eq 3
"$PROFSCRIPT" offcpu --input "$DATA/mixed.data" >"$TMP/out" 2>"$TMP/err"
expect_line 'a recording without wakeups' \
	'^offcpu: the recording has no sched:sched_wakeup: who woke a task is not known$' "$TMP/err"
"$PROFSCRIPT" offcpu --input "$DATA/mixed.data" --flame-graph "$TMP/off.svg" >"$TMP/out" 2>"$TMP/err"
expect_line 'flame graph: all of the time' "<title>sched-pipe .$(csv offcpu --input "$DATA/mixed.data"; total total_ns) ns, 100.00%" "$TMP/off.svg"
check_status 'flame graph: not a picture' 2 "$PROFSCRIPT" offcpu --input "$DATA/mixed.data" --flame-graph "$TMP/off.png"
