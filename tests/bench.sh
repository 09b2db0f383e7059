#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only
# Prints one line per benchmark: name, ours and the peer's in ns of CPU per event (attach: ns of
# time), and ours / peer. All lines come from this one run on this machine; needs root and perf.
# If $PERF_PROF is the program of perf-prof, the lines of tests/bench/perf_prof.sh follow.
#
#   live_pairs    sys_enter -> sys_exit paired by thread during `perf bench sched pipe`; the peer is
#                 the goal of 30 ns
#   over_floor    the same; the peer is a reader that does nothing but look at each record's header
#                 and time: what the machine's caches charge for records another CPU has written
#   live_details  the same with --than and --detail: the kernel keeps the newest events; the peer of
#                 this and of the next two is live_pairs
#   live_syscalls the same by the profiler syscalls: a row for each call, errors
#   live_rundelay run queue latencies of all tasks during the benchmark
#   record_count  count by a field in a recording; the peer is `perf script -s` with Python
#   record_text   the whole recording as text, written to /dev/null; the peer is `perf script`
#   lib_*         one use of a library in a handler, beyond what a handler takes that adds up times: keys and values
#                 (lib_map), starts and ends (lib_join), moving quantiles and rates (lib_window, lib_rate), sums of keys
#                 of which the largest are printed (lib_top), quantiles by key, histograms, counts by period
#                 (lib_grid); the peer is the goal
#   key_expr      pairing in a recording with an expression as the key; the peer is the plain field
#   live_stacks   count by both stacks and task, as flame graphs do, during the same; the peer is the goal of 400 ns
#   live_hybrid   the same with copies of 512 bytes of the stack, which is what -g does; the peer is live_stacks
#   flame_graph   recorded stacks to an SVG; the peer is `perf script` and an awk program that folds its stacks,
#                 without a drawing
#   stack_count   count by stack in a recording; the peer is `perf script` printing the stacks
#   stack_text    print all stacks of that recording; the peer is the same
#   stack_dwarf   unwind and print stacks of a recording of `perf record --call-graph dwarf`;
#                 the peer is `perf script`
#   bpf_record    a BPF program's records of each system call, from its ring buffer to a handler; the peer
#                 is the goal of 40 ns
#   bpf_reject    a program that rejects 99 % of sched_switch, per switch; the peer is counting all of them
#   top, num_dist, task_state, kmemleak
#                 these profilers during the same, kmemleak during `perf bench sched messaging`; the peer is
#                 the goal
#   push_tcp      sending the events of live_pairs to a receiver on this machine, instead of pairing them; the peer
#                 is the goal
#   push_zstd     the same, compressed, to a file in memory
#   pull_pairs    the events of live_pairs, but from a sender on this machine; the peer is live_pairs and the
#                 goal of 40 ns
#   merge_many    the records of 64 CPUs brought into the order of time and decoded; the peer is one CPU's,
#                 which are in order
#   sql_*         SQL on kept events, see tests/bench/sql_scan.c; the peer is inserting them into an SQLite table, which
#                 must cost at least five times as much as a scan with a filter
#   attach        from exec until two tracepoints are open; the peer is `perf record`
#
# Live events are read through perf (--capture perf): what programs in the kernel take has benchmarks of its own,
# tests/bench/{capture,pairs,tally}.sh.
#
# BENCH_LOOPS: loops of the pipe benchmark, each about eight events (300000).
set -u
cd "$(dirname "$0")/.." || exit 1
. tests/bench/lib.sh
trap 'rm -rf "$tmp"' EXIT
pair=(-e raw_syscalls:sys_enter -e raw_syscalls:sys_exit)
load=pipe_bench # what runs while live_cpu() looks
pages=1024 # of each ring
push_port=9917 pull_port=9918

messaging_bench() {
	perf bench sched messaging -g 4 -l $((loops / 2000)) >/dev/null
}

pipe_bench() {
	taskset -c 0 perf bench sched pipe -l "$loops" >/dev/null
}

# ns of CPU that the command uses from start to end
command_cpu() {
	local TIMEFORMAT='%U %S'
	{ time "$@" >/dev/null 2>"$tmp/err"; } 2>"$tmp/time" || return
	awk '{ printf "%d", ($1 + $2) * 1e9 }' "$tmp/time"
}

# ns of CPU of a live tracer for the events of the load, which runs twice: the first time it compiles what
# it does with them, and touches all of its rings; the second time is measured, and stands for both.
live_cpu() {
	local pid before after
	"$@" >/dev/null 2>"$tmp/err" &
	pid=$!
	sleep 1
	$load && sleep 0.5
	before=$(process_cpu $pid) && $load && sleep 0.5 && after=$(process_cpu $pid)
	kill -INT $pid && wait $pid
	awk "BEGIN { print ($after - $before) * 2 }"
}

# relative NAME PEER ARG...: the same during the pipe benchmark
relative() {
	local name=$1 peer=$2 cpu n
	shift 2
	cpu=$(live_cpu $profscript "$@" --capture perf -m 1024 -v)
	n=$(events)
	if [ "${n:-0}" -gt 0 ]; then
		row "$name" "$(per_event "$cpu" "$n")" "$peer"
	else
		fail "$name"
	fi
}

live_pairs() {
	local cpu n ours
	cpu=$(live_cpu $profscript multi-trace "${pair[@]}" -k common_pid --capture perf -m 1024 -v)
	n=$(events)
	[ "${n:-0}" -gt 0 ] || { fail live_pairs; return; }
	grep '^profscript: .* events,' "$tmp/err" | tail -n 1 >&2
	ours=$(per_event "$cpu" "$n")
	row live_pairs "$ours" 30
	pairs_ns=$ours
	relative live_details "$ours" multi-trace "${pair[@]}" -k common_pid --than 100s --detail
	relative live_syscalls "$ours" syscalls
	relative live_rundelay "$ours" rundelay
	pipe_bench &
	sleep 0.2
	build/workloads/ring_walk 1024 2 raw_syscalls/sys_enter raw_syscalls/sys_exit >"$tmp/floor" 2>"$tmp/err"
	wait
	row over_floor "$ours" "$(awk '{ print $2 }' "$tmp/floor")"
}

# lists NAME GOAL ARGS: a profiler
lists() {
	local cpu n
	# shellcheck disable=SC2086 # words
	cpu=$(live_cpu $profscript $3 --capture perf -m $pages -v)
	n=$(events)
	[ "${n:-0}" -gt 0 ] || { fail "$1"; return; }
	row "$1" "$(per_event "$cpu" "$n")" "$2"
}

all_lists() {
	local woken='sched:sched_wakeup//key=pid/comm=comm/,sched:sched_switch//key=prev_pid/comm=prev_comm/'
	local number='raw_syscalls:sys_enter//num=id/'
	local alloc='kmem:kmalloc,kmem:kmem_cache_alloc' free='kmem:kfree,kmem:kmem_cache_free'
	lists top 28 "top -e $woken -i 1000"
	lists num_dist 28 "num-dist -e $number"
	lists task_state 42 task-state
	load=messaging_bench pages=16384 # the CPUs have no time left: what is lost is never freed
	lists kmemleak 60 "kmemleak --alloc $alloc --free $free"
	load=pipe_bench pages=1024
}

# lib_use NAME FILE EVENTS ENTER EXIT: what one use of a library costs, beyond handlers that only add up times: the
# difference of the lowest of five runs each
lib_use() {
	local plain= used= cpu
	for _ in 1 2 3 4 5; do
		lib_script 'sum = sum + ev._time' 'sum = sum - ev._time'
		cpu=$(command_cpu $profscript "$tmp/lib.lua" --input "$2")
		plain=$((cpu < ${plain:-cpu} ? cpu : ${plain:-cpu}))
		lib_script "$4" "$5"
		cpu=$(command_cpu $profscript "$tmp/lib.lua" --input "$2")
		used=$((cpu < ${used:-cpu} ? cpu : ${used:-cpu}))
	done
	row "$1" "$(per_event "$((used > plain ? used - plain : 0))" "$3")" 10
}

lib_script() {
	cat >"$tmp/lib.lua" <<-LUA
		local map, join, window = require 'lib.map', require 'lib.join', require 'lib.window'
		local hist, aggregate, grid = require 'lib.hist', require 'lib.aggregate', require 'lib.grid'
		return { summary = 's', start = function(_, out)
		  local sum, keys, calls, recent = 0, map.new(), join.new(), window.new '1s'
		  local values, top, floor = hist.new(), aggregate.new('sum', { 'id' }), math.floor
		  local times = aggregate.new('quantiles', { 'id' })
		  local cells = grid.new { name = 'g', events = {}, period = 1e6, interval = 1e9, by = 'CPU', out = out }
		  return {
		    ['raw_syscalls:sys_enter'] = function(ev) $1 end,
		    ['raw_syscalls:sys_exit'] = function(ev) $2 end,
		    stop = function() return sum, keys, calls, recent, values, top, times, cells, floor end,
		  }
		end }
	LUA
}

recording() {
	local data=$tmp/perf.data cpu n ours peer
	perf record -q -m 1024 "${pair[@]}" -o "$data" -- \
		taskset -c 0 perf bench sched pipe -l "$loops" >/dev/null || return
	cat >"$tmp/count.py" <<-'PYTHON'
		counts = {}
		def add(id): counts[id] = counts.get(id, 0) + 1
		def raw_syscalls__sys_enter(name, context, cpu, s, ns, pid, comm, chain, id, args, d): add(id)
		def raw_syscalls__sys_exit(name, context, cpu, s, ns, pid, comm, chain, id, ret, d): add(id)
		def trace_end(): print(counts)
	PYTHON
	cpu=$(command_cpu $profscript exec -v --input "$data" "${pair[@]}" 'count(ev.id)')
	n=$(events)
	if [ "${n:-0}" -gt 0 ]; then
		ours=$(per_event "$cpu" "$n")
		peer=$(command_cpu perf script -i "$data" -s "$tmp/count.py") &&
			peer=$(per_event "$peer" "$n") || peer=-
		row record_count "$ours" "$peer"
	else
		fail record_count
	fi
	cpu=$(command_cpu $profscript trace -v --input "$data" "${pair[@]}")
	n=$(events)
	if [ "${n:-0}" -gt 0 ]; then
		ours=$(per_event "$cpu" "$n")
		peer=$(per_event "$(command_cpu perf script -i "$data")" "$n")
		row record_text "$ours" "$peer"
	else
		fail record_text
	fi
	lib_use lib_map "$data" "$n" "keys:add(ev:u64 'id' + 0xffff888100000000ULL)" 'sum = sum + keys:add(ev.id)'
	lib_use lib_join "$data" "$n" 'calls:start(ev._tid, ev._time, ev.id)' \
		'local ns, id = calls:finish(ev._tid, ev._time) if ns then sum = sum + ns + id end'
	lib_use lib_window "$data" "$n" 'recent:add(ev._time, ev.id)' 'if ev.ret > (recent:quantile(0.99) or 0) then sum = sum + 1 end'
	lib_use lib_rate "$data" "$n" 'recent:add(ev._time)' 'sum = sum + recent:rate()'
	lib_use lib_top "$data" "$n" 'top:add(1, ev.id)' 'top:add(ev.ret, ev.id)'
	lib_use lib_quantiles "$data" "$n" 'times:add(ev.args[0], ev.id)' 'times:add(ev._time % 4096, ev.id)'
	lib_use lib_hist "$data" "$n" 'values:add(ev.id)' 'values:add(ev._time % 4096)'
	lib_use lib_grid "$data" "$n" 'cells:add(floor(ev._time / 1e6), ev._cpu, 1, 1)' 'cells:add(floor(ev._time / 1e6), ev._cpu, 2, 1)'
	cpu=$(command_cpu $profscript multi-trace -v --input "$data" "${pair[@]}" -k 'common_pid * 2 + 1')
	n=$(events)
	peer=$(command_cpu $profscript multi-trace --input "$data" "${pair[@]}" -k common_pid)
	row key_expr "$(per_event "$cpu" "$n")" "$(per_event "$peer" "$n")"
}

# stack_row NAME DATA EVENT COMMAND...: ours, and perf script as the peer
stack_row() {
	local name=$1 data=$2 event=$3 cpu n
	shift 3
	cpu=$(command_cpu $profscript "$@" -v -g --input "$data" -e "$event")
	n=$(events)
	[ "${n:-0}" -gt 0 ] || { fail "$name"; return; }
	row "$name" "$(per_event "$cpu" "$n")" "$(per_event "$(command_cpu perf script --no-inline -i "$data")" "$n")"
}

stacks() {
	local data=$tmp/stacks.data
	perf record -q -g -m 1024 -e raw_syscalls:sys_enter -o "$data" -- \
		taskset -c 0 perf bench sched pipe -l "$((loops / 3))" >/dev/null || return
	stack_row stack_count "$data" raw_syscalls:sys_enter exec 'count(ev._stack)'
	stack_row stack_text "$data" raw_syscalls:sys_enter trace
	perf record -q --call-graph dwarf -m 4096 -e raw_syscalls:sys_enter -o "$data" -- \
		taskset -c 0 perf bench sched pipe -l "$((loops / 100))" >/dev/null || return
	stack_row stack_dwarf "$data" raw_syscalls:sys_enter trace
}

# bpf_cpu EVERY TRACEPOINT: leaves ns of CPU per record in $each, per pass in $pass
bpf_cpu() {
	local cpu records passes
	cpu=$(live_cpu $profscript tests/scripts/bpf/count.lua --every "$1" --tracepoint "$2" -o "$tmp/bpf" -v)
	read -r _ records _ passes _ < <(grep '^records' "$tmp/bpf")
	rm -f "$tmp/bpf"
	[ "${records:-0}" -gt 0 ] || return
	each=$(per_event "$cpu" "$records") pass=$(per_event "$cpu" "$passes")
}

bpf() {
	local each pass cpu n
	bpf_cpu 1 sys_enter || { fail bpf_record; return; }
	row bpf_record "$each" 40
	bpf_cpu 100 sched_switch || { fail bpf_reject; return; }
	cpu=$(live_cpu $profscript exec -v -e sched:sched_switch 'count(ev._cpu)' -m 1024)
	n=$(events)
	[ "${n:-0}" -gt 0 ] || { fail bpf_reject; return; }
	row bpf_reject "$pass" "$(per_event "$cpu" "$n")"
}

# The shortest of five times from exec until the command's workload runs, which prints when that was
first_breath() {
	local begin end best=
	for _ in 1 2 3 4 5; do
		begin=$(date +%s%N)
		end=$("$@" -- date +%s%N 2>"$tmp/err" | grep -E '^[0-9]{19}$') || return
		end=$((end - begin))
		[ -n "$best" ] && [ "$best" -lt $end ] || best=$end
	done
	echo "$best"
}

attach() {
	local ours
	ours=$(first_breath $profscript multi-trace "${pair[@]}" -k common_pid) || { fail attach; return; }
	row attach "$ours" "$(first_breath perf record -q "${pair[@]}" -o "$tmp/attach.data")"
}

# stacks_of NAME GRAPH PEER: sets $per_stack
stacks_of() {
	local cpu n
	cpu=$(live_cpu $profscript exec "${pair[@]}" --call-graph="$2" 'count(ev._stack, ev._comm)' -m 4096 -v)
	n=$(events)
	[ "${n:-0}" -gt 0 ] || { fail "$1"; return 1; }
	grep '^profscript: .* events,' "$tmp/err" | tail -n 1 >&2
	per_stack=$(per_event "$cpu" "$n")
	row "$1" "$per_stack" "$3"
}

live_stacks() {
	stacks_of live_stacks fp 400 && stacks_of live_hybrid hybrid "$per_stack"
}

fold='
!NF { if (stack != "") n[comm ";" stack]++; stack = ""; next }
/^[^ \t]/ { comm = $1; next }
{ sub(/^[ \t]*[0-9a-f]+ /, ""); stack = $0 (stack == "" ? "" : ";" stack) }
END { for (s in n) print s, n[s] }'

flame_graph() {
	local data=$tmp/stacks.data cpu n ours
	perf record -q -g -m 2048 "${pair[@]}" -o "$data" -- \
		taskset -c 0 perf bench sched pipe -l "$((loops / 4))" >/dev/null 2>&1
	cpu=$(command_cpu $profscript trace -v --input "$data" --flame-graph "$tmp/stacks.svg")
	n=$(events)
	[ "${n:-0}" -gt 0 ] || { fail flame_graph; return; }
	ours=$(per_event "$cpu" "$n")
	cpu=$(command_cpu sh -c 'perf script -i "$0" -F comm,ip,sym | awk "$1"' "$data" "$fold")
	row flame_graph "$ours" "$(per_event "$cpu" "$n")"
}

# pushed NAME GOAL ADDRESS
pushed() {
	local cpu n
	cpu=$(live_cpu $profscript trace "${pair[@]}" -m 1024 --push "$3")
	n=$(sed -n 's/^push .*: \([0-9]*\) events, .*/\1/p' "$tmp/err")
	[ "${n:-0}" -gt 0 ] || { fail "$1"; return; }
	row "$1" "$(per_event "$cpu" "$n")" "$2"
}

push() {
	local dir=$tmp
	[ -w /dev/shm ] && dir=$(mktemp -d /dev/shm/push.XXXXXX)
	(
		until { exec 3<>"/dev/tcp/127.0.0.1/$push_port"; } 2>/dev/null; do sleep 0.1; done
		exec cat <&3 >/dev/null
	) &
	pushed push_tcp 60 "$push_port"
	pushed push_zstd 200 "$dir/pushed"
	[ "$dir" = "$tmp" ] || rm -r "$dir"
}

pull() {
	local from cpu n sender
	$profscript trace "${pair[@]}" -m 1024 --push $pull_port >"$tmp/sent" 2>&1 &
	sender=$!
	sleep 1
	from=(-e "raw_syscalls:sys_enter//pull=$pull_port/" -e "raw_syscalls:sys_exit//pull=$pull_port/")
	cpu=$(live_cpu $profscript multi-trace "${from[@]}" -k common_pid -v)
	n=$(events)
	kill -INT $sender
	wait $sender
	[ "${n:-0}" -gt 0 ] || { fail pull_pairs; return; }
	grep -h 'lost\|dropped' "$tmp/err" "$tmp/sent" | tail -n 3 >&2
	row pull_pairs "$(per_event "$cpu" "$n")" "$(awk -v ns="${pairs_ns:-30}" 'BEGIN { print ns + 40 }')"
}

merge_many() {
	row merge_many "$(build/bench/merge_many 64)" "$(build/bench/merge_many 1)"
}

sql_scan() {
	local name ours peer
	while read -r name ours peer; do row "$name" "$ours" "$peer"; done < <(build/bench/sql_scan)
}

live_pairs
live_stacks
all_lists
push
pull
merge_many
sql_scan
recording
flame_graph
stacks
bpf
attach
[ -z "${PERF_PROF-}" ] || tests/bench/perf_prof.sh || failed=1
exit $failed
