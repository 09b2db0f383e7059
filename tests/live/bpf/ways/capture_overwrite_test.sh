#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# --overwrite with events that BPF programs capture: the newest ones are whole and in order, as with perf, and what
# happens while the rings are paused is counted as lost.
# Runs on an idle machine.
. "$(dirname "$0")/../../../lib.sh"
needs_tracepoint raw_syscalls:sys_enter irq:softirq_entry
syscalls=$TOP/build/workloads/syscalls
calls=raw_syscalls:sys_enter/id==$GETPPID/
CHAINED=$TOP/tests/tools/chained.lua

"$PROFSCRIPT" trace -e "$calls" --overwrite --capture bpf --duration 1ms >"$TMP/out" 2>"$TMP/err" ||
	skip_all "$(sed -n '1s/.*not possible: //p' "$TMP/err")"
"$PROFSCRIPT" trace -e "$calls" --overwrite --capture bpf --dry-run >"$TMP/out"
expect_line 'the plan tells it' 'sys_enter: .*captured by a BPF program' "$TMP/out"

# numbers: the numbers of the calls that were printed, in hex
numbers() { sed -n "s/.*sys_enter: NR $GETPPID (\([0-9a-f]*\),.*/\1/p" "$TMP/out"; }

# newest NAME COUNT: the numbers are consecutive up to COUNT, and in $n is how many there are
newest() {
	local want
	n=$(numbers | wc -l)
	want=$(seq $(($2 - n)) $(($2 - 1)) | xargs printf '%x\n')
	check "$1: the newest, in order" test "$n" -gt 10 -a "$(numbers)" = "$want"
}

for how in perf bpf; do
	"$PROFSCRIPT" trace --overwrite --capture $how -m 1024 -e "$calls" -- "$syscalls" 5000 >"$TMP/out"
	newest "$how: all that fits" 5000
	check "$how: that is all" test "$n" -eq 5000
done

# The rings of both have the same size, and so have the records.
for pages in 1 4 64; do
	for how in perf bpf; do
		workload -C 0 syscalls 20000
		trace_workload trace --overwrite --capture $how -m $pages -C 0 -v \
			-e "raw_syscalls:sys_enter/id == $GETPPID && common_pid == $WORKLOAD/"
		newest "-m $pages: $how" 20000
		check "-m $pages: $how: nothing is lost" grep -q "^profscript: $n events, 0 lost, 0 late" "$TMP/err"
		eval "of_$how=$n"
	done
	# shellcheck disable=SC2154 # set by eval
	check "-m $pages: perf keeps $of_perf events, and BPF $of_bpf" test "$of_perf" -eq "$of_bpf"
done

# Dumps: nothing is printed twice, and what is not printed is lost.
for target in -a -p; do
	workload syscalls 300000
	[ $target = -a ] && target=(-e "raw_syscalls:sys_enter/id == $GETPPID && common_pid == $WORKLOAD/") ||
		target=(-e "$calls" -p "$WORKLOAD")
	trace_workload trace --overwrite --capture bpf -i 10 -v -m 4096 "${target[@]}"
	read -r seen lost < <(sed -n "s/^profscript: \([0-9]*\) events, \([0-9]*\) lost, 0 late$/\1 \2/p" "$TMP/err")
	check "${target[*]: -2}: $seen seen, $lost lost" test $((seen + lost)) -eq 300000 -a "$seen" -gt 0
	check 'those that were seen, once and in order' bash -c "! sed -n 's/.*sys_enter: NR $GETPPID (\([0-9a-f]*\),.*/0x\1/p' '$TMP/out' |
		xargs printf '%08d\n' | sort -c -u 2>&1 | grep ."
done

# Rings that are overwritten many times between two dumps, and programs that interrupt others.
for pages in 1 8 256; do
	workload -C 0 syscalls 1000000
	trace_workload "$CHAINED" --overwrite --capture bpf -i 50 -m $pages -v \
		-e "raw_syscalls:sys_enter/id == $GETPPID && common_pid == $WORKLOAD/"
	# A CPU may stop for long between an event's time and its record, which then comes after its successors.
	late=$(sed -n 's/^profscript: .* \([0-9]*\) late$/\1/p' "$TMP/err")
	read -r dumps _ n _ others _ _ _ broken _ early _ < <(grep ' dumps, ' "$TMP/out")
	check "-m $pages: $dumps dumps, $n calls, $others others, $late late: none is missing" \
		test "$n" -gt 0 -a "$early" -le "$late" -a "$broken" -le $((4 * late)) -a "$late" -le "$dumps"
done

# The stacks of the newest calls: all the same, but for the tracer's own function.
for how in perf bpf; do
	"$PROFSCRIPT" trace --overwrite --capture $how -m 4 -e "$calls" -g --no-user-callchain \
		-- taskset -c 0 "$syscalls" 5000 >"$TMP/out"
	newest "$how: with stacks" 5000
	sed -n 's/^ *[0-9a-f]* \([^ ]*+0x[0-9a-f]*\) .*/\1/p' "$TMP/out" | grep -v __traceiter | sort | uniq -c |
		awk -v n="$n" '{ print $2, $1 - n }' >"$TMP/$how"
done
check 'the same stacks' diff "$TMP/perf" "$TMP/bpf"
check 'one for each call' awk '$2 != 0 { bad = 1 } END { exit bad || !NR }' "$TMP/bpf"

# Events of single threads: perf has a ring for each of them.
"$PROFSCRIPT" trace --overwrite --no-inherit -e "$calls" --dry-run -v -- "$syscalls" 1 >"$TMP/out" 2>&1
expect_line 'a ring for each thread' 'read through perf: --overwrite keeps the newest events of each thread' "$TMP/out"
workload syscalls 5000
trace_workload trace --overwrite --capture bpf -m 1024 -e "$calls" -t "$WORKLOAD"
newest 'unless the rings may be those of CPUs' 5000

# What is computed from the events is computed from those that are left.
cat >"$TMP/counts.lua" <<END
return {
  summary = 'Count the newest calls',
  options = { overwrite = { type = 'flag', help = 'the rings are overwritten' } },
  start = function(opt, out)
    local n = 0
    return { [opt.event[1][1]] = function() n = n + 1 end, stop = function() out:print(n) end }
  end,
}
END
for how in '' --overwrite; do
	"$PROFSCRIPT" "$TMP/counts.lua" $how -m 16 -v -e "$calls" \
		-- taskset -c 0 "$syscalls" 5000 >"$TMP/out$how" 2>"$TMP/err$how"
done
expect_line 'all calls' '^5000$' "$TMP/out"
expect_line 'the newest calls' '^[1-9][0-9]{2}$' "$TMP/out--overwrite"
expect_line 'which are not counted in the kernel' 'captured one by one: --overwrite' "$TMP/err--overwrite"
