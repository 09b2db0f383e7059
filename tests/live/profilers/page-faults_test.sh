#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only
# page-faults: where a program faults, with its registers.
# Runs alone.
. "$(dirname "$0")/../../lib.sh"
needs_tracepoint sched:sched_switch
burn=$TOP/build/workloads/burn
cd "$TMP" || exit 1

"$PROFSCRIPT" page-faults -N 1 -g -- "$burn" 1 >fault
expect_line 'a page fault' ' burn +[0-9]+ \[[0-9]{3}\] [0-9.]+: page-fault: addr [0-9a-f]{16} ip [^ ]+$' fault
if [ "$(uname -m)" = x86_64 ]; then
	expect_line 'its registers' '^      RIP: [0-9a-f]{16} RSP: [0-9a-f]{16} RFLAGS:[0-9a-f]{8}$' fault
	"$PROFSCRIPT" page-faults -N 1 -g --exclude-user -- "$burn" 1 >fault
	awk '/\(\[kernel\.kallsyms\]\)$/ { kernel++; late += registers } /^ +RIP: / { registers = kernel > 0 }
		/^    0000/ { user += registers } END { exit !(registers && user && !late) }' fault
	result $? 'those of a fault in the kernel are between its frames and those of user space' fault
fi

# The address of a fault is not a short stack.
"$PROFSCRIPT" page-faults -v -- bash -c 'for i in 1 2 3 4 5; do /bin/true; done' >"$TMP/out" 2>"$TMP/err"
! grep -q 'frame pointers' "$TMP/err"
result $? 'no hint about stacks that were not recorded' "$TMP/err"

# Two at once see all, each of them: the kernel fills the id of their samples once for both.
workload pages 1000
"$PROFSCRIPT" page-faults -p $WORKLOAD >"$TMP/first" 2>&1 &
first=$!
wait_ready $first
trace_workload trace -e page-faults// -p $WORKLOAD
kill -INT $first 2>/dev/null
wait $first
for name in first out; do
	check "two at once, $name: at least 1000 faults" test "$(grep -c 'page-fault' "$TMP/$name")" -ge 1000
done

# Each program maps dozens of files. These records have rings of their own, which -m makes larger too.
start page-faults -m 2048 --period 1000000 # no faults of other tasks fill the rings
kill -STOP $tracer
for ((i = 0; i < 400; i++)); do /bin/true; done
kill -CONT $tracer
stop
check 'no mappings are lost while the reader stands still' test "$(grep -c ' lost ' err)" -eq 0
