#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only
# A file that is not a recording is refused. A truncated recording is printed as far as it goes.
. "$(dirname "$0")/../../../lib.sh"
sched=$DATA/sched.data
cd "$TMP" || exit 1

refused 'no such file' 1 '/nonexistent: No such file or directory' trace --input /nonexistent
refused 'text' 1 '/etc/passwd: not a perf recording' trace --input /etc/passwd
refused 'an empty file' 1 '/dev/null: not a perf recording .empty.' trace --input /dev/null
refused 'an empty pipe' 1 'standard input: not a perf recording .empty.' trace --input -
refused 'a directory as recording' 1 '/tmp: not a perf recording .a directory.' trace --input /tmp
refused 'an event that a profiler needs' 2 "oncpu: the recording contains no event system 'sched'" \
	oncpu --input "$DATA/syscalls.data"
refused 'an event that it does not have' 2 "trace: the recording contains no event system 'irq'" trace -e irq:irq_handler_entry --input "$sched"

# Truncated anywhere: the output is a prefix of the whole (except for the wall time, which may be cut off), and
# one line says that the recording is truncated.
no_wall='s/^[0-9][-0-9]* [0-9:.]*  //'
for data in sched syscalls zstd pipe lost; do
	"$PROFSCRIPT" trace --input "$DATA/$data.data" -q | sed "$no_wall" >whole
	size=$(stat -c %s "$DATA/$data.data")
	: >wrong
	for part in 1 3 7 9 13 17 23 31 41 53 61 71 79 83 89 97 99; do
		at=$((size * part / 100 | 1)) # odd: within a record
		head -c $at "$DATA/$data.data" >cut.data
		timeout 20 "$PROFSCRIPT" trace --input cut.data -q >printed 2>err
		one_line $? 1 'cut.data: ' >this
		sed "$no_wall" printed >out
		head -c "$(stat -c %s out)" whole | cmp -s - out || echo 'not a beginning of the whole' >>this
		[ -s this ] && { echo "cut at $at:"; cat this err; } >>wrong
	done
	[ ! -s wrong ]
	result $? "$data.data, truncated anywhere" wrong
done
head -c $(($(stat -c %s "$DATA/pipe.data") * 90 / 100 | 1)) "$DATA/pipe.data" >cut.data
partly 'a pipe truncated near its end' 1 'cut.data: ends inside a record' 'sys_enter: NR 12 ' trace --input cut.data

# A pipe is read to its end after Ctrl-C, which also ends the perf that writes it. A second Ctrl-C, or SIGTERM
# after a second, ends it with what was read so far.
catches_sigint() { (((0x$(awk '$1 == "SigCgt:" { print $2 }' "/proc/$reader/status") & 2) != 0)); }
read_pipe() {
	mkfifo pipe
	"$PROFSCRIPT" trace --input - <pipe >out 2>err &
	reader=$!
	exec {pipe}>pipe
	head -c 12000 "$DATA/pipe.data" >&$pipe
	wait_for 20 catches_sigint
}
close_pipe() {
	exec {pipe}>&-
	rm pipe
}
"$PROFSCRIPT" trace --input "$DATA/pipe.data" >whole
read_pipe
kill -INT $reader
sleep 0.3
check 'after Ctrl-C it waits for the end of the pipe' kill -0 $reader
tail -c +12001 "$DATA/pipe.data" >&$pipe
close_pipe
wait $reader
check 'and ends well' test $? -eq 0 -a ! -s err
check 'it has printed all events' cmp whole out
for signal in TERM INT; do
	read_pipe
	kill -$signal $reader
	[ $signal = TERM ] || { sleep 0.3; kill -INT $reader; }
	wait_for 20 test -s err
	wait $reader
	check "SIG$signal, the end has not come: status 1" test $? -eq 1
	expect_line 'says so' '^profscript: interrupted before the end of the recording$' err
	check 'with the events that were read' bash -c 'test -s out && head -c "$(stat -c %s out)" whole | cmp - out'
	close_pipe
done

# A file that is truncated while it is read: the run is at an event when its output has filled the pipe.
cp "$sched" shrinking.data
mkfifo output
"$PROFSCRIPT" exec -e sched:sched_switch 'print(ev.next_comm, ("x"):rep(4000))' --input shrinking.data >output 2>err &
reader=$!
exec {output}<>output
is_full() { ! timeout 0.2 dd if=/dev/zero of=output bs=4096 count=1 status=none; }
wait_for 20 is_full
truncate -s 100 shrinking.data
cat <&$output >out &
cat=$!
wait $reader
check 'a file that is truncated while it is read: status 1' test $? -eq 1
kill $cat
exec {output}<&-
expect_line 'says so' '^profscript: shrinking.data: truncated while it was read: the events after that are missing$' err
expect_line 'the events before are there' '^(migration/0|sched-pipe|perf|swapper).*xxxx' out

# Without formats, which are at the end of a file, the events that have none are printed.
head -c 15000 "$DATA/mixed.data" >cut.data
"$PROFSCRIPT" trace --input cut.data >out 2>err
check 'formats that were cut off: status 1' test $? -eq 1
"$PROFSCRIPT" trace -e cpu-clock --input cut.data 2>/dev/null >clocks
check 'the events without formats are there' bash -c 'test -s out && cmp clocks out'
expect_line 'it names the others' '^trace: the recording lacks the formats of its tracepoints .[0-9:, ]+.: their events are left out$' err
expect_line 'and says what is cut off' '^profscript: cut.data: cut off inside feature' err
# The attributes and records of a file, without the features after them.
{ head -c 72 "$sched"; head -c 32 /dev/zero; tail -c +105 "$sched"; } >cut.data
for event in '' '-e sched:sched_switch'; do
	# shellcheck disable=SC2086 # an option and its value
	refused "no formats at all${event:+, $event}" 1 \
		'trace: the recording lacks the formats of its tracepoints' trace $event --input cut.data
done

# A directory of perf record --kcore has the recording in its file `data`.
mkdir kcore
cp "$sched" kcore/data
"$PROFSCRIPT" trace --input "$sched" >whole
expect_text 'a directory of perf record --kcore' whole "$PROFSCRIPT" trace --input kcore

# A file that is larger than the address space may be (ulimit -v) is read, not mapped.
if (ulimit -v 500000 && "$PROFSCRIPT" --version) >out 2>&1; then
	python3 "$TOP/tests/tools/sparse.py" "$sched" large.data 1000000000
	(ulimit -v 500000 && "$PROFSCRIPT" trace --input large.data) >out 2>err
	check 'a file that is larger than the address space' cmp whole out
	check 'without a message' test ! -s err
	truncate -s 900000000 large.data
	(ulimit -v 500000 && "$PROFSCRIPT" trace --input large.data) >out 2>err
	check 'truncated: status 1' test $? -eq 1
	expect_line 'it says so' '^profscript: large.data: cut off: contains [0-9]+ of 10000[0-9]+ bytes of records$' err
	(ulimit -v 20000 && "$PROFSCRIPT" trace --input large.data) >out 2>err
	one_line $? 1 'not enough memory' >wrong
	[ ! -s "$TMP/wrong" ]
	result $? "an address space that is too small for anything" wrong
else
	skip 'a file that is larger than the address space' 'this program needs terabytes of it'
fi
