#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only
# The rules of pairing, compared with pairing.lua, which has them in their simplest form: random stages, keys,
# roles and --cycle on a recording. For all analyses, on recordings with lost events: the pairs that are left are
# some of those of the whole recording.
. "$(dirname "$0")/../../../lib.sh"
export TZ=UTC
perf script -i "$DATA/hogs.data" --ns -G -F tid,cpu,time,event,trace 2>/dev/null |
	sed -E 's/^ *([0-9]+) +\[0*([0-9]+)\] +([0-9]+)\.([0-9]+): +/\1 \2 \3\4 /' >"$TMP/text"

# latencies DATA PROFILER ARG...: the sorted measurements as "TIME LATENCY"
latencies() {
	local data=$1
	shift
	rm -f "$TMP"/map-*
	"$PROFSCRIPT" "$@" --heatmap "$TMP/map" --input "$data" >/dev/null 2>"$TMP/err" || echo "failed: $*"
	cat "$TMP"/map-* /dev/null 2>/dev/null | sort
}

# same NAME WANT GOT: differences go to $TMP/wrong with the options
same() {
	cmp -s "$2" "$3" || { echo "$1: ${args[*]}" && diff "$2" "$3" | head -5; } >>"$TMP/wrong"
}

: >"$TMP/wrong"
: >"$TMP/wrong-counts"
: >"$TMP/wrong-lossy"
relations=40
[[ $PROFSCRIPT != */asan/* ]] || relations=10 # it is slower, and these take the same paths
pairs=0 kept=0
for ((seed = 1; seed <= relations; seed++)); do
	luajit "$TOP/tests/tools/pairing.lua" $seed "$TMP/text" "$TMP" || echo "$seed" >>"$TMP/wrong"
	mapfile -t args <"$TMP/args"
	latencies "$DATA/hogs.data" multi-trace "${args[@]}" >"$TMP/got"
	same "pairs of $seed" "$TMP/pairs" "$TMP/got"
	pairs=$((pairs + $(wc -l <"$TMP/got")))

	"$PROFSCRIPT" multi-trace "${args[@]}" --impl pair --input "$DATA/hogs.data" 2>"$TMP/err" |
		sed -nE 's/sched://g; s/^[^ ]+ [^ ]+ ([a-z_]+) unpaired ([1-9][0-9]*)$/\1 \2/p; s/^[^ ]+ [^ ]+ ([a-z_]+ [a-z_]+) paired ([1-9][0-9]*)$/\1 \2/p
			s/^.* ([0-9]+) replaced by .*, ([0-9]+) ends without.*$/replaced \1 unstarted \2/p' >"$TMP/said"
	grep -q ^replaced "$TMP/said" || echo 'replaced 0 unstarted 0' >>"$TMP/said"
	same "counts of $seed" <(sort "$TMP/counts") <(sort "$TMP/said")

	luajit "$TOP/tests/tools/lose.lua" "$DATA/hogs.data" "$TMP/lossy.data" $((seed % 2 ? 10 : 50)) $seed >/dev/null
	latencies "$TMP/lossy.data" multi-trace "${args[@]}" >"$TMP/lossy"
	comm -13 "$TMP/pairs" "$TMP/lossy" >"$TMP/false"
	[ -s "$TMP/false" ] && { echo "$seed: ${args[*]}" && head -3 "$TMP/false"; } >>"$TMP/wrong-lossy"
	kept=$((kept + $(wc -l <"$TMP/lossy")))
done
check "$relations random relations pair by the rules, and count the rest" diff /dev/null "$TMP/wrong"
check 'there are pairs' test $pairs -ge $((25 * relations))
check "$relations random relations with lost events: no false pair" diff /dev/null "$TMP/wrong-lossy"
check 'some are left' test $kept -ge $((relations * 5 / 2)) -a $kept -lt $pairs

# The other analyses: the measurements from the rest of a recording are among those of the whole.
# lossy NAME DATA PROFILER ARG...
lossy() {
	local name=$1 data=$DATA/$2.data kept=0 seed
	shift 2
	args=("$@")
	: >"$TMP/wrong"
	latencies "$data" "$@" >"$TMP/whole"
	for seed in {1..8}; do
		luajit "$TOP/tests/tools/lose.lua" "$data" "$TMP/lossy.data" $((seed % 2 ? 10 : 50)) $seed >/dev/null
		latencies "$TMP/lossy.data" "$@" >"$TMP/lossy"
		comm -13 "$TMP/whole" "$TMP/lossy" >>"$TMP/wrong"
		kept=$((kept + $(wc -l <"$TMP/lossy")))
	done
	check "$name with lost events: no false measurement" diff /dev/null "$TMP/wrong"
	check "$name: some of the measurements are left" test $kept -ge 30 -a $kept -lt $((8 * $(wc -l <"$TMP/whole")))
}
lossy 'multi-trace of wakeups' hogs multi-trace -e sched:sched_wakeup//key=pid/ -e sched:sched_switch//key=next_pid/
lossy 'multi-trace of softirqs' timers multi-trace -e irq:softirq_entry -e irq:softirq_exit
lossy 'nested-trace' timers nested-trace -e irq:softirq_entry,irq:softirq_exit -e timer:timer_expire_entry,timer:timer_expire_exit
lossy 'syscalls' nap syscalls
lossy 'rundelay' hogs rundelay
lossy 'memory' allocs multi-trace -e kmem:kmalloc -e kmem:kfree -k ptr

# The bytes and objects of kmemprof are those of these pairs: the size of the allocation is in the whole recording.
perf script -i "$DATA/allocs.data" --ns -G -F time,event,trace 2>/dev/null |
	sed -nE 's/^ *([0-9]+)\.([0-9]+): +kmem:kmalloc: .* bytes_alloc=([0-9]+) .*/\1\2 \3/p' >"$TMP/sizes"
: >"$TMP/wrong"
for seed in {1..8}; do
	luajit "$TOP/tests/tools/lose.lua" "$DATA/allocs.data" "$TMP/lossy.data" $((seed % 2 ? 10 : 50)) $seed >/dev/null
	latencies "$TMP/lossy.data" multi-trace -e kmem:kmalloc -e kmem:kfree -k ptr |
		awk 'NR == FNR { size[$1] = $2; next } { n++; bytes += size[sprintf("%.0f", $1 - $2)] }
			END { print "alloc", bytes, n; print "free", bytes, n }' "$TMP/sizes" - >"$TMP/want"
	"$PROFSCRIPT" kmemprof -e kmem:kmalloc -e kmem:kfree --format json --input "$TMP/lossy.data" 2>/dev/null |
		sed -nE 's/.*"what":"(alloc|free)","bytes":([0-9]+),"objects":([0-9]+),"stack":null.*/\1 \2 \3/p' >"$TMP/got"
	args=("kmemprof")
	same "seed $seed" "$TMP/want" "$TMP/got"
done
check 'kmemprof with lost events: the bytes of the remaining pairs' diff /dev/null "$TMP/wrong"
expect_line 'and there are some' '^alloc [1-9][0-9]+ [1-9]' "$TMP/want"
