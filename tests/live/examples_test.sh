#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only
# Every example runs; those with a workload that does an exact number of things count just that.
. "$(dirname "$0")/../lib.sh"
export PROFSCRIPT
needs_tracepoint sched:sched_wakeup

for example in "$TOP"/examples/*.lua; do
	if grep -q 'session.bpf' "$example" && ! command -v clang >/dev/null; then
		skip "$(basename "$example") runs" 'no clang to compile its BPF program with'
		continue
	fi
	check "$(basename "$example") runs" "$PROFSCRIPT" "$example" --duration 0.2
done

# The examples of -h are command lines that can be meant: a dry run opens their events. What this machine has
# not may refuse them, and says so.
cd "$TMP" || exit 1
printf 'int f(int x) { return x + 1; }\nint main(int n, char **v) { (void)v; return f(n) == 0; }\n' >program.c
gcc -O0 -o program program.c 2>/dev/null || cp "$(command -v true)" program
cp "$TOP/tests/recordings/sched.data" perf.data
cp "$TOP/tests/recordings/hogs.data" new.data
cp "$TOP/tests/recordings/hogs.data" old.data
lacking='needs a hardware PMU|needs an Intel processor|no kprobes|no uprobes|kvm|has no|no such event system'
for profiler in $("$PROFSCRIPT" --help | awk '/^  [a-z]/ { print $1 }'); do
	"$PROFSCRIPT" "$profiler" -h >help 2>&1
	grep -q -- '--dry-run' help || continue
	sed -n '/^examples/,/^$/s/^ *\(profscript .*\)/\1/p' help >commands
	: >wrong
	while IFS= read -r command; do
		case $command in
		*' -- '*) dry=${command/ -- / --dry-run -- } ;;
		*) dry="$command --dry-run" ;;
		esac
		timeout 60 bash -c "\"\$PROFSCRIPT\" ${dry#profscript }" >out 2>err </dev/null || grep -Eq -- "$lacking" err ||
			{ echo "$command"; cat err; } >>wrong
	done <commands
	check "$profiler: the examples of -h" test ! -s wrong
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
