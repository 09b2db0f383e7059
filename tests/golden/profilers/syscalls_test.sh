#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only
# syscalls: numbers compared with those computed from perf script's text, outputs with *.expect files.
. "$(dirname "$0")/../../lib.sh"
export TZ=UTC
calls=(-e raw_syscalls:sys_enter -e raw_syscalls:sys_exit)

expect_output syscalls nap syscalls
expect_output syscalls-threads nap syscalls --perins --than 1ms
expect_output syscalls-impl nap multi-trace "${calls[@]}" --impl syscalls
check 'multi-trace --impl syscalls is syscalls' diff "$HERE/syscalls.expect" "$HERE/syscalls-impl.expect"
perf script -i "$DATA/nap.data" --ns -G -F tid,time,event,trace 2>/dev/null |
	sed -E 's/^ *([0-9]+) +([0-9]+)\.([0-9]+): +/\1 \2\3 /' |
	awk '$3 == "raw_syscalls:sys_enter:" { nr[$1] = $5; at[$1] = $2 }
		$3 == "raw_syscalls:sys_exit:" && $1 in at && nr[$1] == $5 {
			n[$5]++; sum[$5] += $2 - at[$1]; err[$5] += $7 < 0 && $7 >= -4095; delete at[$1] }
		END { for (i in n) print i "," n[i] "," sum[i] "," err[i] }' | sort >"$TMP/want"
"$PROFSCRIPT" syscalls --input "$DATA/nap.data" --format json |
	sed -E 's/.*"nr":([0-9]+),"calls":([0-9]+),"total_ns":([0-9]+),.*"err":([0-9]+).*/\1,\2,\3,\4/' |
	grep -v '^231,' | sort >"$TMP/got" # exit_group does not return
check 'syscalls: numbers' diff "$TMP/want" "$TMP/got"
expect_line 'exit_group lasts until the task ends' '^exit_group\(231\) +1 ' "$HERE/syscalls.expect"

"$PROFSCRIPT" syscalls -vv --input "$DATA/nap.data" 2>/dev/null | grep -c ' raw_syscalls:sys_' >"$TMP/got"
perf script -i "$DATA/nap.data" -F event 2>/dev/null | grep -c 'raw_syscalls:sys_' >"$TMP/want"
check 'syscalls -vv: its events' diff "$TMP/want" "$TMP/got"

# Names of system calls, in the lines of slow calls and in filters.
"$PROFSCRIPT" syscalls --than 20ms --input "$DATA/nap.data" >"$TMP/out"
expect_line 'the name of a slow call' 'raw_syscalls:sys_enter: NR 230 clock_nanosleep \(0, 0, 7ffe4386b860, 7ffe4386b8a0, 0, 1\)$' "$TMP/out"
expect_line 'and at its end' 'raw_syscalls:sys_exit: NR 230 clock_nanosleep = 0$' "$TMP/out"
for filter in 'id==openat' '(id == openat && args[0] != 0) || id ==openat'; do
	check "--filter $filter" diff <("$PROFSCRIPT" trace -e raw_syscalls:sys_enter --filter id==257 --input "$DATA/nap.data") \
		<("$PROFSCRIPT" trace -e raw_syscalls:sys_enter --filter "$filter" --input "$DATA/nap.data")
done
refused 'an unknown name' 2 "bad filter of raw_syscalls:sys_enter 'id==opena': .*opena.*id is the number or the name of a system call" \
	trace -e raw_syscalls:sys_enter --filter id==opena --input "$DATA/nap.data"
