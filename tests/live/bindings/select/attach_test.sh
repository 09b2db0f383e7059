#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only
# Attaching: the events of the targets are counted exactly, and no others.
. "$(dirname "$0")/../../../lib.sh"
needs_tracepoint syscalls:sys_enter_getppid raw_syscalls:sys_enter sched:sched_switch
event=syscalls:sys_enter_getppid
workloads=$TOP/build/workloads

# counted NAME N: $TMP/out reports N calls of the test's programs
counted() {
	local sum
	sum=$(awk '$1 == "syscalls" || $1 == "threads" { sum += $2 } END { print sum + 0 }' "$TMP/out")
	echo "counted $sum" >>"$TMP/out"
	result $((sum != $2)) "$1: $2 calls" "$TMP/out"
}

# counts NAME N ARGS...: exec counts N getppid calls
counts() {
	local name=$1 n=$2
	shift 2
	"$PROFSCRIPT" exec -e $event 'count(ev._comm)' "$@" >"$TMP/out" 2>&1
	counted "$name" "$n"
}

# counts_running NAME N COUNT ARGS...: the same for `threads COUNT`, which starts when all events are open
counts_running() {
	local name=$1 n=$2 count=$3 tracer
	shift 3
	workload threads "$count"
	wait_for 20 has_threads "$WORKLOAD" "$count"
	start exec -e $event 'count(ev._comm)' "${@//PID/$WORKLOAD}"
	go
	wait $tracer
	counted "$name" "$n"
}

# has_threads PID N: more than N
has_threads() {
	local tasks=("/proc/$1/task/"*)
	[ ${#tasks[@]} -gt "$2" ]
}

# refuses STATUS MESSAGE ARGS...: trace prints just this line
refuses() {
	local status=$1 message=$2 got
	shift 2
	"$PROFSCRIPT" trace "$@" >"$TMP/out" 2>&1
	got=$?
	echo "profscript: $message" | diff - "$TMP/out" >"$TMP/diff" && [ $got -eq "$status" ]
	result $? "refuses $* ($got)" "$TMP/diff"
}

counts 'a workload' 1000 -- "$workloads/syscalls" 1000
counts 'a workload by threads' 1000 --no-inherit -- "$workloads/syscalls" 1000
counts 'all that a workload starts' $((21 * 10)) -- "$workloads/threads" 10
counts 'a workload alone' 0 --no-inherit -- "$workloads/threads" 10
counts 'nested processes' 3000 -- bash -c "(exec $workloads/syscalls 1000) & (exec $workloads/syscalls 2000) & wait"
counts_running 'all threads of a process, and later ones' $((21 * 10)) 10 -p PID
counts_running 'the threads of a process' $((10 * 10)) 10 -p PID --no-inherit
counts_running 'a thread and all that it starts' $((11 * 10)) 10 -t PID --inherit
counts_running 'the same by --ptrace' $((11 * 10)) 10 -t PID --ptrace
counts_running 'a thread' 0 10 -t PID
counts_running 'a process and one of its threads' $((21 * 10)) 10 -p PID -t PID
counts_running 'threads on all CPUs' $((10 * 10)) 10 -p PID --no-inherit -C "$(</sys/devices/system/cpu/online)"

# exits NAME LEAST MOST ARGS...: so many lines of CSV are exits of the workload `daemon`
exits() {
	local name=$1 least=$2 most=$3 got
	shift 3
	csv trace -e sched:sched_process_exit "$@"
	got=$(grep -c '^sched:sched_process_exit,[^,]*,[^,]*,[^,]*,[^,]*,daemon,' "$TMP/out")
	echo "$got exits" >>"$TMP/out"
	result $((got < least || got > most)) "$name: $most exits" "$TMP/out"
}

# A daemon runs on when the workload has ended: it and its 10 children are followed by --ptrace only.
exits 'a workload without its daemon' 1 2 -- "$workloads/daemon" 10
exits 'a workload and its daemon' 13 13 --ptrace -- "$workloads/daemon" 10
exits 'a workload and its daemon beside events of all CPUs' 13 13 --ptrace -e task-state// -- "$workloads/daemon" 10
exits '--ptrace of a source' 13 13 -e task-state/--ptrace/ -- "$workloads/daemon" 10
exits '--ptrace of a source of a source' 13 13 -e 'trace/-e "task-state/--ptrace/"/' -- "$workloads/daemon" 10
workload daemon 10
start trace -e sched:sched_process_exit --ptrace -p "$WORKLOAD" --csv
go
wait $tracer
check 'a daemon of a process' [ "$(column comm | grep -cx daemon)" -eq 13 ]
# A task that ran only once may be missing if the kernel hides a switch.
watch_tasks daemon
csv oncpu --ptrace -- "$workloads/daemon" 10
all_reported 'a daemon among the events of all CPUs' &&
	check 'a daemon among the events of all CPUs' \
	[ "$(grep ',daemon,' "$TMP/out" | cut -d, -f4 | sort -u | wc -l)" -eq 13 ]
# Each process of a chain ends before the next one, 30 ms later, is known: 20 times a shell and a sleep, and a last shell.
cat >"$TMP/chain" <<'EOF'
if [ "$1" -gt 0 ]; then (sleep 0.03; exec sh "$0" $(($1 - 1))) & fi
EOF
watch_tasks sh sleep
csv oncpu --ptrace -- sh "$TMP/chain" 20
all_reported 'a chain of daemons' && check 'a chain of daemons' [ "$(column tid | sort -u | wc -l)" -eq 41 ]
csv stat -e sched:sched_process_exit --ptrace -- "$workloads/daemon" 10
check 'counts of a daemon' [ "$(total total)" -eq 13 ]

# Nothing is stopped or killed with the tracer.
"$PROFSCRIPT" exec -e sched:sched_process_exit 'count(ev._comm)' --csv --duration 5 >"$TMP/out" 2>"$TMP/err" &
watcher=$!
wait_ready $watcher
workload daemon 10
"$PROFSCRIPT" trace -e sched:sched_process_exit --ptrace -p "$WORKLOAD" >/dev/null &
tracer=$!
wait_ready $tracer
go
{ kill -KILL $tracer && wait $tracer; } 2>/dev/null
wait_for 20 eval '! pgrep -x daemon >/dev/null'
kill -INT $watcher
wait $watcher
check 'a daemon goes on without its tracer' grep -q 'daemon,13$' "$TMP/out"

# Beside -p and -t a workload only ends the run.
sleep 60 &
sleeper=$!
csv exec -e $event 'count(ev._comm)' -p $sleeper -- "$workloads/syscalls" 1000
check 'the calls of a workload beside -p are not counted' [ "$(total count)" -eq 0 ]
check_status 'a workload beside -p ends the run' 3 timeout 20 "$PROFSCRIPT" trace -e $event -p $sleeper -- sh -c 'exit 3'
check_status 'and beside -t --ptrace' 3 timeout 20 "$PROFSCRIPT" trace -e $event -t $sleeper --ptrace -- sh -c 'exit 3'
check_status 'and where all CPUs are traced' 3 timeout 20 "$PROFSCRIPT" task-state -p $sleeper -- sh -c 'exit 3'
kill $sleeper

# counts_called NAME: the calls of both processes of this name, and of no other process
counts_called() {
	local i pids=() tracer
	cp "$workloads/threads" "$TMP/$1"
	workload threads 10
	for i in 1 2; do
		mkfifo "$TMP/go$i"
		"$TMP/$1" -w 10 <"$TMP/go$i" &
		pids[i]=$!
	done
	exec {first}>"$TMP/go1" {second}>"$TMP/go2"
	wait_for 20 has_threads "${pids[1]}" 10 && wait_for 20 has_threads "${pids[2]}" 10
	"$PROFSCRIPT" exec -e $event 'count("threads")' -p "$1" >"$TMP/out" 2>&1 &
	tracer=$!
	wait_ready $tracer
	echo >&"$first" && echo >&"$second"
	go
	wait $tracer
	exec {first}>&- {second}>&-
	rm "$TMP/go1" "$TMP/go2"
	counted "processes called $1" $((2 * 21 * 10))
}

counts_called "called$$"
counts_called "called_by_a_long_name$$"
printf '#!/bin/sh\nread line\n' >"$TMP/script_of_a_long_name$$"
chmod +x "$TMP/script_of_a_long_name$$"
mkfifo "$TMP/script"
"$TMP/script_of_a_long_name$$" <"$TMP/script" &
exec {script}>"$TMP/script"
wait_for 20 grep -q script "/proc/$!/comm"
check 'a script by its name' "$PROFSCRIPT" trace -e $event -p "script_of_a_long_name$$" --dry-run
exec {script}>&-
refuses 1 "no such process: 'no/such'" -e $event -p no/such
cp "$workloads/threads" "$TMP/near$$"
mkfifo "$TMP/near"
"$TMP/near$$" -w 1 <"$TMP/near" &
near=$!
exec {near_go}>"$TMP/near"
wait_for 20 grep -q near "/proc/$near/comm"
refuses 1 "no such process: 'naer$$'; did you mean 'near$$'?" -e $event -p "naer$$"
kill $near
exec {near_go}>&-

# The name of a thread that is not its process's.
mkfifo "$TMP/part"
python3 -c 'import ctypes, sys, threading
def part():
    ctypes.CDLL(None).prctl(15, sys.argv[1].encode(), 0, 0, 0)
    sys.stdin.read()
threading.Thread(target=part).start()' part$$ <"$TMP/part" &
whole=$!
exec {part_go}>"$TMP/part"
wait_for 20 bash -c "grep -qs part /proc/$whole/task/*/comm"
part=$(grep -l part /proc/$whole/task/*/comm | cut -d/ -f5)
refuses 1 "no such process: 'part$$'; process $whole (python3) has threads of this name: use -t $part" -e $event -p "part$$"
exec {part_go}>&-
wait $whole

"$PROFSCRIPT" exec -e sched:sched_process_exit 'count(ev._comm)' -- "$workloads/forker" 50 >"$TMP/out"
expect_line 'names of children' '^forker +51$' "$TMP/out"

"$PROFSCRIPT" exec -e sched:sched_switch 'count(ev._cpu)' -C 0 --duration 0.3 >"$TMP/out" 2>&1
check 'only one CPU' awk '/^ *[0-9]+ +[0-9]+$/ { n[$1]++ } END { exit !(n[0] && length(n) == 1) }' "$TMP/out"
"$PROFSCRIPT" exec -e sched:sched_switch//cpus=0/,sched:sched_waking 'count(ev._event, ev._cpu)' \
	--duration 0.3 >"$TMP/out" 2>&1
expect_line 'cpus= of an event' 'sched_switch +0 ' "$TMP/out"
check 'cpus= of one event only' bash -c "! grep -E 'sched_switch +[1-9]' '$TMP/out'"

online=$(</sys/devices/system/cpu/online)
csv exec -e sched:sched_switch 'count(ev._cpu)' -C 0,4000-4001 --duration 0.3
expect_line 'CPUs that are not there' '^exec: CPU 4000-4001 is not online, tracing CPU 0$' "$TMP/err"
check 'and those that are' [ "$(column cpu | sort -u)" = 0 ]
csv exec -e 'sched:sched_switch//cpus="0,4000"/' 'count(ev._cpu)' --duration 0.3
expect_line 'CPUs of an event that are not there' '^sched:sched_switch: CPU 4000 is not online, tracing CPU 0$' "$TMP/err"
check 'and those that are, of an event' [ "$(column cpu | sort -u)" = 0 ]
refuses 3 "CPU 4000 is not online (online: $online)" -e $event -C 4000
refuses 3 "$event: CPU 4000-4001 is not online (online: $online)" -e "$event//cpus=4000-4001/"
[ "$(nproc)" -gt 1 ] && refuses 1 "$event: cpus=1 contains none of the CPUs 0" -e "$event//cpus=1/" -C 0
refuses 1 "cannot execute '/no/such/program': No such file or directory" -e $event -- /no/such/program
refuses 2 'trace: --inherit requires -p, -t or a workload' -e $event --inherit
refuses 2 'trace: --ptrace requires -p, -t or a workload' -e $event --ptrace
refuses 2 'trace: --ptrace and --no-inherit are mutually exclusive' -e $event --ptrace --no-inherit -t $$
refuses 2 'trace: --cgroups cannot be combined with -p, -t or a workload' \
	-e $event -p $$ --cgroups a
refuses 2 'trace: --exclude-user and --exclude-kernel together exclude everything' -e cpu-clock --exclude-user --exclude-kernel
refuses 2 'trace: --exclude-user applies to hardware, clock and memory events only; none are selected' \
	-e $event --exclude-user
sleep 0 &
dead=$!
wait $dead
refuses 1 "no such process: $dead" -e $event -p $dead
refuses 1 "no such thread: $dead" -e $event -t $dead
refuses 1 "cannot execute '/etc/passwd': Permission denied" -e $event -- /etc/passwd
check_status 'exit status of the workload' 3 "$PROFSCRIPT" trace -e $event -- sh -c 'exit 3'
check_status 'signal of the workload' 137 "$PROFSCRIPT" trace -e $event -- sh -c 'kill -9 $$'
echo text >"$TMP/stdin"
"$PROFSCRIPT" trace -e $event -- cat <"$TMP/stdin" >"$TMP/out"
expect_line 'stdin is the workload'\''s' '^text$' "$TMP/out"

# Our own process writes a line per event: it would see nothing but itself.
# without_us NAME SELECTOR: system calls of others are counted, ours are not
without_us() {
	local other
	"$workloads/syscalls" 10000 1000 & # an idle machine makes none
	other=$!
	"$PROFSCRIPT" exec -e "$2" 'count(ev._pid)' -m 1024 --duration 0.5 >"$TMP/out" 2>&1 &
	wait $!
	echo "status $?, pid $!" >>"$TMP/out"
	grep -Eq "^ *$other +" "$TMP/out" && ! grep -Eq "^ *$! +" "$TMP/out"
	result $? "$1" "$TMP/out"
	kill $other
}
without_us 'own system calls are left out' raw_syscalls:sys_enter
without_us 'with a filter of the user, too' 'raw_syscalls:sys_enter/id>=0/'
"$PROFSCRIPT" exec -e raw_syscalls:sys_enter 'count(ev._pid)' -m 1024 --self --duration 0.5 >"$TMP/out" 2>&1 &
wait $!
expect_line '--self includes them' "^ *$! +" "$TMP/out"

# If no hierarchy has perf events there is nothing to test. (Mounting version 1's would take them away from version
# 2's.)
hierarchy=$(awk '$3 == "cgroup" && $4 ~ /perf_event/ { v1 = $2 } $3 == "cgroup2" { v2 = $2 }
	END { print v1 ? v1 : v2 }' /proc/self/mounts)
group=$hierarchy/profscript-$$
if [ -n "$hierarchy" ] && mkdir -p "$group/a" "$group/b" 2>/dev/null &&
	perf stat -a -e dummy -G "profscript-$$" true >/dev/null 2>&1; then
	# in_groups NAME N LIST: a makes 100 calls, b makes 1000, another process 10000
	in_groups() {
		"$PROFSCRIPT" exec -e $event 'count(ev._comm)' -m 1024 --cgroups "${3//G/profscript-$$}" >"$TMP/out" 2>&1 &
		wait_ready $!
		bash -c 'echo 0 >"$0/cgroup.procs"; exec "$1" 100' "$group/a" "$workloads/syscalls"
		bash -c 'echo 0 >"$0/cgroup.procs"; exec "$1" 1000' "$group/b" "$workloads/syscalls"
		"$workloads/syscalls" 10000
		kill -INT $!
		wait $!
		counted "$1" "$2"
	}
	in_groups 'a cgroup' 100 G/a
	in_groups 'two cgroups' 1100 /G/a/,G/b
	in_groups 'a cgroup with those in it' 1100 G,G/a
	in_groups 'cgroups by expression' 1000 '^G/[^a]$'
	refuses 1 "no cgroup 'profscript-$$/c'; did you mean 'profscript-$$/a'?" -e $event --cgroups "profscript-$$/c"
	refuses 1 "no cgroup matches 'profscript-$$/c+'" -e $event --cgroups "profscript-$$/c+"
else
	skip 'cgroups' 'no cgroup hierarchy with perf_event that can be written'
fi
rmdir "$group/a" "$group/b" "$group" 2>/dev/null
true
