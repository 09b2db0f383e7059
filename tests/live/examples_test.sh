#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only
# Every example runs; those with a workload that does an exact number of things count just that.
. "$(dirname "$0")/../lib.sh"
needs_tracepoint sched:sched_wakeup

for example in "$TOP"/examples/*.lua; do
	if grep -q 'session.bpf' "$example" && ! command -v clang >/dev/null; then
		skip "$(basename "$example") runs" 'no clang to compile its BPF program with'
		continue
	fi
	check "$(basename "$example") runs" "$PROFSCRIPT" "$example" --duration 0.2
done

workload pingpong -c 0 1000
"$PROFSCRIPT" "$TOP/examples/wakeups.lua" --top 100000 >"$TMP/wakeups" &
tracer=$!
sleep 1
go
kill -INT $tracer
check 'wakeups ends' wait $tracer
expect_line 'wakeups counts' '\<ping +1000$' "$TMP/wakeups"
expect_line 'wakeups counts' '\<pong +1000$' "$TMP/wakeups"
