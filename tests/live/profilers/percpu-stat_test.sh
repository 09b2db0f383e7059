#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only
# percpu-stat: events that cannot be counted are named, the row ALL is the sum of the others.
# Runs alone.
. "$(dirname "$0")/../../lib.sh"
needs_tracepoint raw_syscalls:sys_enter sched:sched_switch
programs=$TOP/build/workloads
cd "$TMP" || exit 1
read=63 # the number of read(2)
[ "$(uname -m)" != x86_64 ] || read=0

"$PROFSCRIPT" percpu-stat --syscalls --format csv -N 2 -i 100 >out 2>err
check 'ALL is the sum' awk -F, '
	NR == 1 { columns = NF; next }
	$3 == "ALL" { for (i = 4; i <= columns; i++) if ($i != sum[i]) exit bad = 1; split("", sum); all++; next }
	{ for (i = 4; i <= columns; i++) sum[i] += $i }
	END { exit bad || all != 2 }' out
check 'switches and system calls happen' awk -F, 'NR == 1 { for (i = 1; i <= NF; i++) at[$i] = i }
	$3 == "ALL" { if (!$at["csw"] || !$at["syscalls"]) exit 1 }' out
cut -d, -f4- out | head -n 1 | tr , '\n' | grep -c . >columns
missing=$(grep -o '[a-z_]*:[a-z_]*' err | wc -l)
expect_line 'columns and missing events are the panel' "^$((20 - missing))\$" columns
workload syscalls 30000
start percpu-stat --syscalls -p $WORKLOAD
go
wait $tracer
expect_line '-p: threads' "^\[ *$WORKLOAD\] +3[0-9]{4} " out
expect_line '-p: their sum' '^ *\[ALL\] +3[0-9]{4} ' out

# One read(2) per CPU and period covers the whole panel, and one more follows at the end. It is recognized by its size:
# three words plus one per event.
"$PROFSCRIPT" exec -e "raw_syscalls:sys_enter/id==$read/" --format csv \
	"if ev.args[2] == $(((3 + $(<columns)) * 8)) then count() end" -- \
	"$PROFSCRIPT" percpu-stat --syscalls -q -i 20 -N 12 -o /dev/null >reads
expect_line 'for the whole panel, too' ",$((13 * $(nproc)))\$" reads

# A recording of a counter.
perf record -q -c 1 -e cs -o cs.data -- "$programs/pingpong" -c 0 50 2>/dev/null
want=$(perf script -i cs.data -F event 2>/dev/null | grep -c cs)
"$PROFSCRIPT" percpu-stat --input cs.data -i 100s --format csv >out
expect_line "it is in the panel" ",ALL,$want\$" out
check_status 'none of it is recorded' 2 "$PROFSCRIPT" percpu-stat --input "$DATA/sched.data"
expect_line 'and it says where' 'the recording contains none of its events' .check

# A terminal of 80 columns has tables below each other, of all columns.
if command -v script >/dev/null; then
	script -qec "stty cols 80; $(printf %q "$PROFSCRIPT") percpu-stat -q -i 20 -N 1" /dev/null </dev/null 2>&1 | tr -d '\r' >out
	check 'a terminal: no line is too long' awk 'length > 80 { exit 1 }' out
	expect_line 'it has the last columns' ' idle$' out
	check 'below the first ones' test "$(grep -c '^\[CPU\]' out)" -ge 2
else
	skip 'a terminal' 'script is not installed'
fi
