#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only
# --query: the rows that any profiler prints are tables of SQL, with the columns and values of --csv.
. "$(dirname "$0")/../../../lib.sh"

# same_rows NAME TABLE ARG...: the rows of the only table of --csv
same_rows() {
	local name=$1 table=$2
	shift 2
	"$PROFSCRIPT" "$@" --csv >"$TMP/csv" 2>/dev/null
	"$PROFSCRIPT" "$@" --csv --query "SELECT * FROM $table" >"$TMP/out" 2>"$TMP/err"
	# table,time,... against query,time,time_,...
	sed 's/^[^,]*,//; 1s/^time,/time_,/' "$TMP/csv" >"$TMP/want"
	sed 's/^[^,]*,[^,]*,//' "$TMP/out" | diff "$TMP/want" - >"$TMP/diff"
	result $? "$name: the rows of --csv" "$TMP/diff" "$TMP/err"
	check "$name: there are some" test "$(wc -l <"$TMP/out")" -gt 1
}
wakeups=(-e sched:sched_wakeup//key=pid/ -e sched:sched_switch//key=next_pid/)
same_rows syscalls syscalls syscalls --input "$DATA/syscalls.data"
same_rows multi-trace latency multi-trace --input "$DATA/sched.data" "${wakeups[@]}"
same_rows rundelay latency rundelay --input "$DATA/hogs.data" -i 10
same_rows exec count_ev_next_comm exec --input "$DATA/sched.data" -e sched:sched_switch 'count(ev.next_comm)'
same_rows "a user's script" count "$TOP/examples/wakeups.lua" --input "$DATA/sched.data" -i 2

run() { "$PROFSCRIPT" "$@" >"$TMP/out" 2>"$TMP/err"; }
run syscalls --input "$DATA/syscalls.data" --query 'SELECT syscall, calls FROM syscalls WHERE calls > 20 ORDER BY calls DESC'
expect_line 'text: the statement' '^=== SELECT syscall, calls' "$TMP/out"
check 'text: the rows' diff <(printf 'openat 31\nmmap 22\n') <(awk '/^$/ { exit } p { print $1, $2 } /^--/ { p = 1 }' "$TMP/out")
run syscalls --input "$DATA/syscalls.data" --json --query "SELECT typeof(calls) AS c, typeof(syscall) AS s, typeof(time) AS t FROM syscalls LIMIT 1"
expect_line 'values have types' '"c":"integer","s":"text","t":"real"' "$TMP/out"

run syscalls --input "$DATA/syscalls.data" --csv --query "SELECT unit FROM column_units WHERE table_name = 'syscalls' AND column_name = 'max_ns'"
expect_line 'columns have units' '^query,.*,ns$' "$TMP/out"

# Each interval has its own rows.
"$PROFSCRIPT" exec --input "$DATA/hogs.data" -e sched:sched_switch 'count(ev.next_comm)' -i 10 --csv 2>/dev/null |
	awk -F, 'NR > 1 { n[$2] += $4 } END { for (t in n) print n[t] }' | sort -n >"$TMP/want"
run exec --input "$DATA/hogs.data" -e sched:sched_switch 'count(ev.next_comm)' -i 10 --csv \
	--query 'SELECT sum(count) AS n FROM count_ev_next_comm'
check 'a result for each interval' diff "$TMP/want" <(sed 1d "$TMP/out" | cut -d, -f3 | sort -n)
check 'there are several' test "$(wc -l <"$TMP/want")" -gt 3

# What is printed with out:row, out:print and as events.
cat >"$TMP/rows.lua" <<'END'
return {
  summary = 'rows',
  start = function(_, out)
    return { ['sched:sched_switch'] = function(ev)
      out:row { 'Comm', ev.next_comm, 'comm', ev._cpu, "it's", true, 'nan', 0 / 0 }
      out:print(ev.next_pid)
      out:print_event(ev)
      out:write 'text is not printed\n'
    end }
  end,
}
END
run "$TMP/rows.lua" --input "$DATA/sched.data" --csv --query "SELECT count(Comm) AS a, count(comm_2) AS b,
	sum(\"it's\") AS c, count(nan) AS d FROM \"row\"; SELECT count(text) AS n FROM print; SELECT count(next_comm) AS n FROM sched_switch"
check 'rows, prints and events' diff <(printf '211,211,211,0\n211\n211\n') <(grep -v ^table "$TMP/out" | cut -d, -f3-)
run trace --input "$DATA/sched.data" -e sched:sched_switch --csv --query 'SELECT count(*) AS n FROM sched_switch'
expect_line 'events of trace' '^query,.*,211$' "$TMP/out"

# Profilers declare all that they print, with its columns.
declares() { # PROFILER ARG...
	"$PROFSCRIPT" "$@" -q --csv >"$TMP/csv" 2>"$TMP/err"
	run "$@" --dry-run --query 'SELECT 1 FROM nosuch'
	sed -n 's/.*; there are //p' "$TMP/err" | tr -d ' ' | tr , '\n' >"$TMP/declared"
	cut -d, -f1 "$TMP/csv" | grep -vx 'table\|event' | sed 's/^[a-z_]*://; s/[^a-zA-Z0-9_]\+/_/g; s/_$//' | sort -u >"$TMP/names"
	cat "$TMP/names" >>"$TMP/err"
	check "$1: prints something" test -s "$TMP/names"
	check "$1: all is declared" sh -c 'for name in $(cat "$1"); do grep -qx "$name" "$2" || exit 1; done' - "$TMP/names" "$TMP/declared"
}
declares rundelay --input "$DATA/hogs.data" --than 1ms
declares multi-trace --input "$DATA/sched.data" "${wakeups[@]}" --perins
declares multi-trace --input "$DATA/sched.data" "${wakeups[@]}" --impl pair
declares nested-trace --input "$DATA/timers.data" -e irq:softirq_entry,irq:softirq_exit
declares nested-trace --input "$DATA/timers.data" -e irq:softirq_entry,irq:softirq_exit --impl call
declares syscalls --input "$DATA/syscalls.data" --than 1us
declares task-state --input "$DATA/sched.data" --than 1us
declares oncpu --input "$DATA/sched.data"
declares sched-migrate --input "$DATA/migrate.data"
declares kmemleak --input "$DATA/kmem.data" --alloc kmem:kmalloc --free kmem:kfree
declares kmemprof --input "$DATA/kmem.data" -e kmem:kmalloc//size=bytes_alloc/ -e kmem:kfree -k ptr
declares event-lost --input "$DATA/lost.data"
declares expr --input "$DATA/sched.data" -e sched:sched_switch next_pid
declares exec --input "$DATA/sched.data" -e sched:sched_switch 'print(1) count(ev.next_comm) hist(ev.prev_pid)'
declares num-dist --input "$DATA/sched.data" -e sched:sched_switch//num=next_pid/
declares percpu-stat --input "$DATA/panel.data"
declares profile --input "$DATA/mixed.data"

run multi-trace --input "$DATA/sched.data" "${wakeups[@]}" --than 1us --detail --csv \
	--query 'SELECT count(DISTINCT part) > 0 AS parts, count(offset_ns) AS offsets FROM sched_switch'
expect_line 'columns that only some events have' '^query,.*,1,[1-9][0-9]*$' "$TMP/out"
run exec --input "$DATA/sched.data" -e sched:sched_switch 'count()' --perfeval-cpus 0,1 -i 1 --csv \
	--query 'SELECT max(sampled) > 0 AS some, count(id) AS ids FROM perfeval'
expect_line 'the counts of --perfeval-cpus' '^query,.*,1,0$' "$TMP/out"

# Mistakes.
refuses() { # NAME SQL PATTERN [ARG...]
	run "${@:4}" --query "$2"
	check "$1: exit 2" test $? = 2
	expect_line "$1: what is wrong" "$3" "$TMP/err"
	check "$1: no output" test ! -s "$TMP/out"
}
call=(syscalls --input "$DATA/syscalls.data")
refuses 'a column' 'SELECT cals FROM syscalls' "no such column: cals at column 8; did you mean 'calls'\\?" "${call[@]}"
refuses 'a table' 'SELECT syscall FROM syscall' "no such table: syscall at column 21; did you mean 'syscalls'\\?" "${call[@]}"
refuses 'another table' 'SELECT 1 FROM x' 'no such table: x at column 15; there are syscalls$' "${call[@]}"
refuses 'events that are not printed' 'SELECT 1 FROM sys_enter' 'no such table: sys_enter at column 15; there are syscalls$' \
	"${call[@]}"
refuses 'events of BPF programs' 'SELECT 1 FROM ring' 'no such table: ring .*; there are ' profile --input "$DATA/mixed.data"
run "${call[@]}" --than 1us --csv --query 'SELECT count(*) > 0 AS n FROM sys_enter'
expect_line 'events that are printed' '^query,.*,1$' "$TMP/out"
run "${call[@]}" -vv --csv --query 'SELECT count(*) > 0 AS n FROM sys_enter'
expect_line 'events that -vv prints' '^query,.*,1$' "$TMP/out"
refuses 'syntax' 'SELEC 1' 'near "SELEC": syntax error at column 1$' "${call[@]}"
refuses 'writing' 'DELETE FROM syscalls' 'DELETE is not allowed' "${call[@]}"
refuses 'no statement' ' -- ' 'query has no statement$' "${call[@]}"
refuses 'before tracing' 'SELECT cals FROM syscalls' 'no such column: cals' "${call[@]}" --dry-run
refuses 'before tracing, a table' 'SELECT * FROM rundelay' 'no such table: rundelay at column 15; there are latency$' \
	rundelay --input "$DATA/hogs.data" --dry-run
refuses 'before tracing, a table of metrics only' 'SELECT * FROM kmemleak' 'no such table: kmemleak .*; there are leaks, ' \
	kmemleak --input "$DATA/kmem.data" --alloc kmem:kmalloc --free kmem:kfree --dry-run
refuses 'and one of another profiler' 'SELECT * FROM pairs' "no such table: pairs .*; did you mean 'pair'" \
	multi-trace --input "$DATA/sched.data" "${wakeups[@]}" --impl pair --dry-run
refuses 'before tracing, a field' 'SELECT nxt_pid FROM sched_switch' "no such column: nxt_pid .*; did you mean 'next_pid'" \
	trace --input "$DATA/sched.data" -e sched:sched_switch --dry-run
refuses 'before tracing, exec' 'SELECT x FROM count_ev_id' 'no such column: x' exec --dry-run --input "$DATA/syscalls.data" \
	-e raw_syscalls:sys_enter 'count(ev.id)'
refuses 'no rows' 'SELECT 1 FROM x' 'no such table: x .*; there are sched_switch$' "$TMP/rows.lua" \
	--input "$DATA/sched.data" --filter 'common_pid == -5'
run "${call[@]}" --filter 'id == -5' --query 'SELECT * FROM syscalls'
expect_line 'nothing to query' '^syscalls: --query: there were no rows$' "$TMP/err"
"$PROFSCRIPT" list --query 'SELECT 1' >"$TMP/out" 2>"$TMP/err"
check 'commands do not have it' test $? = 2
