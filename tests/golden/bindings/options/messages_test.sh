#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only
# What is wrong with a command line or a file, in one short line and with the right status; and output that cannot be
# written is never a success.
. "$(dirname "$0")/../../../lib.sh"
sched=$DATA/sched.data
cd "$TMP" || exit 1

long=$(head -c 100000 /dev/zero | tr '\0' x)
for args in "-e $long" "-e sched:$long" "-N $long" "--input $long" "--duration $long"; do
	# shellcheck disable=SC2086 # words
	"$PROFSCRIPT" trace $args >out 2>err
	check "a very long value is cut: ${args:0:8}" test $? -gt 0 -a "$(wc -c <err)" -lt 800
done
for args in --help 'trace -h' --version "trace -e sched:sched_switch --input $sched help"; do
	# shellcheck disable=SC2086 # words
	check_status "$args on a full disk" 1 bash -c "'$PROFSCRIPT' $args >/dev/full"
	expect_line 'says so' '^profscript: cannot write the output: No space left on device$' "$TMP/.check"
done
check_status 'a command that there is not' 2 "$PROFSCRIPT" man nosuch
check_status 'a title without a picture' 2 "$PROFSCRIPT" profile --input "$sched" --title x
check_status 'fp takes no size' 2 "$PROFSCRIPT" trace --input "$sched" --call-graph fp,1
expect_line 'and is no workload' "^profscript: trace: option '--call-graph': invalid call graph mode 'fp,1' .expected fp, tables, hybrid or dwarf" "$TMP/.check"

refused 'a folder of stacks' 1 "$TMP: Is a directory" flamegraph "$TMP" x.svg
refused 'a folder of latencies' 1 "$TMP: Is a directory" heatmap "$TMP" x.svg
{ head -c 500000 /dev/zero | sed 's/\x0/f;/g' && echo 'f 1'; } >deep.folded
refused 'a very deep stack' 1 'deep.folded:1: the stack has [0-9]+ frames, more than 4096' flamegraph deep.folded x.svg
refused 'an event that a recording lacks' 1 'the recording contains no samples of page-faults; it contains sched:' \
	page-faults --input "$sched"
refused 'exec without a parenthesis' 2 "exec: line 1: the '\\(' after count is not closed" \
	exec --input "$sched" -e sched:sched_switch 'count(1'
