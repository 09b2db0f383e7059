# SPDX-License-Identifier: GPL-2.0-only
# shellcheck shell=bash
# What a shell test needs; it starts with `. "$(dirname "$0")/../lib.sh"`. Results are TAP lines,
# the plan is printed at exit. A test that wants to can be run by itself, without tests/run.sh.
#
#   $PROFSCRIPT  the program under test    $TOP  the source tree    $TMP  removed at exit
set -u
TOP=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
: "${PROFSCRIPT:=$TOP/profscript}"
TMP=$(mktemp -d)
tests_run=0 tests_failed=0 pulse=()
trap finish EXIT

finish() {
	local status=$? pids
	mapfile -t pids < <(jobs -p)
	pids+=("${pulse[@]}")
	[ ${#pids[@]} -gt 0 ] && kill "${pids[@]}" 2>/dev/null
	rm -rf "$TMP"
	echo "1..$tests_run"
	[ $status -eq 0 ] && [ $tests_failed -gt 0 ] && status=1
	exit $status
}

# result STATUS NAME [FILE]: FILE says what went wrong
result() {
	tests_run=$((tests_run + 1))
	if [ "$1" -eq 0 ]; then
		echo "ok $tests_run - $2"
	else
		tests_failed=$((tests_failed + 1))
		echo "not ok $tests_run - $2"
		[ -s "${3-}" ] && sed 's/^/# /' "$3" | head -n 50
	fi
	return 0
}

# check NAME COMMAND...: the command succeeds
check() {
	local name=$1
	shift
	"$@" >"$TMP/.check" 2>&1
	result $? "$name" "$TMP/.check"
}

# check_status NAME STATUS COMMAND...: the command ends with this exit status
check_status() {
	local name=$1 want=$2 status
	shift 2
	"$@" >"$TMP/.check" 2>&1
	status=$?
	echo "exit status $status, expected $want" >>"$TMP/.check"
	result $((status != want)) "$name" "$TMP/.check"
}

# expect_line NAME REGEX [FILE]: a line of FILE (or of stdin) matches the extended REGEX
expect_line() {
	cat -- "${3:--}" >"$TMP/.lines"
	grep -Eq -- "$2" "$TMP/.lines"
	result $? "$1: $2" "$TMP/.lines"
}

# expect_text NAME EXPECTED_FILE COMMAND...: the command succeeds and prints just this to stdout
expect_text() {
	local name=$1 expected=$2 status
	shift 2
	"$@" >"$TMP/.text" 2>"$TMP/.err"
	status=$?
	{ cat "$TMP/.err"; diff -u "$expected" "$TMP/.text"; } >"$TMP/.diff"
	cmp -s "$expected" "$TMP/.text" || status=1
	result $status "$name" "$TMP/.diff"
}

# skip NAME REASON: REASON names the kernel feature that is missing
skip() {
	tests_run=$((tests_run + 1))
	echo "ok $tests_run - $1 # SKIP $2"
}

# needs_tracepoint SYSTEM:NAME...: without them, all of this test program is skipped.
# From then on each CPU has system calls, wake-ups and switches 20 times a second: a machine that does
# nothing else may have none for seconds.
needs_tracepoint() {
	local event events=/sys/kernel/tracing/events
	[ -d $events ] || mount -t tracefs nodev /sys/kernel/tracing 2>/dev/null
	for event; do
		[ -r "$events/${event/://}/id" ] || skip_all "no readable tracepoint $event in tracefs"
		perf stat -a -e "$event" true >/dev/null 2>&1 || skip_all "perf_event_open refuses $event"
	done
	[ ${#pulse[@]} -gt 0 ] && return
	for event in $(seq 0 $(($(nproc) - 1))); do
		taskset -c "$event" bash -c 'while sleep 0.05; do :; done' >/dev/null 2>&1 &
		pulse+=($!)
		disown
	done
}

skip_all() {
	skip "$(basename "$0" .sh)" "$1"
	exit 0
}

# workload NAME ARG...: starts build/workloads/NAME, which waits for `go`; its pid is $WORKLOAD
workload() {
	local name=$1
	shift
	rm -f "$TMP/go"
	mkfifo "$TMP/go"
	"$TOP/build/workloads/$name" -w "$@" <"$TMP/go" &
	WORKLOAD=$!
	exec {workload_go}>"$TMP/go"
}

# Lets the workload begin and waits for its end.
go() {
	echo >&"$workload_go"
	exec {workload_go}>&-
	wait "$WORKLOAD"
}

# wait_for SECONDS COMMAND...: repeats the command until it succeeds
wait_for() {
	local end=$((SECONDS + $1))
	shift
	until "$@" 2>/dev/null; do
		[ $SECONDS -lt $end ] || return 1
		sleep 0.05
	done
}

# wait_ready PID: until that profscript waits for events: all are enabled, and signals end it
wait_ready() {
	wait_for 60 grep -q poll "/proc/$1/wchan"
}

# given_up_traces LOOP FILE: what a report of jit.v says was given up, once there is a trace of a loop
# at LOOP: side traces of loops, and traces that begin anew. A function may get hot before the loop
# around it and be tried alone; what becomes of that does not matter, for the loop is compiled with
# the function in it. Nor does what returns to a lower frame: there the loop has ended, once a batch.
given_up_traces() {
	awk -v loop=" $1:[0-9]+ loop]$" '
		{
			exit_of = match($0, /\([0-9]+\/[0-9]+\)/) ? substr($0, RSTART, RLENGTH) : ""
			parent = substr(exit_of, 2) + 0
		}
		/^\[TRACE +[0-9]+ / {
			in_loop[$2 + 0] = exit_of ? in_loop[parent] : / loop]$/
		}
		$0 ~ loop { there = 1 }
		/NYI: return to lower frame/ {
			ends[exit_of] = 1
			next
		}
		there && /-- NYI|fallback to interpreter|blacklisted/ && !(exit_of && ends[exit_of]) &&
			(exit_of ? in_loop[parent] : 1)' "$2"
}
