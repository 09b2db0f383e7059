#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only
# sql: results compared with those of the sqlite3 shell on the database file, with perf script's text and with other
# profilers; and what is refused.
. "$(dirname "$0")/../../lib.sh"

# query RECORDING SQL ARG...: the rows as CSV go to $TMP/got, without the heading, the table's name and the time
query() {
	table "$1" sql --query "$2" "${@:3}"
}

# --- numbers that others have, too ---------------------------------------------------------------

perf_text sched >"$TMP/perf"
query sched 'SELECT count(*) FROM sched_wakeup'
check 'as many events as perf script prints' diff "$TMP/got" <(grep -c 'sched_wakeup:' "$TMP/perf")
query sched 'SELECT _cpu, _time FROM sched_switch'
check 'in time order, with exact times' diff "$TMP/got" <(awk '/sched_switch:/ { print $1 "," $2 }' "$TMP/perf")
query sched "SELECT next_comm, count(*) FROM sched_switch WHERE prev_pid > 0 GROUP BY 1"
csv exec --input "$DATA/sched.data" -e 'sched:sched_switch/prev_pid > 0/' 'count(ev.next_comm)'
check 'groups as exec counts them' diff <(sort "$TMP/got") <(tail -n +2 "$TMP/out" | cut -d, -f3,4 | sort)
query mixed 'SELECT count(*), count(DISTINCT _ip) > 1 FROM cpu_clock'
check "perf's own events are tables" grep -Eq '^[1-9][0-9]*,1$' "$TMP/got"
query lost 'SELECT sum(count) FROM events_lost'
check 'lost events are in a table' diff "$TMP/got" <(echo 3058)
expect_line 'and make the result incomplete' '^sql: the result lacks 3058 events, lost between [0-9.]+ and [0-9.]+ s$' \
	"$TMP/err"
query sched 'SELECT count(*) FROM b' -e 'sched:sched_switch//alias=a/,sched:sched_switch/prev_pid == 0/alias=b/'
check 'alias= names a table, a filter selects its rows' diff "$TMP/got" \
	<(grep 'sched_switch:' "$TMP/perf" | grep -c 'prev_pid=0 ')
query sched 'SELECT name FROM pragma_table_info("sched_wakeup")'
check 'columns' diff <(paste -sd' ' "$TMP/got") - <<-'END'
	_pid _tid _time _cpu _period common_flags common_preempt_count common_pid comm pid prio target_cpu _comm
END
query sched 'SELECT column_name, unit FROM column_units WHERE table_name = "sched_switch"'
check 'the units of columns' diff "$TMP/got" <(echo _time,ns)
query syscalls "SELECT syscall(id) = syscall_name(id), syscall(id), element(args, 0) FROM sys_enter WHERE id = 0 LIMIT 1"
check 'system calls and arrays' diff "$TMP/got" <(echo 1,read,3)
query timers "SELECT symbolic('vec', vec), count(*) FROM softirq_entry GROUP BY 1"
check 'symbolic names' diff "$TMP/got" <(printf '%s\n' BLOCK,75 RCU,51 SCHED,4 TIMER,18)
query timers "SELECT function_list FROM event_metadata WHERE table_name = 'softirq_entry'"
check 'event_metadata names the functions' diff "$TMP/got" <(echo "\"symbolic('softirq_entry.vec', vec)\"")

# --- intervals, memory ---------------------------------------------------------------------------

query sched 'SELECT count(*) FROM sched_switch' -i 1
check 'the rows of all intervals are all rows' test "$(awk '{ n += $1 } END { print n }' "$TMP/got")" = "$(grep -c sched_switch: "$TMP/perf")"
check 'of several intervals' test "$(wc -l <"$TMP/got")" -gt 3
# same_beyond_memory NAME RECORDING SQL ARG...: the results do not depend on what memory holds
same_beyond_memory() {
	query "$2" "$3" "${@:4}"
	cp "$TMP/got" "$TMP/all"
	query "$2" "$3" "${@:4}" --memory 64k
	cat "$TMP/err" >>"$TMP/got"
	check "beyond --memory: $1" diff "$TMP/all" "$TMP/got"
	check "beyond --memory: $1: some" test -s "$TMP/all"
}
same_beyond_memory 'sums' zstd 'SELECT id, count(*), sum(_time), min(_time) FROM sys_enter GROUP BY id ORDER BY id'
same_beyond_memory 'all columns' zstd 'SELECT * FROM sys_exit'
same_beyond_memory 'several statements' zstd "SELECT count(*) FROM sys_enter WHERE ID IN (0, 1);
	SELECT min(e._time - a._time) FROM sys_enter a JOIN sys_exit e ON e._tid = a._tid AND e._time > a._time AND e.id = a.id"
same_beyond_memory 'index=' zstd "SELECT sum((SELECT b._time FROM b WHERE b._tid = a._tid AND b._time > a._time
	ORDER BY b._time LIMIT 1) - a._time), max(a._comm) FROM a" -e raw_syscalls:sys_enter//alias=a/ \
	-e raw_syscalls:sys_exit//alias=b/index=_tid/
same_beyond_memory 'intervals' zstd 'SELECT count(*), max(_time) FROM sys_enter' -i 20
same_beyond_memory 'metadata' zstd 'SELECT table_name, sample_count, first_sample_time, last_sample_time FROM event_metadata'
query zstd 'SELECT count(*) FROM sys_enter' -i 20 --memory 64k --output2 "$TMP/spilled.db"
check 'beyond --memory: --output2 with intervals' diff <(sqlite3 "$TMP/spilled.db" 'SELECT count(*) FROM sys_enter') \
	<(awk '{ n += $1 } END { print n }' "$TMP/got")
check 'beyond --memory: all of them' test "$(awk '{ n += $1 } END { print n }' "$TMP/got")" = 2400
table lost sql --memory 64k --query 'SELECT sum(count) FROM events_lost; SELECT count(*) FROM sys_enter'
check 'beyond --memory: lost events' grep -qx 3058 "$TMP/got"
query zstd 'SELECT count(*) FROM sys_enter' --memory 64k --verify
expect_line 'beyond --memory: --verify' '^sql: --verify has no effect: there are more events than --memory holds$' "$TMP/err"
check 'beyond --memory: the result is right' diff "$TMP/got" <(echo 2400)

"$PROFSCRIPT" sql --input "$DATA/sched.data" --query "EXPLAIN QUERY PLAN SELECT * FROM sched_switch
	WHERE (prev_pid = 0 OR next_prio = 120) AND _time BETWEEN 5 AND 9" >"$TMP/out"
expect_line 'a range of times beside an OR is left to the table' 'INDEX [0-9]+:_time >= \? AND _time <= \?' "$TMP/out"

# --- files ---------------------------------------------------------------------------------------

SQL="SELECT next_comm, count(*), max(_time), sum(prev_state) FROM sched_switch WHERE prev_prio >= 100 GROUP BY next_comm
	ORDER BY 2 DESC, 1; SELECT * FROM sched_wakeup ORDER BY _time, pid"
check_status '--output2 writes a database' 0 "$PROFSCRIPT" sql --input "$DATA/sched.data" --output2 "$TMP/a.db"
query sched "$SQL"
sqlite3 -csv "$TMP/a.db" "$SQL" | tr -d '\r"' >"$TMP/shell"
check 'the sqlite3 shell has the same rows' diff <(grep -v '^_pid' "$TMP/got") "$TMP/shell"
check 'the file is intact' test "$(sqlite3 "$TMP/a.db" 'PRAGMA integrity_check')" = ok
check_status 'a second run' 0 "$PROFSCRIPT" sql --input "$DATA/sched.data" --output2 "$TMP/a.db" -i 1
check 'replaces the tables, and adds the rows of its intervals' test \
	"$(sqlite3 "$TMP/a.db" 'SELECT count(*) FROM sched_switch; SELECT sum(sample_count) FROM event_metadata' | paste -sd,)" \
	= "$(grep -c 'sched_switch:' "$TMP/perf"),$(grep -Ec 'sched_(switch|wakeup):' "$TMP/perf")"
query sched 'SELECT count(*) FROM sched_switch' --output2 "$TMP/b.db"
check 'a query at the end sees the whole file' diff "$TMP/got" <(grep -c 'sched_switch:' "$TMP/perf")
check_status 'verified results' 0 "$PROFSCRIPT" sql --input "$DATA/sched.data" --verify --query "$SQL;
	SELECT DISTINCT comm FROM sched_wakeup; SELECT w.pid, s._time FROM sched_wakeup w, sched_switch s
	WHERE w.pid = s.next_pid AND s._time > w._time;
	SELECT count(*), max(_time) FROM sched_switch WHERE (prev_pid = 0 OR next_prio = 120) AND _time BETWEEN
	(SELECT min(_time) FROM sched_wakeup) + 500000 AND (SELECT max(_time) FROM sched_wakeup) - 500000;
	SELECT count(*) FROM sched_switch WHERE (prev_pid = 0 OR next_prio = 120 AND prev_prio < 130) AND next_pid > 0" -e sched:sched_wakeup,sched:sched_switch//index=next_pid/

# --- output --------------------------------------------------------------------------------------

expect_outputs sql sched sql --query "SELECT comm, count(*) AS n, avg(pid), median(prio), NULL AS missing, x'aabb' AS b
	FROM sched_wakeup GROUP BY comm ORDER BY n DESC, comm; SELECT * FROM sched_switch WHERE next_pid < 0;
	SELECT 9223372036854775807 AS large, 1 AS time"
"$PROFSCRIPT" sql --input "$DATA/zstd.data" --query 'SELECT _time FROM sys_enter' >"$TMP/out"
check 'a long result has one heading' test "$(grep -c -- '---' "$TMP/out"),$(grep -Ec '^ *[0-9]+$' "$TMP/out")" = 1,2400

# --- refusals ------------------------------------------------------------------------------------

# bad NAME REGEX SQL
bad() {
	refused "$1" 2 "sql: bad query .*$2" sql --input "$DATA/sched.data" --query "$3"
}
bad 'unknown column' "no such column: com at column 8; did you mean 'comm'\?\$" 'SELECT com FROM sched_wakeup'
bad 'unknown table' "no such table: sched_wakeups at column 15; did you mean 'sched_wakeup'\?\$" 'SELECT 1 FROM sched_wakeups'
bad 'unknown function' "no such function: kysmbol at column 18; did you mean 'ksymbol'\?\$" 'SELECT 1; SELECT kysmbol(1)'
bad 'syntax' 'near "t": syntax error at column 15$' 'SELECT a FORM t'
bad ATTACH 'ATTACH is not allowed at column 1; queries only read$' "ATTACH '$TMP/x.db' AS x"
bad VACUUM 'writing is not allowed' "VACUUM INTO '$TMP/x.db'"
bad PRAGMA 'PRAGMA is not allowed' 'PRAGMA journal_mode = wal'
bad writefile 'no such function: writefile' "SELECT writefile('$TMP/x.db', 'x')"
bad DROP 'is not allowed' 'DROP TABLE event_metadata'
check 'and no file was made' test ! -e "$TMP/x.db"
refused 'neither query nor file' 2 'sql: --query SQL says what' sql --input "$DATA/sched.data"
refused 'no statement' 2 'sql: --query has no statement' sql --input "$DATA/sched.data" --query ' -- nothing'
refused 'index= of an unknown field' 2 "sql: .*'comn' for index=; did you mean 'comm'" sql --input "$DATA/sched.data" \
	-e sched:sched_wakeup//index=comn/ --query 'SELECT 1'
refused 'two tables of one name' 2 'sql: .* give one of them another name' sql --input "$DATA/sched.data" \
	-e sched:sched_wakeup,sched:sched_wakeup --query 'SELECT 1'
echo 'this is not a database, and long enough to be looked at' >"$TMP/text"
refused 'a file that is no database' 1 "sql: cannot open the database '$TMP/text': file is not a database" sql --input "$DATA/sched.data" \
	--output2 "$TMP/text"
partly 'a failure of the query' 1 'sql: the query failed: integer overflow' '=== SELECT' sql --input "$DATA/sched.data" \
	--query 'SELECT abs(-9223372036854775808)'
partly 'the same in an interval' 1 'sql: the query failed: integer overflow' '=== SELECT' sql --input "$DATA/sched.data" \
	-i 1 --output2 "$TMP/c.db" --query 'SELECT abs(-9223372036854775808)'
check 'copies no row twice' test "$(sqlite3 "$TMP/c.db" 'SELECT count(*) = count(DISTINCT _time) FROM sched_switch')" = 1

"$PROFSCRIPT" sql --input "$DATA/sched.data" --query "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c)
	SELECT count(*) FROM c" >"$TMP/out" 2>"$TMP/err" &
endless=$!
wait_for 20 grep -q RECURSIVE "/proc/$endless/cmdline"
sleep 1
kill -INT $endless
check 'Ctrl-C ends a query without end' wait $endless
expect_line 'which is said' '^sql: the query was interrupted$' "$TMP/err"
