#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only
# --dry-run: the events that would be opened, and the part of a filter that the kernel evaluates.
. "$(dirname "$0")/../../../lib.sh"
needs_tracepoint raw_syscalls:sys_enter

"$PROFSCRIPT" trace -e 'raw_syscalls:sys_enter/id==1 && id+1>1/' --dry-run -C 0 >"$TMP/out"
check 'a dry run succeeds' test $? -eq 0
expect_line 'a dry run' '^    filter in the kernel: \(id==1\) && \(common_pid != [0-9]+ \|\| common_flags & 24\)$' "$TMP/out"
expect_line 'a dry run' '^    filter in (profscript|the program): id\+1>1$' "$TMP/out"
if grep -q 'captured by a BPF program' "$TMP/out"; then
	check 'a program that captures checks the filter' grep -q '^    filter in the program: ' "$TMP/out"
fi
"$PROFSCRIPT" trace -e 'raw_syscalls:sys_enter/id==1 && id+1>1/' --dry-run -C 0 --capture perf >"$TMP/out"
expect_line 'perf events: profscript checks it' '^    filter in profscript: id\+1>1$' "$TMP/out"
expect_line 'a dry run' '^target: CPUs 0$' "$TMP/out"

# --- as JSON, and the generated code ----------------------------------------------------------------

# plan FILTER ARG...: what Python prints of the plan `p` as JSON
plan() {
	"$PROFSCRIPT" "${@:2}" --dry-run --json | python3 -c "import json, sys; p = json.load(sys.stdin); print($1)"
}
is() { check "$1" test "$(plan "$2" "${@:4}")" = "$3"; }
is 'a route for each event' '[r["event"] for r in p["routes"]]' "['raw_syscalls:sys_enter', 'cpu-clock']" \
	trace -e raw_syscalls:sys_enter,cpu-clock
is 'perf: the way, and what was better' '[(r["way"], r["by"], r["why"][-1]["way"]) for r in p["routes"]]' \
	"[('sample', 'perf', 'capture')]" trace -e raw_syscalls:sys_enter --capture perf
is 'what it costs the task' '[r["cost"] for r in p["routes"]]' '[557, None]' trace -e raw_syscalls:sys_enter,cpu-clock \
	--capture perf
for option in '--prio 0-99' '--sched-policy 1'; do
	# shellcheck disable=SC2086 # two words
	is "$option: the need and the reason" '[p["facts"]["run"]["needs"]["perf_samples"], p["routes"][0]["why"][-1]["reason"]]' \
		"['${option% *}', '${option% *}']" trace -e raw_syscalls:sys_enter,cpu-clock $option
done
is 'what cannot be generated is a fact' 'list(p["facts"]["refusals"].values()) + [p["routes"][0]["way"]]' \
	"['line 1: a key may be a fraction', 'capture']" exec -e raw_syscalls:sys_enter 'count(ev.id / 3)'
if command -v setpriv >/dev/null && [ "$(id -u)" -eq 0 ]; then
	setpriv --bounding-set=-bpf,-perfmon,-sys_admin "$PROFSCRIPT" trace -e raw_syscalls:sys_enter --dry-run -v >"$TMP/out" 2>&1
	expect_line 'without privileges' 'through perf: .*Operation not permitted \(needs root or CAP_BPF and' "$TMP/out"
fi
for args in 'exec -e raw_syscalls:sys_enter count()' 'trace -e raw_syscalls:sys_enter' syscalls 'syscalls --than 1ms'; do
	# shellcheck disable=SC2086 # several words
	for command in "$args --dry-run" "explain $args"; do "$PROFSCRIPT" $command --json; done >"$TMP/out"
	check "explain prints the same plan: $args" test "$(sort -u "$TMP/out" | wc -l)" -eq 1
done

"$PROFSCRIPT" trace -e raw_syscalls:sys_enter --dry-run=code >"$TMP/out"
expect_line 'the generated loop' '^loop dispatch, where raw_syscalls:sys_enter is class [0-9]+:$' "$TMP/out"
expect_line 'its source' '^    local class = e.class$' "$TMP/out"
if grep -q 'captured by a BPF program' "$TMP/out"; then
	expect_line 'the program' '^BPF program of raw_syscalls:sys_enter:$' "$TMP/out"
	expect_line 'its instructions' '^ +[0-9]+: call ktime_get_ns$' "$TMP/out"
fi
refused 'another word' 2 ".*'--dry-run': .*" trace -e raw_syscalls:sys_enter --dry-run=x

# --- nothing is loaded ------------------------------------------------------------------------------

for args in 'trace -e raw_syscalls:sys_enter' 'rundelay --than 1ms --detail' 'exec -e sched:sched_switch count()'; do
	# shellcheck disable=SC2086 # several words
	strace -f -e trace=bpf,perf_event_open -o "$TMP/calls" "$PROFSCRIPT" $args --dry-run >/dev/null
	check "loads nothing: $args" bash -c "! grep -E 'BPF_PROG_LOAD|BPF_MAP_CREATE|BPF_RAW_TRACEPOINT_OPEN' '$TMP/calls'"
done
