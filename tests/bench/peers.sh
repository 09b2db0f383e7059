#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only
# What the traced task pays for the same question under several tracers. Prints ns of CPU that an event adds to a task
# that is not traced otherwise, and how much more CPU time redis-server takes for the same requests. All are the lowest
# of several rounds, in each of which all tracers run in turn. Needs root, two CPUs, perf, bpftrace, and for `redis`
# redis-server and redis-benchmark; tracers that are missing are left out. The traced task is on CPU 0, the tracer on
# CPU 1.
#
#   tests/bench/peers.sh                 # all: tight pipe redis
#
# PERF_PROF: path of perf-prof. BENCH_ROUNDS: rounds (5). BENCH_LOOPS: loops of the pipe benchmark (300000);
# redis has a tenth of that in requests.
cd "$(dirname "$0")/../.." || exit 1
. tests/bench/lib.sh
rounds=${BENCH_ROUNDS:-5}
port=16379
server=
tracer=
trap 'kill -KILL $server $tracer 2>/dev/null; rm -rf "$tmp"' EXIT

enter=raw_syscalls:sys_enter
leave=raw_syscalls:sys_exit
begin='tracepoint:raw_syscalls:sys_enter'
end='tracepoint:raw_syscalls:sys_exit'

# command QUESTION TRACER: sets the array $command; fails if the tracer cannot answer it
command() {
	local question=$1
	case $2 in
	# not of CPU 1, where its own system calls would keep it busy
	perf-record) command=(perf record -C 0 -q -m 2048 -e $enter,$leave -o "$tmp/perf.data") ;;
	perf-prof)
		[ -n "$PERF_PROF" ] || return 1
		case $question in
		count) command=("$PERF_PROF" top -e "$enter,$leave" -k id -i 1000 -m 2048) ;;
		hist) command=("$PERF_PROF" num-dist -e "$enter//num=id/,$leave//num=id/" -i 1000 -m 2048) ;;
		pairs) command=("$PERF_PROF" multi-trace -e $enter -e $leave -k common_pid --order -i 1000 -m 2048) ;;
		esac
		;;
	bpftrace)
		case $question in
		count) command=(bpftrace -e "$begin,$end { @[args->id] = count(); }") ;;
		hist) command=(bpftrace -e "$begin,$end { @ = hist(args->id); }") ;;
		pairs) command=(bpftrace -e "$begin { @s[tid] = nsecs; }
			$end /@s[tid]/ { @ = hist(nsecs - @s[tid]); delete(@s[tid]); }") ;;
		esac
		;;
	perf | bpf)
		case $question in
		count) command=(exec -e $enter,$leave 'count(ev.id)') ;;
		hist) command=(exec -e $enter,$leave 'hist(ev.id)') ;;
		pairs) command=(multi-trace -e $enter -e $leave -k common_pid) ;;
		esac
		command=($profscript "${command[@]}" --capture "$2" -m 2048 -i 1000)
		;;
	esac
}

# begin_trace QUESTION TRACER: starts a tracer and waits until it waits for events
begin_trace() {
	command "$@" || return 1
	type "${command[0]}" >/dev/null 2>&1 || return 1
	taskset -c 1 "${command[@]}" >"$tmp/out" 2>"$tmp/err" &
	tracer=$!
	until grep -q poll /proc/$tracer/wchan 2>/dev/null; do
		kill -0 $tracer 2>/dev/null || { fail "$*" && return 1; }
		sleep 0.1
	done
	sleep 1 # perf-prof and bpftrace attach after they have begun to wait
}

end_trace() {
	local i
	kill -INT $tracer
	for ((i = 0; i < 100; i++)); do
		kill -0 $tracer || break
		sleep 0.1
	done
	kill -KILL $tracer # bpftrace 0.17 may not see the signal
	wait $tracer
	tracer=
} 2>/dev/null

tracers='perf-record perf-prof bpftrace perf bpf'
title='perf record   perf-prof    bpftrace  profscript: perf      bpf'

# measure LOAD: ns of CPU that a load takes
measure() {
	local before
	case $1 in
	redis)
		before=$(process_cpu $server)
		taskset -c 1 redis-benchmark -p $port -t get -n $((loops / 10)) -c 20 --csv >/dev/null 2>&1
		echo $(($(process_cpu $server) - before))
		;;
	*) cpu "$1" && echo ;;
	esac
}

# repeat LOAD: several figures, because starting a tracer takes longer
repeat() {
	local j
	for ((j = 0; j < 10; j++)); do measure "$1"; done
}

# rounds_of LOAD QUESTION: the lowest figures in $tmp/NAME.lowest
rounds_of() {
	local load=$1 question=$2 name i
	rm -f "$tmp"/*.ns "$tmp"/*.lowest
	for ((i = 0; i < rounds; i++)); do
		repeat "$load" >>"$tmp/none.ns"
		for name in $tracers; do
			begin_trace "$question" "$name" || continue
			measure "$load" >/dev/null # the reader's code is compiled
			repeat "$load" >>"$tmp/$name.ns"
			end_trace
		done
	done
	for name in none $tracers; do
		[ ! -s "$tmp/$name.ns" ] || lowest "$tmp/$name.ns" >"$tmp/$name.lowest"
	done
}

# line NAME AWK-EXPRESSION: prints a value for each tracer; in the expression, t is traced and u is not
line() {
	local name
	printf '%-14s' "$1"
	for name in $tracers; do
		if [ -s "$tmp/$name.lowest" ]; then
			printf '%12s' "$(awk -v t="$(cat "$tmp/$name.lowest")" -v u="$(cat "$tmp/none.lowest")" \
				"BEGIN { printf \"$2\", $3 }")"
		else
			printf '%12s' -
		fi
	done
	echo
}

echo "$title"
for load in ${@:-tight pipe redis}; do
	if [ "$load" = redis ]; then
		type redis-server >/dev/null 2>&1 || continue
		taskset -c 0 redis-server --port $port --save '' --daemonize no >/dev/null 2>&1 &
		server=$!
		until redis-cli -p $port ping >/dev/null 2>&1; do sleep 0.1; done
	fi
	case $load in
	tight) events=$((loops * 5 * 2)) ;;
	pipe) events=$((loops * 8)) ;;
	esac
	for question in count hist pairs; do
		rounds_of "$load" $question
		if [ "$load" = redis ]; then
			line "redis $question" '%.2f' 't / u'
		else
			line "$load $question" '%.0f' "(t - u) / $events"
		fi
	done
done
exit $failed
