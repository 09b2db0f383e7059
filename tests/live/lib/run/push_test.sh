#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only
# push= and --push: events go to a file, a pipe and sockets, perf and profscript read them there, and what was produced
# is what arrived and what was said to be dropped.
. "$(dirname "$0")/../../../lib.sh"
needs_tracepoint raw_syscalls:sys_enter sched:sched_switch
enter=raw_syscalls:sys_enter/id==$GETPPID/
wire=$TOP/tests/tools/wire.py
syscalls=$TOP/build/workloads/syscalls
cd "$TMP" || exit 1
unset PROFSCRIPT_SECRET

# listening: waits until the tracer listens, and leaves its address in $address
listening() {
	wait_for 20 grep -q '^Listen at ' err
	address=$(sed -n 's/^Listen at //p' err | head -n 1)
}

# accepted N: so many clients are there
# shellcheck disable=SC2317 # wait_for calls it
accepted() { test "$(grep -c '^Accept client' err)" -eq "$1"; }

# number NAME: of the line in $TMP/groups
number() { sed -E "s/.*\b$1 ([0-9]+).*/\1/" groups; }

# groups FILE: what a stream contains goes to $TMP/groups
groups() { python3 "$wire" groups "$1" >groups; }

# got N FILE: the receiver that writes it has so many events; told: or was told that they were before, or are lost
# shellcheck disable=SC2317 # wait_for calls them
got() { groups "$2" && test "$(number events)" -ge "$1"; }
# shellcheck disable=SC2317
told() { groups "$2" && test $(($(number first) + $(number events) + $(number gaps))) -ge "$1"; }

# of_report N: the Nth number of the tracer's line at its end: events, sent, dropped
of_report() { sed -nE 's/^push [^ ]+: ([0-9]+) events, ([0-9]+) sent, ([0-9]+) dropped$/\'"$1"'/p' err | tail -n 1; }

# --- a file is a recording
"$PROFSCRIPT" trace -m 1024 -e "${enter}push=file.data/" -- "$syscalls" 20000 >out 2>err
result $? 'a run that only pushes' err
expect_line 'it says what was sent' '^push file.data: 20000 events, 20000 sent, 0 dropped$' err
check 'the profiler got nothing' test ! -s out
check 'only its owner can read the file' test "$(stat -c %a file.data)" = 600
perf script -i file.data >perf.txt 2>perf.err
check 'perf script reads it' test "$(grep -c 'raw_syscalls:sys_enter: NR' perf.txt)" -eq 20000
check 'perf knows the task' grep -q '^ *syscalls ' perf.txt
check 'perf report reads it' bash -c "perf report -i file.data --stdio 2>&1 | grep -q '100.00% *syscalls'"
csv exec --input file.data -e raw_syscalls:sys_enter 'count(ev._comm, ev.id)'
check 'profscript reads it' grep -q ",syscalls,$GETPPID,20000\$" out
"$PROFSCRIPT" trace -m 1024 -e "${enter}push=limited.data/" -N 500 -- "$syscalls" 20000 2>err
csv exec --input limited.data 'count(ev._comm)' -e raw_syscalls:sys_enter
check '-N ends a run that only pushes' grep -q ',syscalls,500$' out

# --- a pipe
"$PROFSCRIPT" trace -m 1024 -e "${enter}push=-/" -- "$syscalls" 20000 2>err | perf script -i - >perf.txt 2>perf.err
check 'perf script reads a pipe' test "$(grep -c 'raw_syscalls:sys_enter: NR' perf.txt)" -eq 20000
"$PROFSCRIPT" trace -m 1024 -e "${enter}push=-/" -- "$syscalls" 20000 2>err | perf report -i - --stdio >perf.txt 2>&1
expect_line 'so does perf report' '100.00% *syscalls' perf.txt
timeout 20 bash -c '"$0" trace -e sched:sched_switch --push - 2>err | head -c 100 >/dev/null; exit ${PIPESTATUS[0]}' "$PROFSCRIPT"
result $? 'the end of the reader ends the run' err

# --- functions of the kernel go along with events whose addresses are named
"$PROFSCRIPT" page-faults --push "unix:$TMP/faults" >out 2>err &
tracer=$!
listening
python3 "$wire" receive "$address" >faults.data &
reader=$!
wait_for 20 grep -q PSKSYM01 faults.data
result $? 'functions are sent without stacks' err
kill -INT $tracer
wait $tracer $reader

# --- pushed and local events in one run
"$PROFSCRIPT" exec -m 1024 -e "${enter}push=file.data/" -e raw_syscalls:sys_exit 'count(ev._event)' --format csv \
	-- "$syscalls" 20000 >out 2>err
check 'the pushed event is not delivered' bash -c '! grep -q sys_enter out && grep -q sys_exit out'
expect_line 'but sent' '^push file.data: 20000 events, 20000 sent' err

# --- all events of a profiler
"$PROFSCRIPT" task-state --push all.data -- "$syscalls" 100 >out 2>err
result $? '--push with a profiler that has its own events' err
perf script -i all.data -F event 2>/dev/null | sort -u >events
check 'all of them are sent' bash -c 'grep -q sched_switch events && grep -q sched_wakeup events'

# --- stacks
"$PROFSCRIPT" trace -m 1024 -g -e "${enter}push=stacks.data/" -- "$syscalls" 100 2>err
perf script -i stacks.data 2>/dev/null >stacks.txt
check 'perf knows the functions of the kernel' grep -q do_syscall_64 stacks.txt
check 'and of programs that run' grep -Eq '[0-9a-f]+ syscall$' stacks.txt

# --- two receivers
workload syscalls 20000
start trace -m 1024 -e "${enter}push=127.0.0.1:0/" -p "$WORKLOAD"
listening
python3 "$wire" receive "$address" >one.data &
one=$!
cat <"/dev/tcp/${address/://}" >two.data &
two=$!
wait_for 20 accepted 2
wait_for 20 test -s two.data
go
wait $tracer $one $two
for file in one two; do
	groups $file.data
	check "receiver $file got all" test "$(number events) $(number samples) $(number gaps)" = '20000 20000 0'
	check 'and the end' test "$(number hello) $(number bye)" = '1 1'
done
csv exec --input two.data -e raw_syscalls:sys_enter 'count(ev._comm)'
check 'profscript reads what a receiver got' grep -q ',syscalls,20000$' out

# --- a receiver that is killed, and one that is stopped
start trace -m 4096 -e "${enter}push=127.0.0.1:0/"
listening
python3 "$wire" receive "$address" >killed.data &
killed=$!
wait_for 20 test -s killed.data
kill -KILL $killed
wait $killed 2>/dev/null
"$syscalls" 1000
wait_for 20 grep -q '^Client hangs up 127.0.0.1:' err
result $? 'it is told that a receiver is gone' err
python3 "$wire" receive "$address" >slow.data &
slow=$!
wait_for 20 test -s slow.data
kill -STOP $slow
"$syscalls" 400000
kill -CONT $slow
"$syscalls" 1000
wait_for 60 told 402000 slow.data
stop
wait $slow
groups slow.data
echo "produced $(of_report 1) sent $(of_report 2) dropped $(of_report 3)" >report
check 'all was produced' test $(($(of_report 1))) -ge 402000
check 'some groups were dropped' test "$(number gaps)" -gt 1000
check 'samples are complete' test "$(number samples)" -eq "$(number events)"
check 'produced = before + received + told as lost' \
	test $(($(number first) + $(number events) + $(number gaps))) -eq "$(of_report 1)"
of_killed=$(sed -n 's/^Client hangs up .*, \([0-9]*\) dropped$/\1/p' err | head -n 1)
expect_line 'both ends agree' "dropped $(($(number gaps) + of_killed))\$" report

# --- unix sockets
start trace -e "$enter" --push "unix:$TMP/socket"
check 'the socket is for this user' test "$(stat -c %a socket)" = 600
kill -KILL $tracer
wait $tracer 2>/dev/null
check 'a killed run leaves its file' test -S socket
start trace -m 1024 -e "$enter" --push "unix:$TMP/socket"
python3 "$wire" receive "unix:$TMP/socket" >unix.data &
reader=$!
wait_for 20 test -s unix.data
check_status 'only one run listens there' 1 "$PROFSCRIPT" trace -e "$enter" --push "unix:$TMP/socket"
expect_line 'which is told' "^profscript: cannot listen at unix:$TMP/socket: the path is in use$" .check
"$syscalls" 5000
wait_for 20 got 5000 unix.data
stop
wait $reader
groups unix.data
check 'which does not disturb the next one' test "$(number events)" -ge 5000
check 'an orderly end removes the file' test ! -e socket

# --- secrets
echo right >right && echo wrong >wrong && chmod 600 right wrong
PROFSCRIPT_SECRET=right start trace -m 1024 -e "$enter" --push "unix:$TMP/socket"
python3 "$wire" receive "unix:$TMP/socket" wrong >wrong.data 2>wrong.err
expect_line 'a wrong secret is refused' '^the sender hung up$' wrong.err
wait_for 20 grep -q '^Refuse client unix:.*: it does not know the secret$' err
result $? 'and told' err
timeout 1 python3 "$wire" receive "unix:$TMP/socket" >absent.data
check 'no secret, no events' bash -c '! grep -q PERFILE2 absent.data'
stop
start trace -m 1024 -e "$enter" --push "unix:$TMP/socket" --secret right
python3 "$wire" receive "unix:$TMP/socket" right >right.data &
reader=$!
wait_for 20 test -s right.data
"$syscalls" 3000
wait_for 20 got 3000 right.data
stop
wait $reader
groups right.data
test "$(number events)" -ge 3000
result $? 'the right secret' err
chmod 644 right
refused 'a secret that others can read' 1 'right: other users can read or write the secret' \
	trace -e "$enter" --push 9900 --secret right
refused 'a secret without use' 2 '--secret has no effect without push=, --push, pull= or --input HOST:PORT' trace -e "$enter" --secret wrong

# --- bad addresses and events
refused 'all addresses without a secret' 1 ':9900: other hosts could connect, so a secret is needed' \
	trace -e "$enter" --push :9900
refused 'a bad port' 2 "push: 99999: '99999' is not a port" trace -e "$enter" --push 99999
refused 'a host without a port' 2 'push: 10.0.0.1: the port is missing: 10.0.0.1:PORT' \
	trace -e "${enter}push=10.0.0.1/"
refused 'a name without a port' 2 'push: web1: the port is missing: web1:PORT .if it is a file: ./web1, in an event with quotes: "./web1".' \
	trace -e "$enter" --push web1
refused 'an empty address' 2 'push: an empty address' trace -e "$enter" --push ''
refused 'a path without quotes' 2 "bad event .*'push' needs a value at .*; quote it if it contains a '/'" \
	trace -e "${enter}push=/tmp/x/"
refused 'a folder' 2 'push: /tmp is a directory' trace -e "$enter" --push /tmp
refused 'a missing folder' 1 '/no/such/file: No such file or directory' trace -e "$enter" --push /no/such/file
refused 'counted events' 2 "push: 'raw_syscalls:sys_enter' is only counted" stat -e "$enter" --push 9900
refused 'a filter that the kernel cannot evaluate' 2 "push: .* but the kernel cannot evaluate its filter" \
	trace -e 'sched:sched_switch/prev_pid == next_pid + 1/push=9900/'
refused 'two outputs on standard output' 2 'push=-: the events go to standard output' \
	trace -e "${enter}push=-/" -e sched:sched_switch

# --record writes the events that the profiler gets, too: it prints the same for the recording, and perf reads it.
run_recorded() {
	local name=$1
	shift
	"$PROFSCRIPT" "$@" -o "$TMP/live" --record "$TMP/rec.data" -m 1024 -- "$TOP/build/workloads/syscalls" 3000 2>"$TMP/err"
	result $? "$name: it runs" "$TMP/err"
	expect_line "$name: nothing is dropped" '^record .*rec.data: [0-9]+ events, 0 dropped$' "$TMP/live"
	"$PROFSCRIPT" "$@" --input "$TMP/rec.data" >"$TMP/replayed" 2>>"$TMP/err"
	sed -i '/^record /d; /^[-0-9]* [:.0-9]* $/d' "$TMP/live" "$TMP/replayed" # a table's time is that of its report
	diff "$TMP/live" "$TMP/replayed" >"$TMP/diff"
	result $? "$name: the recording has the same events" "$TMP/diff"
	check "$name: they are some" test "$(wc -l <"$TMP/live")" -ge 3
	rm -f "$TMP/live"
	perf script -i "$TMP/rec.data" >"$TMP/perf" 2>/dev/null
	check "$name: perf reads them" test "$(wc -l <"$TMP/perf")" -ge 3000
	rm -f "$TMP/rec.data"
}
run_recorded '--record' trace -e "raw_syscalls:sys_enter/id==$GETPPID/,raw_syscalls:sys_exit/id==$GETPPID/"
run_recorded '--record with a filter that the kernel cannot evaluate' exec \
	-e 'raw_syscalls:sys_enter/_tid * 0 + id < 500/' 'count(ev.id)'
cat "$DATA/pushed.data" >"$TMP/far.data"
far="raw_syscalls:sys_enter//pull=\"$TMP/far.data\"/"
refused 'to send on what is pulled' 2 "push: 'raw_syscalls:sys_enter' comes from .*, use --input .*far.data instead of pull=" \
	trace -e "${far}push=\"$TMP/x\"/"
refused 'to record what is pulled' 2 "record: 'raw_syscalls:sys_enter' comes from .*, use --input .*far.data instead of pull=" \
	trace -e "$far" --record "$TMP/x"
refused '--record and push' 2 '--record and push exclude each other' trace -e sched:sched_switch --record "$TMP/x" \
	--push "$TMP/y" --duration 0.1
refused '--record of what is only counted' 2 "record: 'sched:sched_switch' is only counted, so there are no events to record" \
	stat -e sched:sched_switch --record "$TMP/x" --duration 0.1
