#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only
# Events of single system calls in BPF programs: the calls that perf counts and no others, several programs of one event,
# pairs and targets. perf has them where programs would cost more.
# Runs alone.
. "$(dirname "$0")/../../../lib.sh"
needs_tracepoint syscalls:sys_enter_{semget,getppid} syscalls:sys_exit_{semget,getppid} raw_syscalls:sys_enter
SEEN=$TOP/tests/tools/seen.lua
ENTER=syscalls:sys_enter_getppid EXIT=syscalls:sys_exit_getppid

"$PROFSCRIPT" exec 'count()' -e $ENTER --capture bpf --duration 1ms -q >/dev/null 2>"$TMP/err" ||
	skip_all "$(head -n 1 "$TMP/err")"
"$PROFSCRIPT" exec 'count()' -e $ENTER --capture bpf --dry-run >"$TMP/out"
expect_line 'the plan tells it' 'sys_enter_getppid: .*counted in the kernel, by a BPF program' "$TMP/out"

# --- which calls ----------------------------------------------------------------------------------

# of NAME: a filter for the events of the workload
of() { echo "$1/common_pid == $WORKLOAD/"; }

if "$TOP/build/workloads/numbers" 1 2>/dev/null; then
	for how in perf bpf; do
		workload numbers 300
		start exec 'count(ev._event)' --csv --capture $how -m 2048 -e "$(of syscalls:sys_enter_semget)" \
			-e "$(of syscalls:sys_exit_semget)" -e "raw_syscalls:sys_enter/id == 64 && common_pid == $WORKLOAD/"
		go
		stop
		expect_line "$how: calls of 64-bit programs, with numbers of 32 bits" ',syscalls:sys_enter_semget,600$' "$TMP/out"
		expect_line "$how: their ends" ',syscalls:sys_exit_semget,600$' "$TMP/out"
		[ $how = perf ] && calls=900 || calls=600
		expect_line "$how: only programs tell those of 32-bit programs apart" ",raw_syscalls:sys_enter,$calls\$" "$TMP/out"
	done

	workload numbers 300
	capture_agrees 'arguments' exec -e "syscalls:sys_enter_semget/nsems > 7 && common_pid == $WORKLOAD/" \
		'count(ev.nsems, ev.key, ev.__syscall_nr)'
	expect_line 'each value' ",9,$((0x70726f66)),64,60\$" "$TMP/out"
	workload numbers 300
	capture_agrees 'results' exec -e "$(of syscalls:sys_exit_semget)" 'count(ev.ret)'
	expect_line 'no such file' ',-2,600$' "$TMP/out"
	workload numbers 300
	capture_agrees 'three programs' exec -e "$(of syscalls:sys_enter_semget)" \
		'count(ev.nsems) sum(ev.nsems, ev._comm) hist(ev.nsems)'
	expect_line 'the second one' ',numbers,2700$' "$TMP/out"
	workload numbers 300
	capture_agrees 'two events of one call' exec -e "syscalls:sys_enter_semget/nsems == 1 && common_pid == $WORKLOAD/" \
		-e "syscalls:sys_enter_semget/nsems >= 5 && common_pid == $WORKLOAD/" 'count(ev.nsems)'
	expect_line 'the first one' ',1,60$' "$TMP/out"
else
	skip 'which calls' 'this kernel runs no 32-bit programs'
fi

# The same records as perf's. Another CPU may ask for a switch between the two; a few of perf's at the start may be
# missing.
read -r online </sys/devices/system/cpu/online
events=()
for event in syscalls:sys_enter_{getppid,openat,mmap} syscalls:sys_exit_{getppid,read,clone}; do
	events+=(-e "$event" -e "$event//cpus=$online/")
	expect_line "$event is captured" 'captured by a BPF program' < <("$PROFSCRIPT" "$SEEN" -e $event --capture bpf --dry-run)
done
"$PROFSCRIPT" "$TOP/tests/tools/captured.lua" "${events[@]}" -m 2048 -- bash -c \
	"$TOP/build/workloads/syscalls 500; $TOP/build/workloads/states fork 20" >"$TMP/out"
awk '/ equal, / { n++; if ($2 >= 3 && $4 <= $2 / 50 + 5 && $8 == 0 && $10 == 0 && $14 <= $2 / 20 + 5) next }
	{ print; bad = 1 }
	END { exit bad || n != 6 }' "$TMP/out" >"$TMP/wrong"
result $? 'the same records' "$TMP/wrong"

# --- captured, paired, of targets -----------------------------------------------------------------

workload syscalls 10000
start "$SEEN" -e "$(of $ENTER)" -e "$(of $EXIT)" --capture bpf -m 4096
go
stop
check "captured: $(<"$TMP/out")" grep -q '^20000 seen, 0 lost' "$TMP/out"

for how in perf bpf; do
	workload syscalls 5000
	start multi-trace -e "$(of $ENTER)" -e "$(of $EXIT)" -k common_pid --capture $how --csv -m 2048
	go
	stop
	check "pairs, $how" test "$(total calls)" -eq 5000
done

cat >"$TMP/join.lua" <<'EOF'
local counter, join = require 'lib.counter', require 'lib.join'
return {
  summary = 'Count calls that end',
  start = function(_, out)
    local calls, count = join.new(), counter.new { 'comm', 'kept' }
    return {
      lost = calls.lost,
      ['syscalls:sys_enter_getppid'] = function(ev) calls:start(ev._tid, ev._time, ev.__syscall_nr) end,
      ['syscalls:sys_exit_getppid'] = function(ev)
        local ns, nr = calls:finish(ev._tid, ev._time)
        if ns then count:add(1, ev._comm, nr) end
      end,
      stop = function() count:print(out) end,
    }
  end,
}
EOF
for how in perf bpf; do
	"$PROFSCRIPT" "$TMP/join.lua" --capture $how --csv -m 2048 -- "$TOP/build/workloads/syscalls" 3000 >"$TMP/out"
	expect_line "a join of a workload, $how" ",syscalls,$GETPPID,3000\$" "$TMP/out"
done

"$TOP/build/workloads/syscalls" 200000 5000 & # another process
other=$!
workload syscalls 4000
start exec 'count(ev._comm, ev._pid)' -e $ENTER --capture bpf -p "$WORKLOAD" --csv
go
stop
kill $other 2>/dev/null
check '-p: the calls of the process, and no others' test \
	"$(tail -n +2 "$TMP/out" | sed 's/.*,\(.*,.*,.*\)/\1/')" = "syscalls,$WORKLOAD,4000"

# --- decisions ------------------------------------------------------------------------------------

# plan REGEX ARG...: what a run would do
plan() {
	local regex=$1
	shift
	"$PROFSCRIPT" "$@" --dry-run -v >"$TMP/plan" 2>&1
	expect_line "$*" "$regex" "$TMP/plan"
}

refused 'stacks' 2 'seen: --capture=bpf is not possible: stacks of .* are those of the program' "$SEEN" -e $ENTER -g \
	--capture bpf
plan 'sys_enter_faccessat: .*every event' exec -e syscalls:sys_enter_faccessat "count(ev:string('filename'))"
plan 'with the strings behind: filename, by a BPF program' exec -e syscalls:sys_enter_faccessat "count(ev:string('filename'))"

# Programs for rare calls would cost the others more than perf does.
chrt -f 1 taskset -c 0 "$TOP/build/workloads/syscalls" 100000000 &
busy=$!
if wait_for 10 grep -qx syscalls /proc/$busy/comm; then
	plan 'most system calls are others' exec -e syscalls:sys_enter_semget 'count()'
	plan 'counted in the kernel' exec -e $ENTER 'count()'
else
	skip 'rare calls' 'real-time priorities are not allowed'
fi
kill $busy
