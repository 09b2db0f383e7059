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
