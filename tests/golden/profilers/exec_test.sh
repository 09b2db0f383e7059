#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only
# exec: counts and sums compared with perf script's text, outputs with *.expect files.
. "$(dirname "$0")/../../lib.sh"

one_liner() {
	"$PROFSCRIPT" exec --input "$DATA/$1.data" "${@:3}" "$2"
}
perf script -i "$DATA/sched.data" -F trace 2>/dev/null | sed -n 's/.*next_comm=\(.*\) next_pid.*/\1/p' | sort |
	uniq -c | awk '{ n = $1; sub(/^ *[0-9]+ /, ""); print $0 "," n }' | sort >"$TMP/want"
one_liner sched 'count(ev.next_comm)' -e sched:sched_switch --format csv | tail -n +2 | cut -d, -f3- | sort >"$TMP/got"
check 'exec: count by a name' diff "$TMP/want" "$TMP/got"
perf script -i "$DATA/syscalls.data" -F trace 2>/dev/null |
	awk '$1 == "NR" && $3 == "=" && $4 > 0 && $4 < 100000 { sum[$2] += $4 } END { for (i in sum) print i "," sum[i] }' |
	sort >"$TMP/want"
one_liner syscalls 'if ev.ret > 0 and ev.ret < 100000 then sum(ev.ret, ev.id) end' -e raw_syscalls:sys_exit \
	--format csv | tail -n +2 | sed 's/^".*",//' | cut -d, -f2- | sort >"$TMP/got"
check 'exec: sum by a number' diff "$TMP/want" "$TMP/got"
expect_output exec-count sched exec -e sched:sched_switch 'count(ev.next_comm, ev.next_pid)'
expect_output exec-hist syscalls exec -e raw_syscalls:sys_exit 'hist(ev.ret)'
expect_output exec-quantiles zstd exec -e raw_syscalls:sys_exit 'quantiles(ev.ret, ev.id)'
expect_output exec-stats zstd exec -e raw_syscalls:sys_exit 'stats(ev.ret, ev.id)'
expect_output exec-sum syscalls exec -e raw_syscalls:sys_exit 'if ev.id == 0 then sum(ev.ret, ev._comm) end'
expect_output exec-print pipe exec -N 5 'print(ev._event, ev._tid, ev.id) printf("%d\n", ev._cpu)'
expect_output exec-interval sched exec -i 4ms -e sched:sched_wakeup 'count()'

# Maps of values, as in bpftrace: the last one of each key, printed at the end, and what is deleted.
perf script -i "$DATA/sched.data" -F trace 2>/dev/null |
	sed -n 's/.*next_comm=\(.*\) next_pid=\([0-9]*\) .*/\1,\2/p' | awk -F, '{ last[$1] = $2 } END { for (i in last) print i "," last[i] }' |
	sort >"$TMP/want"
one_liner sched '@last[args->next_comm] = args->next_pid' -e sched:sched_switch --csv | tail -n +2 | cut -d, -f3- | sort >"$TMP/got"
check 'exec: a map of values' diff "$TMP/want" "$TMP/got"
one_liner sched '@last[args->next_comm] = args->next_pid' -e sched:sched_switch --csv --top 1 >"$TMP/got"
check 'exec: the largest of them' test "$(cut -d, -f4 "$TMP/got")" = "value
$(cut -d, -f2 "$TMP/want" | sort -n | tail -n 1)"
one_liner syscalls 'if probe == "raw_syscalls:sys_enter" then @at[tid] = nsecs elseif @at[tid] then @n++; delete(@at[tid]) end' \
	-e raw_syscalls:sys_enter,raw_syscalls:sys_exit --csv >"$TMP/got"
pairs=$("$PROFSCRIPT" multi-trace -k common_pid -e raw_syscalls:sys_enter -e raw_syscalls:sys_exit --csv \
	--input "$DATA/syscalls.data" | grep -o 'sys_enter,sys_exit,[0-9]*' | cut -d, -f3)
check 'exec: what is deleted has no value' grep -q ",${pairs:-none}\$" "$TMP/got"

# Addresses are in hexadecimal, also as the least or the greatest value of others.
addresses=$(perf script -i "$DATA/kmem.data" -F trace 2>/dev/null | sed -n 's/.* ptr=\(0x[0-9a-f]*\) bytes.*/\1/p' | sort)
for end in min:head max:tail; do
	most=$("${end#*:}" -n 1 <<<"$addresses")
	one_liner kmem "${end%:*}(ev.ptr)" -e kmem:kmalloc >"$TMP/out"
	expect_line "exec: ${end%:*} of an address" "^ *$most\$" "$TMP/out"
	"$PROFSCRIPT" sql --input "$DATA/kmem.data" -e kmem:kmalloc --query "SELECT ${end%:*}(ptr) AS m FROM kmalloc" >"$TMP/out"
	expect_line "sql: ${end%:*} of an address" "^$most\$" "$TMP/out"
done

# Errors in one-liners.
switch=sched:sched_switch
on_sched() { refused "$@" --input "$DATA/sched.data"; }
on_sched 'Lua that does not parse' 2 "exec: exec:1: unexpected symbol near '='" exec -e $switch 'x = = 1'
on_sched 'Lua that does not end' 2 "exec: exec:.*'end' expected" exec -e $switch 'if true then'
on_sched 'too many keys' 2 'exec: line 1: count takes 0 to 4 arguments' exec -e $switch 'count(1,2,3,4,5)'
on_sched 'a field in Lua' 1 "exec:1: event $switch has no field 'prev_pdi'; did you mean 'prev_pid'" \
	exec -e $switch 'count(ev.prev_pdi)'
on_sched 'an undeclared name' 2 "exec: exec:1: undeclared global 'coun'; did you mean 'count'?" exec 'coun(1)'
on_sched 'an error below str()' 1 "exec:1: event sched:sched_switch has no field 'argv'" \
	exec -e $switch 'print(str(args->argv))'
on_sched 'a wrong row' 1 'exec:1: out:row takes a list of names and values' exec -e $switch 'row(1)'
on_sched 'a name that is computed' 1 "exec:1: event .* has no field 'x1'" exec 'local n = "x" .. 1  print(ev[n])'
on_sched 'a key that is none' 1 'exec:1: a table cannot be a key' exec 'count({})'
"$PROFSCRIPT" exec --input "$DATA/sched.data" -e $switch --begin 'last = {}' 'x = 1 - last[1]' 2>"$TMP/err"
expect_line 'nil in a computation, with the code' 'exec:1: attempt to perform arithmetic on a nil value: x = 1 - last.1.$' "$TMP/err"
on_sched 'a sum of text' 1 'exec:1: sum takes numbers, not a string' exec 'sum("a")'
on_sched 'a histogram of nothing' 1 'exec:1: hist takes numbers, not a nil' exec 'hist(nil)'
partly 'an error in between' 1 'exec:1: boom$' '^ +48$' exec --input "$DATA/sched.data" 'count() if ev._time > 7.6e6 then error("boom") end'

# Values that stay between events, and code before and after them.
enter=raw_syscalls:sys_enter
events=$(perf script -i "$DATA/syscalls.data" 2>/dev/null | grep -c sys_enter)
one_liner syscalls 'n = n + 1 seen[ev.id] = true' -e $enter --begin 'n, seen = 0, {}' \
	--end 'local ids = 0 for _ in pairs(seen) do ids = ids + 1 end print(n, ids)' >"$TMP/out"
ids=$(perf script -i "$DATA/syscalls.data" -F trace,event 2>/dev/null | sed -n 's/.*sys_enter: *NR \([0-9]*\).*/\1/p' | sort -u | wc -l)
expect_line 'exec: --begin and --end' "^$events	$ids\$" "$TMP/out"
one_liner syscalls 'n = (n or 0) + 1 count()' -e $enter --end 'print(n)' >"$TMP/out"
expect_line 'exec: a value is nil at first, and --end is before the tables' "^$events\$" <(head -n 1 "$TMP/out")
on_syscalls() { refused "$@" --input "$DATA/syscalls.data"; }
on_syscalls 'a name that nothing assigns' 2 "exec: exec:1: undeclared global 'm'; did you mean 'n'?" \
	exec -e $enter 'n = (m or 0) + 1'
on_syscalls 'code at the end that does not parse' 2 "exec: exec:1: unexpected symbol" exec -e $enter 'n = 1' --end '1'
