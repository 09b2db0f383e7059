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

workload syscalls 2000
start sql -e 'raw_syscalls:sys_enter,syscalls//alias=of/' -p "$WORKLOAD" -m 1024 --csv --query "
	SELECT (SELECT count(*) FROM sys_enter WHERE id = $GETPPID), (SELECT count(*) FROM of WHERE id = $GETPPID),
		(SELECT count(*) FROM of_sys_exit WHERE id = $GETPPID)"
go
stop
check 'events of another profiler are tables' diff <(grep '^query,' "$TMP/out" | cut -d, -f3-) <(echo 2000,2000,2000)

# A query without end: the first Ctrl-C ends the query of an interval and with it the run.
start sql -e raw_syscalls:sys_enter -i 100 --query "
	WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c) SELECT count(*) FROM c"
sleep 1
kill -INT $tracer
check 'Ctrl-C ends a query without end' wait $tracer
expect_line 'which is said' '^sql: the query was interrupted$' "$TMP/err"
