#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only
# The commands of the README's indented lines do what it says: they print something and succeed.
. "$(dirname "$0")/../lib.sh"
needs_tracepoint sched:sched_wakeup raw_syscalls:sys_enter
cd "$TOP" || exit 1
while sleep 0.1; do /bin/true; done & # something to see
for _ in $(seq $((3 * $(nproc)))); do
	nice -n 19 bash -c 'while :; do :; done' & # and delays
done

while read -r line; do
	line=${line//sudo /}
	line=${line//\/tmp\//$TMP/}
	line=${line//.\/profscript/$PROFSCRIPT}
	if [[ $line == *' -i '* ]]; then # it goes on until Ctrl-C
		: >"$TMP/out"
		bash -c "exec $line" >"$TMP/out" 2>"$TMP/err" </dev/null &
		wait_for 60 test -s "$TMP/out"
		kill -INT $!
		wait $!
	else
		timeout 60 bash -c "$line" >"$TMP/out" 2>"$TMP/err" </dev/null
	fi
	status=$?
	[[ -s $TMP/out || $line == *' -o '*.data* ]] || { status=1; echo 'printed nothing' >>"$TMP/err"; }
	result $status "${line//$TMP/\/tmp}" "$TMP/err"
done < <(grep -E '^    .*(\./profscript|perf record)' README.md)
