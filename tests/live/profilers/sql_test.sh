#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only
# sql: a known number of system calls, live; by interval, as a file, with other profilers' events; Ctrl-C.
. "$(dirname "$0")/../../lib.sh"
needs_tracepoint raw_syscalls:sys_enter raw_syscalls:sys_exit

workload syscalls 20000
start sql -e raw_syscalls:sys_enter,raw_syscalls:sys_exit -p "$WORKLOAD" -m 1024 --csv --query "
	SELECT count(*), max(_tid) FROM sys_enter WHERE id = $GETPPID;
	SELECT count(*) FROM sys_enter a WHERE id = $GETPPID AND
		(SELECT b.id FROM sys_exit b WHERE b._tid = a._tid AND b._time > a._time ORDER BY b._time LIMIT 1) = $GETPPID"
pid=$WORKLOAD
go
stop
grep '^query1,' "$TMP/out" | cut -d, -f3- >"$TMP/got"
check 'each system call is a row' diff "$TMP/got" <(echo "20000,$pid")
grep '^query2,' "$TMP/out" | cut -d, -f3- >"$TMP/got"
check 'and is followed by its end' diff "$TMP/got" <(echo 20000)

workload syscalls 20000
start sql -e raw_syscalls:sys_enter -p "$WORKLOAD" -m 1024 --csv -i 20 --output2 "$TMP/live.db" --query "
	SELECT count(*) FROM sys_enter WHERE id = $GETPPID"
go
stop
check 'the intervals have all rows together' test \
	"$(grep '^query,' "$TMP/out" | awk -F, '{ n += $3 } END { print n }')" = 20000
check 'and so has the file' test \
	"$(sqlite3 "$TMP/live.db" "SELECT count(*) FROM sys_enter WHERE id = $GETPPID")" = 20000

workload syscalls 20000
start sql -e "raw_syscalls:sys_enter/id == $GETPPID/" -p "$WORKLOAD" -m 1024 --csv --memory 64k --query \
	'SELECT count(*) FROM sys_enter'
go
stop
lacks=$(sed -n 's/^sql: the result lacks the oldest \([0-9]*\) events, up to [0-9.]* s: more than --memory 0 MiB$/\1/p' "$TMP/err")
check 'the result and what it lacks beyond --memory are all rows' test \
	"$(($(grep '^query,' "$TMP/out" | cut -d, -f3) + lacks))" = 20000

workload syscalls 2000
start sql -e 'raw_syscalls:sys_enter,syscalls//alias=of/' -p "$WORKLOAD" -m 1024 --csv --query "
	SELECT (SELECT count(*) FROM sys_enter WHERE id = $GETPPID), (SELECT count(*) FROM of WHERE id = $GETPPID),
		(SELECT count(*) FROM of_sys_exit WHERE id = $GETPPID)"
go
stop
check 'events of another profiler are tables' diff <(grep '^query,' "$TMP/out" | cut -d, -f3-) <(echo 2000,2000,2000)

"$PROFSCRIPT" sql -e sched:sched_switch -i 100 --duration 0.3 --csv --query 'SELECT count(*) FROM sched_switch' >"$TMP/out"
check 'no empty result for the end of the last interval' awk -F, '$2 == last && $3 == 0 { exit 1 } { last = $2 }' "$TMP/out"
check 'but one for each interval' test "$(grep -c ^query "$TMP/out")" -ge 3

# What all queries compare with constants is left to the kernel: the events are fewer, the result is the same.
workload syscalls 20000
start sql -e raw_syscalls:sys_enter -p "$WORKLOAD" -m 1024 --csv -v --query "
	SELECT count(*) FROM sys_enter WHERE id = $GETPPID; SELECT count(*) FROM sys_enter WHERE id = $GETPPID AND _cpu >= 0;
	SELECT count(*) FROM sys_enter WHERE (id = $GETPPID OR id = 9999) AND _cpu >= 0"
go
stop
check 'a condition becomes a filter' diff <(grep '^query' "$TMP/out" | cut -d, -f3-) <(printf '20000\n20000\n20000\n')
expect_line 'no other events came' '^profscript: 20000 events' "$TMP/err"
filter_of() { # SQL ARG...: the filter that sched_wakeup gets
	"$PROFSCRIPT" sql -e 'sched:sched_wakeup/prio>0/' -e sched:sched_switch//alias=sw/ --dry-run --query "$@" 2>&1 |
		sed -n 's/^ *filter in the kernel: //p' | head -n 1
}
filters() { # NAME FILTER SQL ARG...
	local got
	got=$(filter_of "${@:3}")
	echo "$got" >"$TMP/got"
	[ "$got" = "$2" ]
	result $? "filter: $1" "$TMP/got"
}
all='prio>0'
filters 'one comparison' '(prio>0) && (pid > 1000)' 'SELECT * FROM sched_wakeup WHERE 1000 < pid'
filters 'two' '(prio>0) && (pid >= 5 && comm == "bash")' "SELECT * FROM sched_wakeup WHERE pid >= 5 AND comm = 'bash'"
filters 'OR' '(prio>0) && ((pid > 1000) || (comm == "bash"))' "SELECT * FROM sched_wakeup WHERE pid > 1000 OR comm = 'bash'"
filters 'OR, and what is beside it' '(prio>0) && ((pid == 5 && prio < 9) || (target_cpu == 1 && prio < 9))' \
	'SELECT * FROM sched_wakeup WHERE (pid = 5 OR target_cpu = 1) AND prio < 9'
filters 'OR with what is no field' "$all" 'SELECT * FROM sched_wakeup WHERE pid = 5 OR _cpu = 1'
filters 'a subquery' '(prio>0) && ((pid == 5) || (pid == 6))' \
	'SELECT 1 FROM sched_wakeup WHERE pid = 5 AND prio > (SELECT max(prio) FROM sched_wakeup WHERE pid = 6)'
filters 'blanks within a text stay' "$all" "SELECT * FROM sched_wakeup WHERE comm = 'a  b'"
filters 'what both parts of an OR have' '(prio>0) && (prio < 9)' 'SELECT * FROM sched_wakeup WHERE (pid > 5 AND prio < 9) OR (pid > 7 AND prio < 9)'
filters 'what two queries have in common' '(prio>0) && (pid > 5)' \
	'SELECT 1 FROM sched_wakeup WHERE pid > 5; SELECT 1 FROM sched_wakeup WHERE pid > 5 AND target_cpu = 1'
filters 'another query takes all' "$all" 'SELECT * FROM sched_wakeup WHERE pid > 5; SELECT count(*) FROM sched_wakeup'
filters 'another use takes all' "$all" \
	'SELECT * FROM sched_wakeup WHERE pid > (SELECT min(pid) FROM sched_wakeup) AND pid > 5'
filters 'a join with itself' "$all" 'SELECT 1 FROM sched_wakeup a, sched_wakeup b WHERE a.pid = b.pid AND a.pid = 5'
filters 'an outer join' "$all" 'SELECT 1 FROM sched_wakeup a LEFT JOIN sw ON sw.next_pid = a.pid AND a.prio = 5'
filters 'event_metadata' "$all" 'SELECT (SELECT sample_count FROM event_metadata), pid FROM sched_wakeup WHERE pid = 5'
filters 'another type' "$all" "SELECT 1 FROM sched_wakeup WHERE pid = '5' AND prio = 1.5 AND comm = 7"
filters 'more than the field can hold' "$all" 'SELECT 1 FROM sched_wakeup WHERE pid < 99999999999'
filters 'a pattern for the kernel' "$all" "SELECT 1 FROM sched_wakeup WHERE comm = 'a*'"
filters 'IN' "$all" 'SELECT 1 FROM sched_wakeup WHERE pid IN (5, 6)'
filters 'a copy takes all' "$all" 'SELECT 1 FROM sched_wakeup WHERE pid = 5' --output2 "$TMP/none.db"
filters 'an export takes all' "$all" 'SELECT 1 FROM sched_wakeup WHERE pid = 5' --export "$TMP/none.json"

# A query without end: the first Ctrl-C ends the query of an interval and with it the run.
start sql -e raw_syscalls:sys_enter -i 100 --query "
	WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c) SELECT count(*) FROM c"
# shellcheck disable=SC2317 # wait_for calls it
in_query() { [ "$(awk '{ print $14 + $15 }' /proc/$tracer/stat)" -ge 100 ]; } # nothing else takes 1 s of CPU time
wait_for 60 in_query
result $? 'the query runs'
kill -INT $tracer
check 'Ctrl-C ends a query without end' wait $tracer
expect_line 'which is said' '^sql: the query was interrupted$' "$TMP/err"
