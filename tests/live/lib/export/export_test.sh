#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only
# Live exports: all events of a workload, Ctrl-C, losses, counters; and viewers that read the files.
# Runs alone.
. "$(dirname "$0")/../../../lib.sh"
needs_tracepoint raw_syscalls:sys_enter raw_syscalls:sys_exit sched:sched_switch
command -v protoc >/dev/null || skip_all 'protoc (package protobuf-compiler)'
viewers=$TOP/tests/tools/viewers.sh
python=/usr/bin/python3 # with Debian's python3-jsonschema
[ -x $python ] || python=python3
exported() { $python "$TOP/tests/tools/exported.py" "$@"; }
value() { sed -n "s/^$1 \\([0-9]*\\)\$/\\1/p" "$TMP/got"; }
pair=(-e raw_syscalls:sys_enter//key=common_pid/ -e raw_syscalls:sys_exit//key=common_pid/)

# Each call of a workload, and what multi-trace says of them.
for format in perfetto:pftrace chrome:json firefox:profile.json; do
	workload syscalls 5000
	trace_workload multi-trace "${pair[@]}" --csv -m 1024 -p "$WORKLOAD" --export "$TMP/live.${format#*:}"
	exported "${format%%:*}" "$TMP/live.${format#*:}" >"$TMP/got" 2>&1
	check "${format%%:*}: nothing is lost" test "$(grep -c 'lost [1-9]' "$TMP/err")" = 0
	check "${format%%:*}: the workload's calls" test "$(value 'slice sys_enter → sys_exit')" -ge 5000
	check "${format%%:*}: as many as in the table" test "$(value 'slice sys_enter → sys_exit')" = "$(total calls)"
	check "${format%%:*}: as long" test "$(value 'slice ns sys_enter → sys_exit')" = "$(total total_ns)"
done

# Ctrl-C while the events come in.
for format in perfetto:pftrace chrome:json firefox:profile.json; do
	start trace -e sched:sched_switch --export "$TMP/cut.${format#*:}"
	wait_for 20 test -s "$TMP/out"
	stop
	check "${format%%:*}: the file is complete after Ctrl-C" exported "${format%%:*}" "$TMP/cut.${format#*:}"
	exported "${format%%:*}" "$TMP/cut.${format#*:}" >"$TMP/got"
	check "${format%%:*}: all lines of trace" test "$(value 'event sched:sched_switch')" = \
		"$(grep -c 'sched:sched_switch: ' "$TMP/out")"
done

# A run that is killed leaves packets that can be read.
start trace -e raw_syscalls:sys_enter -e raw_syscalls:sys_exit --export "$TMP/killed.pftrace"
"$TOP/build/workloads/syscalls" 50000
wait_for 20 test -s "$TMP/killed.pftrace.tmp"
kill -KILL $tracer
wait $tracer 2>/dev/null
check 'SIGKILL: no file' test ! -e "$TMP/killed.pftrace"
head -c $(($(stat -c %s "$TMP/killed.pftrace.tmp") / 65536 * 65536)) "$TMP/killed.pftrace.tmp" >"$TMP/part"
# Only the last packet may be cut.
check 'SIGKILL: the packets before the last one are complete' $python -c '
import sys
data = open(sys.argv[1], "rb").read()
at = n = 0
while at + 5 <= len(data):
    assert data[at] == 10, at
    size = sum((byte & 127) << 7 * i for i, byte in enumerate(data[at + 1:at + 5]))
    at, n = at + 5 + size, n + 1
assert n > 1000 and at - len(data) < 4096, (n, at)
' "$TMP/part"

# Lost events.
workload syscalls 200000
trace_workload trace "${pair[@]}" -m 1 -v -p "$WORKLOAD" --export "$TMP/lost.pftrace"
exported perfetto "$TMP/lost.pftrace" >"$TMP/got" 2>&1
lost=$(sed -n 's/^profscript: [0-9]* events, \([0-9]*\) lost.*/\1/p' "$TMP/err")
expect_line 'lost events' "\\(([0-9]+ events)\\)" <(grep exported "$TMP/err")
check 'lost events are those of the run' grep -q "losses ($lost events)" "$TMP/err"
check 'some were lost' test "$lost" -gt 0

# Counters.
start stat -e raw_syscalls:sys_enter --csv -i 100 --export "$TMP/stat.pftrace" --duration 1
wait $tracer
exported perfetto "$TMP/stat.pftrace" >"$TMP/got" 2>&1
check 'counters: the counts of the table' test "$(awk '/^counter / { n += $NF } END { print n }' "$TMP/got")" = "$(total total)"

[ -d "$TOP/build/viewers" ] || { skip viewers "run 'tests/tools/viewers.sh install' (npm)"; exit; }
command -v chromium >/dev/null || { skip viewers 'chromium'; exit; }
for name in mixed.speedscope.json mixed.pb.gz mixed.folded sched.json; do
	"$PROFSCRIPT" export -q "$DATA/${name%%.*}.data" -o "$TMP/$name" 2>/dev/null
	check "speedscope reads ${name#*.}" test -n "$($viewers speedscope "$TMP/$name")"
done
echo '{}' >"$TMP/bad.speedscope.json"
check 'speedscope does not read anything' test -z "$($viewers speedscope "$TMP/bad.speedscope.json")"
for name in mixed.profile.json sched.json mixed.folded; do
	"$PROFSCRIPT" export -q "$DATA/${name%%.*}.data" -o "$TMP/$name" 2>/dev/null
	$viewers firefox "$TMP/$name" 'profile info' 'thread samples --json' 'thread markers --list' >"$TMP/$name.out" 2>&1
done
expect_line 'Firefox Profiler reads profile.json' 'contains 2 threads across 2 processes' "$TMP/mixed.profile.json.out"
# 43 samples of two threads, of which the first one has 32
expect_line 'Firefox Profiler: its samples' '"totalSamples": 32,' "$TMP/mixed.profile.json.out"
expect_line 'Firefox Profiler: a marker for each event' ' 13 markers' "$TMP/mixed.profile.json.out"
expect_line 'Firefox Profiler reads json' 'Name: Chrome Trace' "$TMP/sched.json.out"
expect_line 'Firefox Profiler reads folded' 'contains 1 thread' "$TMP/mixed.folded.out"
pprof=$(ls /usr/lib/go-*/pkg/tool/linux_amd64/pprof 2>/dev/null | head -n 1)
[ -n "$pprof" ] || { skip 'go tool pprof' 'pprof (package golang-1.19-go)'; exit; }
"$pprof" -top -sample_index=cpu-clock "$TMP/mixed.pb.gz" >"$TMP/top" 2>/dev/null
expect_line 'go tool pprof: the time of all samples' 'Total samples = 11000us' "$TMP/top"
"$pprof" -tags "$TMP/mixed.pb.gz" >"$TMP/tags" 2>/dev/null
expect_line 'go tool pprof: the labels' 'comm: Total' "$TMP/tags"
