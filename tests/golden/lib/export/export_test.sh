#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only
# Exports of recordings, read back by protoc with the published schemas and by Python (tests/tools/exported.py): the
# same events, sums of fields, stacks, pairs and losses as profscript's own output and perf script's.
. "$(dirname "$0")/../../../lib.sh"
exported() { "$python" "$TOP/tests/tools/exported.py" "$@"; }
python=/usr/bin/python3 # with Debian's python3-jsonschema
[ -x $python ] || python=python3
command -v protoc >/dev/null || skip_all 'protoc (package protobuf-compiler)'
export_as() { # RECORDING SUFFIX ARG...
	"$PROFSCRIPT" export -q "$DATA/$1.data" -o "$TMP/$1.$2" "${@:3}" 2>"$TMP/err"
}
wakeups=(-e sched:sched_wakeup//key=pid/ -e sched:sched_switch//key=next_pid/)

# All fields of all events, and all stacks, as trace prints them.
for data in sched syscalls mixed kmem panel allocs; do
	"$PROFSCRIPT" trace -q -g --json --input "$DATA/$data.data" >"$TMP/json"
	exported trace "$TMP/json" >"$TMP/want"
	for format in perfetto:pftrace chrome:json firefox:profile.json; do
		export_as $data "${format#*:}"
		exported "${format%%:*}" "$TMP/$data.${format#*:}" >"$TMP/all" 2>"$TMP/err"
		status=$?
		lines='^(event|sum|stack|sample) '
		[ "${format%%:*}" != firefox ] || lines='^(event|sum) '
		grep -E "$lines" "$TMP/all" >"$TMP/got"
		grep -E "$lines" "$TMP/want" | diff - "$TMP/got" >"$TMP/diff" || status=1
		cat "$TMP/err" >>"$TMP/diff"
		result $status "$data.data as ${format%%:*}: the events and fields of trace" "$TMP/diff"
	done
	grep -E '^event ' "$TMP/want" | grep : | cut -d' ' -f2- >"$TMP/got"
	perf script -i "$DATA/$data.data" -F event 2>/dev/null | sed -n 's/^ *\([a-z_]*:[a-z_]*\): *$/\1/p' | sort | uniq -c |
		awk '{ print $2, $1 }' >"$TMP/perf"
	check "$data.data: as many events as perf script has" diff "$TMP/perf" "$TMP/got"
	export_as $data html
	exported html "$TMP/$data.html" >"$TMP/all" 2>"$TMP/err"
	# Switches are not ticks, but show who runs.
	grep -E '^event .*:' "$TMP/want" | grep -v sched_switch | diff - <(grep -E '^event .*:' "$TMP/all") >"$TMP/diff"
	result $? "$data.data as html: the events of trace" "$TMP/diff" "$TMP/err"
done

# A script that collects garbage, and allocates, while its events are exported.
cat >"$TMP/collects.lua" <<'END'
return { summary = 'Collect garbage', start = function()
  local kept = {}
  return { ['sched:sched_switch'] = function(ev)
    collectgarbage()
    for i = 1, 300 do kept[i] = ('%d.%d'):format(tonumber(ev._time), i) end
  end }
end }
END
"$PROFSCRIPT" trace -q --json -e sched:sched_switch --input "$DATA/sched.data" >"$TMP/json"
exported trace "$TMP/json" >"$TMP/want"
for format in chrome:json firefox:profile.json; do
	"$PROFSCRIPT" "$TMP/collects.lua" -q --input "$DATA/sched.data" --export "$TMP/collects.${format#*:}" 2>"$TMP/err"
	exported "${format%%:*}" "$TMP/collects.${format#*:}" >"$TMP/got" 2>>"$TMP/err"
	check "${format%%:*}: the fields survive a garbage collection" diff <(grep -E '^(event|sum) sched:sched_switch ' "$TMP/want") \
		<(grep -E '^(event|sum) sched:sched_switch ' "$TMP/got")
done

# The formats of stacks.
"$PROFSCRIPT" trace -q -g --json --input "$DATA/mixed.data" >"$TMP/json"
exported trace "$TMP/json" | grep -E '^(stack|sample)' >"$TMP/want"
export_as mixed speedscope.json
exported speedscope "$TMP/mixed.speedscope.json" >"$TMP/got" 2>&1
check 'speedscope: its schema, and the stacks of trace' diff "$TMP/want" <(grep -E '^(stack|sample)' "$TMP/got")
expect_line 'speedscope: ns of a clock' '^weight cpu-clock nanoseconds 11000000$' "$TMP/got"
check 'firefox: sizes are bytes' bash -c '"$1" export -q "$2" -o firefox:- 2>/dev/null |
	grep -q "\"key\":\"bytes_alloc\",\"label\":\"bytes_alloc\",\"format\":\"bytes\""' - "$PROFSCRIPT" "$DATA/kmem.data"
exported firefox "$TMP/mixed.profile.json" | grep ^stack >"$TMP/got"
check 'firefox: the stacks of trace' diff <(awk '/^stack/ { n[$3 " " $4] += $5 } END { for (i in n) print "stack", i, n[i] }' "$TMP/want" |
	sort) <(sort "$TMP/got")
export_as mixed pb.gz
exported pprof "$TMP/mixed.pb.gz" >"$TMP/got" 2>&1
expect_line 'pprof: samples' '^samples/count 43$' "$TMP/got"
expect_line 'pprof: ns of a clock' '^cpu-clock/nanoseconds 11000000$' "$TMP/got"
expect_line 'pprof: time is shown at first' '^shown cpu-clock 1$' "$TMP/got"
expect_line 'pprof: counts of a tracepoint' '^sched:sched_switch/count 21$' "$TMP/got"
check 'pprof: the labels' test "$(awk '/^comm / { n += $NF } END { print n }' "$TMP/got")" = 43
export_as mixed folded
"$PROFSCRIPT" trace -q --flame-graph "$TMP/flame" --input "$DATA/mixed.data" >/dev/null
check 'folded: what --flame-graph writes' diff <(sort "$TMP/flame.folded") "$TMP/mixed.folded"

# Pairs, with their times.
"$PROFSCRIPT" multi-trace --csv --input "$DATA/sched.data" "${wakeups[@]}" >"$TMP/out"
calls=$(total calls) ns=$(total total_ns)
for format in perfetto:pftrace chrome:json firefox:profile.json html:html; do
	"$PROFSCRIPT" multi-trace -q --input "$DATA/sched.data" "${wakeups[@]}" --export "$TMP/pairs.${format#*:}" >"$TMP/text"
	exported "${format%%:*}" "$TMP/pairs.${format#*:}" >"$TMP/got" 2>&1
	expect_line "${format%%:*}: pairs" "^slice sched_wakeup → sched_switch $calls\$" "$TMP/got"
	expect_line "${format%%:*}: their time" "^slice ns sched_wakeup → sched_switch $ns\$" "$TMP/got"
	[ "${format%%:*}" = html ] || expect_line "${format%%:*}: also all events" '^event sched:sched_switch 211$' "$TMP/got"
done
check 'the output of the profiler stays' diff <("$PROFSCRIPT" multi-trace --input "$DATA/sched.data" "${wakeups[@]}") "$TMP/text"
exported perfetto "$TMP/pairs.pftrace" >"$TMP/got"
expect_line 'perfetto: a flow from each first event' "^flow from its first event $calls\$" "$TMP/got"
expect_line 'perfetto: a flow to each second event' "^flow to its second event $calls\$" "$TMP/got"
while read -r by first second; do
	"$PROFSCRIPT" multi-trace -q --input "$DATA/hogs.data" -e "sched:sched_wakeup/$first" -e "sched:sched_switch/$second" \
		--export "$TMP/keys.pftrace" --csv >"$TMP/out" </dev/null
	exported perfetto "$TMP/keys.pftrace" >"$TMP/got" 2>&1
	expect_line "perfetto: pairs by $by" "^slice sched_wakeup → sched_switch $(total calls)\$" "$TMP/got"
	expect_line "perfetto: their time by $by" "^slice ns sched_wakeup → sched_switch $(total total_ns)\$" "$TMP/got"
done <<-'END'
	CPU / /
	name /key=comm/ /key=next_comm/
	number /key=pid%2/ /key=next_pid%2/
END

# Who runs: from a switch to the next one of the CPU.
perf_text hogs | awk '$3 == "sched:sched_switch:" { match($0, /next_pid=[0-9]+/); pid = substr($0, RSTART + 9, RLENGTH - 9)
	if ($1 in since && ran[$1]) { n++; ns += $2 - since[$1] }
	since[$1] = $2; ran[$1] = pid } END { printf "running %d\nrunning ns %d\n", n, ns }' >"$TMP/want"
export_as hogs pftrace
exported perfetto "$TMP/hogs.pftrace" >"$TMP/got"
check 'perfetto: who runs, as ftrace events' diff "$TMP/want" <(grep ^running "$TMP/got")
export_as hogs json
exported chrome "$TMP/hogs.json" >"$TMP/got"
# The last task of each CPU runs to the end.
check 'chrome: who runs' test "$(sed -n 's/^running //p' "$TMP/got" | head -n 1)" = $(($(sed -n 's/^running \([0-9]*\)$/\1/p' "$TMP/want") + 2))
grep -E '^(running|waiting)' "$TMP/got" >"$TMP/chrome"
expect_line 'chrome: who waits' '^waiting ns [1-9]' "$TMP/chrome"
export_as hogs html
check 'html: who runs and waits, as in chrome' diff "$TMP/chrome" <(exported html "$TMP/hogs.html" | grep -E '^(running|waiting)')
exported chrome "$TMP/mixed.json" >"$TMP/got"
check 'switches of some threads do not tell who runs' test "$(grep -c ^running "$TMP/got")" = 0

"$PROFSCRIPT" rundelay -q --input "$DATA/hogs.data" --export "$TMP/delay.pftrace" >/dev/null
exported perfetto "$TMP/delay.pftrace" >"$TMP/got" 2>&1
check 'perfetto: a switch that a profiler asks for twice' diff "$TMP/want" <(grep ^running "$TMP/got")
"$PROFSCRIPT" rundelay -q --input "$DATA/hogs.data" --csv >"$TMP/out"
check 'perfetto: as many slices as rundelay has waits' test "$(awk '/^slice sched/ { n += $NF } END { print n }' "$TMP/got")" = "$(total calls)"

# Slices of scripts.
slices() { # NAME ARG...: the same calls and ns as in the table, whose kinds are in the column of "by"
	"$PROFSCRIPT" "${@:3}" -q --csv >"$TMP/out"
	awk -F, -v by="$2" 'NR == 1 { for (i = 1; i <= NF; i++) at[$i] = i; next }
		{ n[$at[by]] += $at["calls"]; ns[$at[by]] += $at["total_ns"] }
		END { for (k in n) { print "slice", k, n[k]; print "slice ns", k, ns[k] } }' "$TMP/out" | sort >"$TMP/want"
	for format in perfetto:pftrace chrome:json firefox:profile.json html:html; do
		"$PROFSCRIPT" "${@:3}" -q --csv --export "$TMP/slices.${format#*:}" >"$TMP/out" 2>"$TMP/err"
		exported "${format%%:*}" "$TMP/slices.${format#*:}" 2>&1 | grep ^slice | sort | diff "$TMP/want" - >"$TMP/diff"
		result $? "${format%%:*}: $1" "$TMP/diff"
	done
	check "$1: there are some" grep -q '^slice' "$TMP/want"
}
slices 'states of task-state' state task-state --input "$DATA/hogs.data"
slices 'calls of nested-trace by CPU' start nested-trace --impl delay --input "$DATA/timers.data" \
	-e irq:softirq_entry,irq:softirq_exit -e timer:timer_expire_entry,timer:timer_expire_exit
slices 'calls of nested-trace by key' start nested-trace --impl delay --input "$DATA/zstd.data" \
	-e raw_syscalls:sys_enter,raw_syscalls:sys_exit -k common_pid
"$PROFSCRIPT" nested-trace -q --input "$DATA/timers.data" -e irq:softirq_entry,irq:softirq_exit \
	-e timer:timer_expire_entry,timer:timer_expire_exit --export "$TMP/tree.html" >"$TMP/out"
check 'nested-trace: also with a tree of calls' test "$(exported html "$TMP/tree.html" | grep -c '^slice ns')" = 2

# Losses.
for format in perfetto:pftrace chrome:json html:html firefox:profile.json; do
	export_as lost "${format#*:}"
	exported "${format%%:*}" "$TMP/lost.${format#*:}" >"$TMP/got" 2>&1
	expect_line "${format%%:*}: lost events" '^lost 3058$' "$TMP/got"
done
expect_line 'firefox: paused ranges' '^paused 3$' "$TMP/got"
