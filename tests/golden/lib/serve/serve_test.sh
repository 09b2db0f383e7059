#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only
# Metrics of recordings, sent by OTLP to a receiver and read by protoc with the published schema (tests/tools/metrics.py):
# counts and sums are those of the profiler's own tables.
. "$(dirname "$0")/../../../lib.sh"
python=/usr/bin/python3
[ -x $python ] || python=python3
command -v protoc >/dev/null || skip_all 'protoc (package protobuf-compiler)'
command -v $python >/dev/null || skip_all 'no python3'
metrics() { $python "$TOP/tests/tools/metrics.py" "$@"; }

# receiver NAME [STATUS...]: starts one, at $url; it writes to $TMP/NAME
receiver() {
	mkdir "$TMP/$1"
	$python "$TOP/tests/tools/metrics.py" receive "$TMP/$1" "${@:2}" &
	receiver=$!
	wait_for 60 test -e "$TMP/$1/port" || return 1
	url=http://127.0.0.1:$(<"$TMP/$1/port")
}
# last NAME: the metrics that arrived last go to $TMP/got
last() { metrics otlp "$TMP/$1/$(find "$TMP/$1" -name '*.pb' -printf '%f\n' | sort -n | tail -n 1)" >"$TMP/got" 2>"$TMP/wrong"; }
value() { grep -F -- "$1 " "$TMP/got" | awk '{ n += $NF } END { printf "%.15g\n", n }'; }

# A histogram of each kind of pair, over many intervals.
receiver pairs
csv multi-trace -q -i 100 --input "$DATA/sched.data" -e sched:sched_wakeup//key=pid/ -e sched:sched_switch//key=next_pid/ \
	--otlp "$url"
last pairs
result $? 'multi-trace: what arrives is OTLP' "$TMP/wrong"
calls=$(total calls) ns=$(total total_ns)
cp "$TMP/out" "$TMP/table"
cat "$TMP/got" >>"$TMP/table"
latency=profscript_multi_trace_latency_seconds labels='{start="sched_wakeup",stop="sched_switch"}'
[ "$calls" -gt 100 ] && [ "$(value "${latency}_count$labels")" = "$calls" ]
result $? 'multi-trace: as many pairs as in the tables' "$TMP/table"
[ "$(value "${latency}_sum$labels")" = "$(awk "BEGIN { printf \"%.15g\", $ns / 1e9 }")" ]
result $? 'multi-trace: as long' "$TMP/table"
expect_line 'multi-trace: the service has a name' '^resource\{.*service.name="profscript"' "$TMP/got"
check 'a message for the start, for each interval and for the end' test \
	"$(find "$TMP/pairs" -name '*.pb' | wc -l)" = $(($(value profscript_reports_total) + 1))

# Histograms of other numbers: each bucket, from single values.
csv trace -q --input "$DATA/syscalls.data" -e raw_syscalls:sys_exit
"$PROFSCRIPT" exec -q --input "$DATA/syscalls.data" -e raw_syscalls:sys_exit "print(tonumber(ev.ret))" >"$TMP/values"
"$PROFSCRIPT" exec -q --input "$DATA/syscalls.data" --otlp "$url" -e raw_syscalls:sys_exit \
	'hist(ev.ret) count(ev._comm) sum(1, ev.id) quantiles(ev.id, ev._comm)' >/dev/null 2>"$TMP/err"
last pairs
for bound in 0 1 7 1023 4294967295; do
	want=$(awk -v bound=$bound '$1 <= bound' "$TMP/values" | wc -l)
	[ "$(value "profscript_exec_hist_ev_ret_bucket{le=\"$bound\"}")" = "$want" ]
	result $? "exec: $want values up to $bound" "$TMP/got"
done
csv exec -q --input "$DATA/syscalls.data" -e raw_syscalls:sys_exit 'count(ev._comm)'
rows=0
while IFS=, read -r _ _ comm count; do
	[ "$(value "profscript_exec_count_ev_comm_count_total{comm=\"$comm\"}")" = "$count" ] || rows=-1000
	rows=$((rows + 1))
done < <(tail -n +2 "$TMP/out")
[ $rows -gt 0 ]
result $? "exec: each of $rows counts" "$TMP/got"

# A report whose text is no table is the same table to metrics.
"$PROFSCRIPT" oncpu -q -i 100 --input "$DATA/sched.data" --otlp "$url" >"$TMP/text"
last pairs
csv oncpu -q -i 100 --input "$DATA/sched.data"
ns=$(total runtime_ns)
awk -v ns="$ns" '/^profscript_oncpu_runtime_seconds_total/ { n += $NF }
	END { exit !(ns > 0 && sprintf("%.0f", n * 1e9) == ns) }' "$TMP/got"
result $? 'oncpu: the time of its JSON, although it prints text' "$TMP/got"

# Reports that are no tables in text.
otlp() { "$PROFSCRIPT" "$@" -q --otlp "$url" >"$TMP/text" && last pairs; cat "$TMP/text" >>"$TMP/got"; }
otlp event-lost --input "$DATA/lost.data" -e "$(perf evlist -i "$DATA/lost.data" | head -n 1)"
awk '/^lost / { want = $2 + 0 } /^profscript_event_lost_lost_total / { got = $2 } END { exit !(want > 0 && got == want) }' "$TMP/got"
result $? 'event-lost: the losses' "$TMP/got"
otlp nested-trace --input "$DATA/timers.data" -e irq:softirq_entry,irq:softirq_exit \
	-e timer:timer_expire_entry,timer:timer_expire_exit --impl call
nested=$("$PROFSCRIPT" nested-trace -q --json --input "$DATA/timers.data" -e irq:softirq_entry,irq:softirq_exit \
	-e timer:timer_expire_entry,timer:timer_expire_exit --impl call |
	sed -n 's/.*"calls":\([0-9]*\).*/\1/p' | awk '{ n += $1 } END { print n }')
[ "$(awk '/^profscript_nested_trace_call_calls_total/ { n += $NF } END { print n + 0 }' "$TMP/got")" = "$nested" ]
result $? "nested-trace: $nested calls" "$TMP/got"
otlp kmemleak --alloc kmem:kmalloc --free kmem:kfree --input "$DATA/kmem.data"
awk '/^TOTAL alloc/ { want = $3 " " $5 } /^LEAKED [0-9]/ { want = want " " $2 " " $5 }
	/^profscript_kmemleak_(alloc|free)_total |^profscript_kmemleak_leaks_(bytes|objects)/ { got[++n] = $NF }
	END { exit !(n == 4 && want == got[1] " " got[2] " " got[3] " " got[4]) }' "$TMP/got"
result $? 'kmemleak: allocations, and the bytes of all stacks' "$TMP/got"
otlp profile --input "$DATA/mixed.data"
[ -s "$TMP/text" ] && [ "$(awk '/^profscript_profile_stacks_samples_total/ { n += $NF } END { print n }' "$TMP/got")" = "$(grep -c ' profile: ' "$TMP/text")" ]
result $? 'profile: the samples' "$TMP/got"

# What a script declares about what it prints for each event.
cat >"$TMP/calls.lua" <<'END'
return {
  summary = 'Print system calls',
  metrics = { call = { ret = 'histogram', comm = 'label', n = 'counter' }, total = { n = 'counter' } },
  start = function(_, out)
    local n = 0
    return {
      ['raw_syscalls:sys_exit'] = function(ev)
        n = n + 1
        out:row({ 'comm', ev._comm, 'tid', ev._tid, 'ret', tonumber(ev.ret), 'n', 2, 'id', ev.id }, 'call')
        out:row({ 'id', ev.id }, 'other')
      end,
      interval = function() out:row({ 'n', n }, 'total') n = 0 end,
      stop = function() out:row({ 'n', n }, 'total') end,
    }
  end,
}
END
otlp "$TMP/calls.lua" -i 1 --input "$DATA/syscalls.data"
events=$("$PROFSCRIPT" exec -q --json --input "$DATA/syscalls.data" -e raw_syscalls:sys_exit 'count()' |
	sed -n 's/.*"count":\([0-9]*\).*/\1/p')
awk -v events="$events" '/^profscript_calls_call_ret_count\{comm="[^"]*"\} / { count += $NF }
	/^profscript_calls_call_n_total\{comm="[^"]*"\} / { n += $NF } /^profscript_calls_total_n_total / { total = $NF }
	END { exit !(events > 0 && count == events && n == 2 * events && total == events) }' "$TMP/got"
result $? "a script: a histogram and counters of $events events" "$TMP/got"
check 'what is not declared is none' sh -c '! grep -E "^profscript_calls_(other|call_(id|tid))" "$1"' - "$TMP/got"

# With --query, the results of the queries are what is reported, in text as in JSON. The export does not change.
sql="SELECT start AS name, sum(calls) AS n, 0.5 AS half FROM latency GROUP BY 1"
for form in text json; do
	"$PROFSCRIPT" multi-trace --format $form --input "$DATA/sched.data" -e sched:sched_wakeup//key=pid/ \
		-e sched:sched_switch//key=next_pid/ --otlp "$url" --query "$sql" --export "$TMP/sql.json" >"$TMP/out" 2>"$TMP/err"
	last pairs
	cat "$TMP/out" "$TMP/err" >>"$TMP/got"
	[ "$(value 'profscript_multi_trace_query_n{name="sched_wakeup"}')" = "$calls" ]
	result $? "query as $form: $calls pairs" "$TMP/got"
	check "query as $form: all columns" grep -q '^profscript_multi_trace_query_half{name="sched_wakeup"} 0.5' "$TMP/got"
	check "query as $form: not its rows" sh -c '! grep "^profscript_multi_trace_latency" "$1"' - "$TMP/got"
	expect_line "query as $form, with an export" "exported [0-9]+ events, $calls slices to" "$TMP/err"
done
"$PROFSCRIPT" sql -q --input "$DATA/sched.data" -e sched:sched_switch --otlp "$url" \
	--query 'SELECT count(*) AS n FROM sched_switch; SELECT next_comm, count(*) AS n FROM sched_switch GROUP BY 1' >"$TMP/out"
last pairs
cat "$TMP/out" >>"$TMP/got"
awk '/^profscript_sql_query1_n / { all = $NF } /^profscript_sql_query2_n\{next_comm="/ { n += $NF }
	END { exit !(all > 0 && all == n) }' "$TMP/got"
result $? 'sql: the results of two queries' "$TMP/got"
# Rows that nothing tells apart are one series, which is said once.
"$PROFSCRIPT" sql -i 1 --input "$DATA/sched.data" -e sched:sched_switch --otlp "$url" \
	--query 'SELECT prev_state FROM sched_switch' >/dev/null 2>"$TMP/err"
expect_line 'rows without labels: it is said' \
	"^sql: rows of the table 'query' have no labels: as metrics, only the last one is kept; " "$TMP/err"
check 'rows without labels: once' test "$(grep -c 'only the last one is kept' "$TMP/err")" = 1
"$PROFSCRIPT" sql -i 1 --input "$DATA/sched.data" -e sched:sched_switch --otlp "$url" \
	--query 'SELECT next_comm, count(*) AS n FROM sched_switch GROUP BY 1' >/dev/null 2>"$TMP/err"
check 'rows with labels: nothing is said' sh -c '! grep "only the last" "$1"' - "$TMP/err"
kill $receiver

# A receiver that is busy gets everything later, one that refuses nothing, and one that is not there is said once.
receiver busy 503
"$PROFSCRIPT" exec --input "$DATA/syscalls.data" --otlp "$url" -e raw_syscalls:sys_exit 'count()' >/dev/null 2>"$TMP/err"
last busy
expect_line 'a receiver that was busy' '^profscript_exec_count_total [1-9]' "$TMP/got"
expect_line 'busy: it is said' "cannot send metrics to $url/v1/metrics: the server answered 503$" "$TMP/err"
kill $receiver
receiver refuses 400 400 400 400
"$PROFSCRIPT" exec --input "$DATA/syscalls.data" --otlp "$url" -e raw_syscalls:sys_exit 'count()' >/dev/null 2>"$TMP/err"
result $? 'a receiver that refuses: the run goes on' "$TMP/err"
expect_line 'refused: it is said how many' '[0-9]+ of [0-9]+ messages were not sent' "$TMP/err"
kill $receiver
wait $receiver 2>/dev/null
"$PROFSCRIPT" exec -i 100 --input "$DATA/syscalls.data" --otlp "$url" -e raw_syscalls:sys_exit 'count()' >/dev/null \
	2>"$TMP/err"
result $? 'no receiver: the run goes on' "$TMP/err"
check 'no receiver: one line says so' test "$(grep -c 'cannot send metrics' "$TMP/err")" = 1

# Wrong addresses.
refused 'an URL without a scheme' 2 "exec: --otlp: 'localhost:4318' is not an URL" exec --otlp localhost:4318 \
	--input "$DATA/syscalls.data" -e raw_syscalls:sys_exit 'count()'
refused 'an URL that is none' 2 "exec: --otlp: 'http://a b/v1/metrics' is not an URL: " exec --otlp 'http://a b/' \
	--input "$DATA/syscalls.data" -e raw_syscalls:sys_exit 'count()'
for address in x 127.0.0.1 1.2.3.4:x 127.0.0.1:65536 /tmp/file 99999; do
	refused "--prometheus $address" 2 'exec: --prometheus: ' exec --prometheus $address --input "$DATA/syscalls.data" \
		-e raw_syscalls:sys_exit 'count()'
done
refused 'an address of another machine' 1 'exec: --prometheus: cannot listen on 192.0.2.1:9100: ' exec \
	--prometheus 192.0.2.1:9100 --input "$DATA/syscalls.data" -e raw_syscalls:sys_exit 'count()'
receiver taken
refused 'a port that is taken' 1 'exec: --prometheus: cannot listen on .*: another program listens there' exec \
	--prometheus "${url##*:}" --input "$DATA/syscalls.data" -e raw_syscalls:sys_exit 'count()'
kill $receiver
