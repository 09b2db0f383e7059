#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only
# Every example script runs, and the events of every example of -h can be opened. Exit status 3 means that this machine
# lacks what one needs; any other failure is an error.
. "$(dirname "$0")/../lib.sh"
export PROFSCRIPT
needs_tracepoint sched:sched_wakeup

for example in "$TOP"/examples/*.lua; do
	name="$(basename "$example") runs"
	"$PROFSCRIPT" "$example" --duration 0.2 >"$TMP/out" 2>"$TMP/err"
	status=$?
	unavailable $status "$name" || result $status "$name" "$TMP/err"
done

# The examples of -h as dry runs, which open their events. The files that they name exist.
cd "$TMP" || exit 1
printf 'int f(int x) { return x + 1; }\nint main(int n, char **v) { (void)v; return f(n) == 0; }\n' >program.c
gcc -O0 -o program program.c 2>/dev/null || cp "$(command -v true)" program
cp "$DATA/mixed.data" perf.data
cp "$DATA/mixed.data" new.data
cp "$DATA/mixed.data" old.data

# not_loaded: $TMP/err reports missing events of a module that is not loaded; only a user knows that these exist
not_loaded() {
	local system
	system=$(sed -nE "1s/^profscript: no such event( system)? '(kvm|kvmmmu)[:'].*/\2/p" "$TMP/err")
	[ -n "$system" ] && [ ! -d "/sys/kernel/tracing/events/$system" ]
}

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
		timeout 60 bash -c "\"\$PROFSCRIPT\" ${dry#profscript }" >out 2>err </dev/null
		status=$?
		[ $status -ne 0 ] || continue
		! not_loaded || status=3
		unavailable $status "$command" || { echo "$command"; cat err; } >>wrong
	done <commands
	check "$profiler: the examples of -h" test ! -s wrong
done

workload pingpong -c 0 1000
trace_workload "$TOP/examples/wakeups.lua" --top 100000
check 'wakeups ends' test $? -eq 0
expect_line 'wakeups counts' '\<ping +1000$' "$TMP/out"
expect_line 'wakeups counts' '\<pong +1000$' "$TMP/out"
