#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only
# --capture with -p, -t, workloads and --cgroups: BPF programs see the events that perf reports of the targets, one by
# one, and count and pair the same. EVENTS_ONLY: only the first.
# Runs on an idle machine.
. "$(dirname "$0")/../../../lib.sh"
needs_tracepoint raw_syscalls:sys_enter raw_syscalls:sys_exit sched:sched_switch exceptions:page_fault_user
workloads=$TOP/build/workloads
enter=raw_syscalls:sys_enter/id==$GETPPID/
leave=raw_syscalls:sys_exit/id==$GETPPID/

"$PROFSCRIPT" exec 'count()' -e $enter --capture bpf -q -- true >/dev/null 2>"$TMP/err" || skip_all "$(head -n 1 "$TMP/err")"

# A cgroup with another one inside, for `--cgroups`; $group is its name
group=targets$$
hierarchy=$(awk '$3 == "cgroup2" { print $2; exit }' /proc/mounts)
awk '$3 == "cgroup" && $4 ~ /(^|,)perf_event(,|$)/ { exit 1 }' /proc/mounts || hierarchy=
mkdir -p "$hierarchy/$group/in/side" 2>/dev/null || hierarchy=
remove_group() { [ -z "$hierarchy" ] || rmdir "$hierarchy/$group/in/side" "$hierarchy/$group/in" "$hierarchy/$group"; }
trap 'remove_group; finish' EXIT

# in_group: moves the calling shell into the inner group
in_group() { echo $BASHPID >"$hierarchy/$group/in/side/cgroup.procs"; }

# waiting NAME ARG...: `workload` with all of its first threads
waiting() {
	workload "$@"
	[ "$1" != threads ] || wait_for 20 eval "[ \$(ls /proc/$WORKLOAD/task | wc -l) -gt $2 ]"
}

# --- the same events ------------------------------------------------------------------------------

events=()
for event in raw_syscalls:sys_enter raw_syscalls:sys_exit sched:sched_switch exceptions:page_fault_user; do
	events+=(-e $event -e "$event//cpus=$(</sys/devices/system/cpu/online)/")
done

# is_equal NAME LEAST [SWITCHES]: so many system calls in $TMP/out are equal, none of any event differs or is missing, but
# for so many switches before the first or after the last that is equal. perf may miss some: BPF programs of others can
# hide them from it. The last switch of each thread is not among the events.
is_equal() {
	awk -v least="$2" -v switches="${3-0}" '
		/ equal, / {
			n++
			most = /sched_switch/ ? 5 : $2 / 20 + 20
			if ($8 == 0 && $10 == 0 && $14 <= (/sched_switch/ ? switches : 0) && $12 <= most && (!/sys_enter/ || $2 + $4 >= least)) next
		}
		{ print; bad = 1 }
		END { if (n != 4) print n " of 4 events"; exit bad || n != 4 }
	' "$TMP/out" >"$TMP/wrong"
	result $? "$1" "$TMP/wrong"
}

# The exec() of a workload enables perf's events, and then changes the name, which starts the programs. It may be switched
# out in between, once at most: a guest that emulates its CPUs shows that now and then, the host in none of 36 runs.
for command in "$workloads/threads 10" "$workloads/daemon 5" "$workloads/pingpong 100"; do
	# shellcheck disable=SC2086
	"$PROFSCRIPT" "$TOP/tests/tools/captured.lua" --capture bpf -m 2048 "${events[@]}" -- $command >"$TMP/out" 2>&1
	is_equal "the workload $(basename "${command% *}")" 10 1
done
"$PROFSCRIPT" "$TOP/tests/tools/captured.lua" --capture bpf -m 2048 "${events[@]}" -- \
	bash -c "for i in 1 2 3; do $workloads/syscalls 10; done; (exec $workloads/syscalls 20) & exec $workloads/syscalls 30" \
	>"$TMP/out" 2>&1
is_equal 'a shell, its commands, and what it becomes' 80 1
for target in -p '-t --inherit' '-p --no-inherit' -t; do
	waiting threads 10
	# shellcheck disable=SC2086
	start "$TOP/tests/tools/captured.lua" --capture bpf -m 2048 "${events[@]}" ${target/ */ } "$WORKLOAD" ${target#-?}
	go
	wait $tracer
	is_equal "$target" 10
done
if [ -n "$hierarchy" ]; then
	start "$TOP/tests/tools/captured.lua" --capture bpf -m 2048 "${events[@]}" --cgroups "$group"
	(in_group && "$workloads/threads" 10)
	stop
	is_equal '--cgroups' 210
else
	skip '--cgroups' 'no cgroups of version 2'
fi

[ -z "${EVENTS_ONLY-}" ] || exit 0

# --- the same counts ------------------------------------------------------------------------------

# counts NAME N HOW ARG...: N calls are counted
counts() {
	local name=$1 want=$2 how=$3
	shift 3
	csv exec 'count(ev._comm)' -e $enter --capture "$how" "$@"
	check "$name, $how: $(total count) calls" test "$(total count)" -eq "$want"
}

# counts_running NAME N HOW ARG...: the same for `threads 10`, which starts when all events are open
counts_running() {
	local name=$1 want=$2 how=$3
	shift 3
	waiting threads 10
	start exec 'count(ev._comm)' -e $enter --capture "$how" --csv "${@//PID/$WORKLOAD}"
	go
	wait $tracer
	check "$name, $how: $(total count) calls" test "$(total count)" -eq "$want"
}

for how in perf bpf; do
	counts 'a workload' 1000 $how -- "$workloads/syscalls" 1000
	counts 'all that a workload starts' 210 $how -- "$workloads/threads" 10
	counts 'a workload alone' 0 $how --no-inherit -- "$workloads/threads" 10
	counts 'each call in Lua' 1000 $how -N 1000 -- "$workloads/syscalls" 1000
	counts_running 'a process' 210 $how -p PID
	counts_running 'the threads of a process' 100 $how -p PID --no-inherit
	counts_running 'a thread and all that it starts' 110 $how -t PID --inherit
	counts_running 'a thread' 0 $how -t PID
	counts_running 'a process on all CPUs' 210 $how -p PID -C "$(</sys/devices/system/cpu/online)"

	csv syscalls --capture $how -m 1024 -- "$workloads/syscalls" 3000
	awk -F, '{ print $3, $4, $5, $10 }' "$TMP/out" | sort >"$TMP/syscalls.$how"
	waiting threads 10
	start multi-trace -e $enter -e $leave --perins --capture $how --csv -p "$WORKLOAD"
	go
	wait $tracer
	column calls | sort >"$TMP/pairs.$how"
done
check 'the same system calls' diff "$TMP/syscalls.perf" "$TMP/syscalls.bpf"
expect_line 'and all of them' " $GETPPID 3000 0" "$TMP/syscalls.bpf"
check 'the same pairs by thread' diff "$TMP/pairs.perf" "$TMP/pairs.bpf"
check 'of all threads' test "$(sort "$TMP/pairs.bpf" | uniq -c | xargs)" = '21 10'

if [ -n "$hierarchy" ]; then
	for how in perf bpf; do
		start exec 'count(ev._comm)' -e $enter --capture $how --csv --cgroups "$group"
		(in_group && "$workloads/threads" 10)
		"$workloads/syscalls" 50
		stop
		check "a cgroup, $how" test "$(total count)" -eq 210
	done
fi

# --- ids ------------------------------------------------------------------------------------------

# A thread that executes another program gets the id of its process.
cat >"$TMP/exec.py" <<'EOF2'
import os, sys, threading
def run():
    print(threading.get_native_id(), flush=True)
    sys.stdin.readline()
    os.execv(sys.argv[1], sys.argv[1:])
threading.Thread(target=run).start()
EOF2
for how in perf bpf; do
	command -v python3 >/dev/null || { skip 'a thread that becomes its process' 'python3 is not installed' && break; }
	mkfifo "$TMP/go.$how"
	python3 "$TMP/exec.py" "$workloads/syscalls" 700 <"$TMP/go.$how" >"$TMP/tid.$how" &
	python=$!
	exec {line}>"$TMP/go.$how"
	wait_for 20 test -s "$TMP/tid.$how"
	start exec 'count(ev._comm)' -e $enter --capture $how --csv -t "$(<"$TMP/tid.$how")"
	echo >&"$line"
	exec {line}>&-
	wait $python $tracer
	check "a thread that becomes its process, $how: $(total count) calls" test "$(total count)" -eq 700
done

# A process that gets the id of a target which has ended is none.
sleep 100 &
other=$!
sleep 100 &
former=$!
start exec 'count(ev._comm)' -e $enter --capture bpf --csv -p $former,$other
{ kill $former && wait $former; } 2>/dev/null
for _ in {1..50}; do
	echo $((former - 1)) >/proc/sys/kernel/ns_last_pid
	"$workloads/syscalls" 100 &
	again=$!
	wait $again
	[ $again -ne $former ] || break
done
kill $other
wait $other 2>/dev/null
wait $tracer
if [ $again -eq $former ]; then
	check 'another process with the id of a target' test "$(total count)" -eq 0
else
	skip 'another process with the id of a target' 'no process got it'
fi

# --- what perf must do ----------------------------------------------------------------------------

not() { refused "$1" 2 ".*--capture=bpf is not possible: $2" "${@:3}" --capture bpf; }
not 'wakeups' 'kernels differ in the threads of which sched:sched_wakeup is an event' exec 'count()' \
	-e sched:sched_wakeup -p $$
not 'events of all tasks among them' '.* is read in all tasks' exec 'count()' -e $enter -e 'task-state//' -p $$
not 'an unknown cgroup' "no cgroup 'no/such'.*|programs know only the control groups of version 2" exec 'count()' \
	-e $enter --cgroups no/such
"$PROFSCRIPT" exec 'count()' -e $enter -t $$ --dry-run --capture bpf >"$TMP/out"
expect_line '--dry-run' 'sys_enter: .*counted in the kernel' "$TMP/out"

# --- whose events they are ------------------------------------------------------------------------

"$workloads/syscalls" 10000000000 &
busy=$!
# shellcheck disable=SC2317 # wait_for calls it
says() {
	"$PROFSCRIPT" "${@:2}" >"$TMP/out" 2>&1
	grep -Eq -- "$1" "$TMP/out"
}
check 'most events are those of the target' wait_for 60 says 'sys_enter: .*counted in the kernel' \
	exec 'count()' -e $enter -p $busy --dry-run
check 'the rings' wait_for 60 says '^rings: one per thread, and one per CPU for captured events' \
	"$TOP/tests/tools/seen.lua" -e $enter -e sched:sched_wakeup -t $busy --dry-run
sleep 1000 &
idle=$!
check 'most events are those of others' wait_for 60 says 'not captured by a BPF program: most of these events happen in' \
	explain exec 'count()' -e $enter -p $idle
if [ -n "$group" ]; then
	check 'in other groups' wait_for 60 says 'not captured by a BPF program: most of these events happen in' \
		explain exec 'count()' -e $enter --cgroups "$group"
else
	skip 'in other groups' 'there is no control group of version 2'
fi
says 'counted in the kernel' exec 'count()' -e $enter -p $idle --dry-run --capture bpf
check '--capture bpf does not weigh' grep -q 'counted in the kernel' "$TMP/out"
{ kill $busy $idle && wait $busy $idle; } 2>/dev/null

# --- the end --------------------------------------------------------------------------------------

leaves_no_program 3 exec 'count()' -e $enter --capture bpf -p $$
