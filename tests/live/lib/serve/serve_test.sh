#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only
# --prometheus while a profiler runs: read by the parser of Prometheus' client (tests/tools/metrics.py), the counts and
# sums are those of the profiler's own tables. Slow clients, wrong requests, and nothing left at the end.
# Runs alone.
. "$(dirname "$0")/../../../lib.sh"
needs_tracepoint raw_syscalls:sys_enter raw_syscalls:sys_exit
python=/usr/bin/python3 # with Debian's python3-prometheus-client
[ -x $python ] || python=python3
$python -c 'import prometheus_client' 2>/dev/null || skip_all 'no python3-prometheus-client'
pair=(-e raw_syscalls:sys_enter//key=common_pid/ -e raw_syscalls:sys_exit//key=common_pid/)

# fetch URL: the status, headers and body
fetch() { $python -c '
import sys, urllib.request, urllib.error
try: answer = urllib.request.urlopen(urllib.request.Request(sys.argv[1], method=sys.argv[2]), timeout=60)
except urllib.error.HTTPError as error: answer = error
open(sys.argv[3], "wb").write(answer.read())
print(answer.status, answer.headers["Content-Type"])' "$1" "${2-GET}" "$TMP/body"; }
# address: that the run has printed
address() { sed -n 's/.* metrics are at //p' "$TMP/err"; }
scrape() { fetch "$(address)" >"$TMP/status" && $python "$TOP/tests/tools/metrics.py" prometheus "$TMP/body" >"$TMP/got"; }
value() { grep -F -- "$1 " "$TMP/got" | awk '{ n += $NF } END { printf "%.15g\n", n }'; }
latency=profscript_multi_trace_latency_seconds

workload syscalls 5000
sleep 1000 & # keeps the run going when the workload has ended, without a system call
start multi-trace "${pair[@]}" --csv -i 100 -m 1024 -p "$WORKLOAD,$!" --prometheus 0
wait_for 60 scrape
result $? 'metrics are there before the workload runs' "$TMP/err"
go
all_there() { scrape && [ "$(value "${latency}_count{start=\"sys_enter\",stop=\"sys_exit\"}")" -ge 5000 ]; }
wait_for 60 all_there
result $? 'all calls of the workload, while the run goes on' "$TMP/got"
check 'the type of the text format' grep -q '^200 text/plain; version=0.0.4' "$TMP/status"
if command -v promtool >/dev/null; then
	check 'promtool has nothing to say' promtool check metrics <"$TMP/body"
fi

# A client that asks and does not read, and some that say nothing, delay nobody.
host=$(address) host=${host#http://} host=${host%/metrics}
exec {slow}<>"/dev/tcp/${host%:*}/${host#*:}"
printf 'GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n%.0s' {1..200} >&"$slow"
exec {silent}<>"/dev/tcp/${host%:*}/${host#*:}"
reports=$(value profscript_reports_total)
later() { scrape && [ "$(value profscript_reports_total)" -gt $((reports + 3)) ]; }
wait_for 60 later
result $? 'a slow client delays neither reports nor others' "$TMP/got"

check 'another path' grep -q '^404 ' <(fetch "http://$host/x")
host_status() { printf 'GET /metrics HTTP/1.0\r\nHost: %s\r\n\r\n' "$1" >&"$other" && head -n 1 <&"$other"; }
for name in evil.example 127.0.0.1.evil.example "localhost:80" '[::1]:80' 192.0.2.1 "$(hostname)"; do
	exec {other}<>"/dev/tcp/${host%:*}/${host#*:}"
	status=200
	[[ $name == *evil* ]] && status=403
	check "a request for the host $name" grep -q " $status " <(host_status "$name")
	exec {other}>&-
done
check 'another method' grep -q '^405 ' <(fetch "http://$host/metrics" POST)
check 'HEAD' grep -q '^200 ' <(fetch "http://$host/metrics" HEAD)
stop
result $? 'it ends with Ctrl-C' "$TMP/err"
exec {slow}>&- {silent}>&-
labels='{start="sys_enter",stop="sys_exit"}'
cat "$TMP/err" "$TMP/out" >>"$TMP/got"
[ "$(value "${latency}_count$labels")" = "$(total calls)" ]
result $? 'as many calls as in the tables' "$TMP/got"
[ "$(value "${latency}_sum$labels")" = "$(total total_ns | awk '{ printf "%.15g", $1 / 1e9 }')" ]
result $? 'as long' "$TMP/got"
check 'nothing listens after the end' bash -c "! : <'/dev/tcp/${host%:*}/${host#*:}'"

# The thread that serves is a part of profscript, whose own events are left out: by BPF programs, and by filters.
for command in "exec -e raw_syscalls:sys_enter count(ev._comm,ev._tid) --csv" 'trace -e raw_syscalls:sys_enter --capture perf'; do
	read -ra words <<<"$command"
	start "${words[@]}" -i 100 --prometheus 0
	wait_for 60 scrape && scrape && scrape
	result $? "${words[0]}: scraped" "$TMP/err"
	thread=$(grep -Lx profscript "/proc/$tracer/task/"*/comm | head -n 1) # others may serve beside it: with its id
	thread="$(<"$thread")[, ]+$(basename "${thread%/comm}")[, ]"
	stop
	echo "the thread is $thread" >"$TMP/seen"
	grep -E "$thread" "$TMP/out" | head -n 3 >>"$TMP/seen"
	[[ $thread == MHD* ]] && [ "$(wc -l <"$TMP/seen")" = 1 ] && [ -s "$TMP/out" ]
	result $? "${words[0]}: no events of the thread that serves" "$TMP/seen"
done

# A port that only root may use.
if [ "$(id -u)" = 0 ] && command -v setpriv >/dev/null; then
	setpriv --bounding-set -net_bind_service --inh-caps -net_bind_service "$PROFSCRIPT" exec -e raw_syscalls:sys_exit \
		'count()' --prometheus 1 >"$TMP/out" 2>"$TMP/err"
	status=$?
	if [ "$(</proc/sys/net/ipv4/ip_unprivileged_port_start)" -le 1 ]; then
		skip 'a privileged port' 'no port is'
	else
		one_line $status 1 'exec: --prometheus: cannot listen on 1: .*CAP_NET_BIND_SERVICE' >"$TMP/wrong"
		check 'a privileged port' test ! -s "$TMP/wrong"
	fi
fi
