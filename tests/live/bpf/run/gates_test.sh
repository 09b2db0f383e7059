#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only
# Sources whose condition is that pairs took too long: BPF programs find these, and send the events that are passed on
# and no others. Others get the same events as through perf.
# Runs alone.
. "$(dirname "$0")/../../../lib.sh"
needs_tracepoint raw_syscalls:sys_enter raw_syscalls:sys_exit sched:sched_switch sched:sched_wakeup

calls='-e raw_syscalls:sys_enter -e raw_syscalls:sys_exit'
# shellcheck disable=SC2086 # words
why=$("$PROFSCRIPT" multi-trace $calls --capture=bpf --than 1s --duration 0.01 2>&1 >/dev/null) || skip_all "$why"
SLEEP=230 # clock_nanosleep

# --- the same events ------------------------------------------------------------------------------

# agrees NAME WORD...: perf and BPF programs, which run at the same time, print the same about the workload
agrees() {
	local name=$1 peer
	shift
	"$PROFSCRIPT" "$@" --capture perf -m 4096 --format json >"$TMP/perf" 2>"$TMP/perf.err" &
	peer=$!
	wait_ready $peer
	start "$@" --capture bpf -m 4096 --format json -v
	go
	kill -INT $peer
	wait $peer
	stop
	# The events of two sources at the same tracepoint have about the same time.
	sed -Ei 's/"(time|clock)":[0-9.]*,?//g; /"table"/s/("calls":[0-9]*).*/\1/' "$TMP/perf" "$TMP/out"
	check "$name" diff <(sort "$TMP/perf") <(sort "$TMP/out")
	check "$name: in the kernel" grep -q 'paired in the kernel, by a BPF program; those over 0 ns are passed on' "$TMP/err"
}

# some N: N lines or more were printed
some() { check "there are some" test "$(wc -l <"$TMP/out")" -ge "$1"; }

workload syscalls 2000
agrees 'by thread' trace -e "multi-trace/$calls --than 0ns/" -p "$WORKLOAD"
some 2000
check 'only the last events' test "$(grep -c sys_enter "$TMP/out")" = 0
workload -C 0 states signal 50 fork 50
agrees 'by a field that is a thread' trace -e "multi-trace/$calls -k common_pid --than 0ns/" -p "$WORKLOAD"
some 300
workload -C 0 states signal 50 fork 50
agrees 'by any key' trace -e "multi-trace/$calls -k common_pid+0 --than 0ns/" -p "$WORKLOAD"
some 300
workload -C 0 states signal 50 fork 50
agrees 'a cycle' trace -e "multi-trace/$calls --cycle --than 0ns/" -p "$WORKLOAD"
some 600
# The child of a fork returns from a call that it has not made, and the last call of a task ends with it.
workload -C 0 states signal 50 fork 50
agrees 'system calls' trace -e 'syscalls/--than 0ns/' -p "$WORKLOAD"
some 200
workload syscalls 2000
agrees 'a filter' trace -e "multi-trace/$calls --filter id==$GETPPID --than 0ns/" -p "$WORKLOAD"
check 'those of the workload' test "$(wc -l <"$TMP/out")" = 2000
workload syscalls 2000
agrees 'two sources' trace -e "multi-trace/$calls --than 0ns/,syscalls/--than 0ns/" -p "$WORKLOAD"
some 4000

# --- other consumers ------------------------------------------------------------------------------

workload syscalls 2000
agrees 'beside the same event' trace -e "raw_syscalls:sys_exit,multi-trace/$calls --than 0ns/" -p "$WORKLOAD"
some 4000
workload syscalls 2000
agrees 'keys of the profiler that uses it' multi-trace -e "multi-trace/$calls --than 0ns/key=id/role=1/" \
	-e "raw_syscalls:sys_enter//key=id/" -p "$WORKLOAD"
check 'some pairs' grep -q '"calls":1999' "$TMP/out"
workload syscalls 2000
agrees 'a source of a source' trace -e "trace/-e 'syscalls/--than 0ns/'/" -p "$WORKLOAD"
some 2000
workload syscalls 2000
agrees 'a gate of a gate' trace -e "multi-trace/-k common_pid -e raw_syscalls:sys_enter -e 'syscalls/--than 0ns/key=common_pid/' --than 0ns/" \
	-p "$WORKLOAD"
some 2000
expect_line 'whose condition is evaluated here' 'passed on: if the condition of multi-trace is true' "$TMP/err"
workload syscalls 2000
trace_workload exec -e "multi-trace/$calls --filter id==$GETPPID --than 0ns/" 'count(ev._event)' -i 20 -p "$WORKLOAD" \
	--capture bpf -m 4096 --csv
check 'intervals that are too short for sums' test "$(awk -F, '/sys_exit,/ { n += $NF } END { print n }' "$TMP/out")" = 2000

cat >"$TMP/both.lua" <<'END'
local counter = require 'lib.counter'
return {
  summary = 'Count calls, and those that took long',
  options = { than = { type = 'string', default = '0ns', help = 'time' }, only = { type = 'string', help = 'filter' } },
  start = function(opt, out)
    local all, long, lost = counter.new({ 'id' }, { name = 'all' }), 0, 0
    return {
      [('raw_syscalls:sys_enter/%s/'):format(opt.only)] = function(ev) all:add(1, ev.id) end,
      [('syscalls/--than %s/'):format(opt.than)] = function() long = long + 1 end,
      lost = function(gap) lost = lost + gap.lost end,
      interval = function()
        all:print(out)
        all:clear()
      end,
      stop = function()
        all:print(out)
        out:row { 'long', long, 'lost', lost }
      end,
    }
  end,
}
END
workload syscalls 20000
trace_workload "$TMP/both.lua" --only "id==$GETPPID" -p "$WORKLOAD" --capture bpf -i 100 -m 4096 -v
expect_line 'beside what is counted in the kernel' "^ *$GETPPID +[0-9]+" "$TMP/out"
awk -v id="$GETPPID" '$1 == id { n += $2 } END { exit n != 20000 }' "$TMP/out"
result $? 'all calls' "$TMP/out"
expect_line 'and each that is passed on: the other calls are the one before the start, and the exit' '^ *20000 +0$' "$TMP/out"

# --- only those over the threshold ----------------------------------------------------------------

only="-e 'raw_syscalls:sys_enter/id==$GETPPID||id==$SLEEP/' -e 'raw_syscalls:sys_exit/id==$GETPPID||id==$SLEEP/'"
load="for i in 1 2 3 4 5 6 7 8 9 10; do $TOP/build/workloads/syscalls 500; sleep 0.01; done"
sleeps() { grep -c ": raw_syscalls:sys_exit: NR $SLEEP .*= 0" "$TMP/out"; }

# Of 5000 short calls and 10 that sleep, those that sleep. On a busy machine, short ones may take long, too.
for source in "multi-trace/$only -k common_pid --than 5ms/" "multi-trace/$only -k common_pid+0 --than 5ms/" 'syscalls/--than 5ms/'; do
	"$PROFSCRIPT" trace -e "$source" --capture bpf -v -- bash -c "$load" >"$TMP/out" 2>"$TMP/err"
	check "$source: those that sleep" test "$(sleeps)" = 10
	check "$source: only ends" test "$(grep -c sys_enter: "$TMP/out")" = 0
	check "$source: few" test "$(wc -l <"$TMP/out")" -lt 500
	expect_line "$source: all events are counted" '^profscript: [0-9]{5,} events, 0 lost' "$TMP/err"
done
"$PROFSCRIPT" trace -e "multi-trace/$only -k common_pid --lower 1ns/" --capture bpf -- bash -c "$load" >"$TMP/out" 2>"$TMP/err"
check 'none is so short' test ! -s "$TMP/out"
"$PROFSCRIPT" trace -e "syscalls/--than 5ms/" --capture bpf -N 3 -- bash -c "$load; $load" >"$TMP/out" 2>"$TMP/err"
check '-N counts what is passed on' test "$(wc -l <"$TMP/out")" = 3
"$PROFSCRIPT" trace -e "syscalls/--than 5ms -N 4/,sched:sched_process_exec" -- bash -c "$load" >"$TMP/out" 2>"$TMP/err"
check 'so does that of a source' test "$(grep -c sys_exit: "$TMP/out")" = 4
check 'which ends only the source' test "$(grep -c sched_process_exec: "$TMP/out")" -gt 15

# Two tasks that wake each other: they wait after each wakeup.
# waits NAME ARG...: both ways pass on the same switches to them. A run ends with its target: the last switches to the child
# may be missing.
waits() {
	local name=$1 how peer
	shift
	"$PROFSCRIPT" "$@" --capture perf -m 4096 --json >"$TMP/perf" 2>"$TMP/perf.err" &
	peer=$!
	wait_ready $peer
	start "$@" --capture bpf -m 4096 --json -v
	watch_tasks 'p[io]ng'
	go
	kill -INT $peer 2>/dev/null
	wait $peer
	stop
	for how in perf out; do
		grep -E '"next_comm":"p[io]ng"' "$TMP/$how" | sed -E 's/"(time|clock)":[0-9.]*,?//g' >"$TMP/$how.switches"
	done
	check "$name: some" test "$(wc -l <"$TMP/out.switches")" -ge 1990
	check "$name: nothing but switches" test "$(grep -vc '"event":"sched:sched_switch"' "$TMP/out")" = 0
	all_reported "$name" "$TMP/perf.err" "$TMP/err" && check "$name" diff "$TMP/perf.switches" "$TMP/out.switches"
	check "$name: in the kernel" grep -q '; those over 0 ns are passed on' "$TMP/err"
}
workload pingpong -c 0 1000
waits 'waits of all tasks' trace -e 'rundelay/--than 0ns/'
workload pingpong -c 0 1000
waits 'waits of threads' trace -e 'rundelay/--than 0ns/' -p "$WORKLOAD"

# --- losses, exports ------------------------------------------------------------------------------

workload syscalls 100000
trace_workload trace -e "multi-trace/$calls --filter id==$GETPPID --than 0ns/" -p "$WORKLOAD" --capture bpf -m 4 -v
seen=$(grep -c sys_exit: "$TMP/out")
lost=$(sed -n 's/^profscript: [0-9]* events, \([0-9]*\) lost.*/\1/p' "$TMP/err")
check "$seen passed on, $lost lost" test $((seen + lost)) -eq 100000 -a "$lost" -gt 0 -a "$seen" -gt 0

workload syscalls 1000
trace_workload trace -e "multi-trace/$calls --filter id==$GETPPID --than 0ns/" -p "$WORKLOAD" --capture bpf -m 4096 \
	--export "$TMP/events.json" -v
check '--export has what is passed on' test "$(grep -o '"name":"raw_syscalls:sys_exit"' "$TMP/events.json" | wc -l)" = 1000
check '--export: in the kernel' grep -q 'are passed on' "$TMP/err"

# --- what is not possible -------------------------------------------------------------------------

# not_in_kernel WHY SOURCE ARG...: the source's events are read, and its condition is evaluated here
not_in_kernel() {
	local why=$1 source=$2
	shift 2
	"$PROFSCRIPT" explain trace -e "$source" "$@" >"$TMP/out" 2>&1
	check "not in the kernel: $why" test "$(grep -c 'paired in the kernel' "$TMP/out")" = 0
	expect_line "$why: the reason" "^    not counted in the kernel: $why" "$TMP/out"
	expect_line "$why: where then" '^    passed on: if the condition of [a-z-]* is true$' "$TMP/out"
}
not_in_kernel 'as --capture says' "multi-trace/$calls --than 1ms/" --capture perf
not_in_kernel 'stacks are recorded' "multi-trace/$calls --than 1ms -g/"
not_in_kernel 'raw_syscalls:sys_exit has the attribute cpus=' "multi-trace/$calls --than 1ms -C 0/"
not_in_kernel 'other events are read, too' "multi-trace/$calls -e 'raw_syscalls:sys_exit,sched:sched_switch//untraced/' --than 1ms/"
not_in_kernel 'the common_flags of sched:sched_wakeup may be read' \
	"multi-trace/-e 'sched:sched_wakeup//key=pid/' -e 'sched:sched_switch//key=next_pid/' --than 1ms --cycle/"
not_in_kernel 'sched:sched_wakeup is read in all tasks' 'rundelay/--than 1ms/,raw_syscalls:sys_enter' -p $$
not_in_kernel '--overwrite' "multi-trace/$calls --than 1ms/" --overwrite
cat >"$TMP/own.lua" <<'END'
local pairs = require 'lib.pairs'
return {
  summary = 'Pass on some calls, by more than their time',
  options = { handler = { type = 'flag', help = 'look at the events, too' }, others = { type = 'flag', help = 'or at others' } },
  start = function(opt, out, session)
    local enter, exit = session.event { 'raw_syscalls:sys_enter' }, session.event { 'raw_syscalls:sys_exit' }
    local pass = session.gate()
    local n, own = 0, opt.handler or opt.others
    return {
      pairs.new { stages = { { enter }, { exit } }, key = 'common_pid', than = 0, pass = own and pass or nil,
        pair = function(p, second) if p.ns > 5e6 then (pass or function() out:print_event(second) end)(second) end end },
      [exit] = opt.handler and function() end or nil,
      ['raw_syscalls:sys_enter'] = opt.others and function()
        n = n + 1
        if n == 1 then io.stderr:write('a call\n') end
      end or nil,
    }
  end,
}
END
not_in_kernel 'the script looks at each pair' "\"$TMP/own.lua\""
not_in_kernel 'raw_syscalls:sys_exit has a handler' "\"$TMP/own.lua\"/--handler/"
"$PROFSCRIPT" explain trace -e "\"$TMP/own.lua\"/--others/" >"$TMP/out" 2>&1
expect_line 'a source may do more with other events' 'sys_exit: .*; those over 0 ns are passed on$' "$TMP/out"
expect_line 'which are read, and not passed on' '^    passed on: if the condition of own is true$' "$TMP/out"
"$PROFSCRIPT" trace -e "\"$TMP/own.lua\"/--others/" --capture bpf -m 4096 -- "$TOP/build/workloads/syscalls" 1000 >"$TMP/out" 2>"$TMP/err"
check 'what is passed on' test "$(grep -c ": raw_syscalls:sys_exit: NR $GETPPID = " "$TMP/out")" = 1000
check 'and nothing else' test "$(grep -vc ': raw_syscalls:sys_exit: ' "$TMP/out")" = 0
check 'a handler of the source' grep -qx 'a call' "$TMP/err"
"$PROFSCRIPT" trace -e "\"$TMP/own.lua\"" -- bash -c "$load" >"$TMP/out" 2>"$TMP/err"
check 'a condition of its own' test "$(sleeps)" = 10
sed 's/own and pass or nil/print/' "$TMP/own.lua" >"$TMP/wrong.lua"
refused 'another function' 1 ".*wrong.lua:[0-9]+: pairs.new: pass is what session.gate\(\) has returned" "$TMP/wrong.lua"
"$PROFSCRIPT" explain trace -e "multi-trace/$calls --than 1500us --lower 2us/" >"$TMP/out"
expect_line 'explain: ends' '^  raw_syscalls:sys_exit: .*, paired in the kernel, .*; those over 1.5 ms or under 2 us are passed on$' "$TMP/out"
expect_line 'explain: starts' '^  raw_syscalls:sys_enter: id [0-9]+, paired in the kernel, by a BPF program$' "$TMP/out"
check 'explain: nothing is evaluated here' test "$(grep -c 'passed on: if' "$TMP/out")" = 0

leaves_no_program 2 trace -e "multi-trace/$calls --than 1s/" --capture bpf
