#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only
# Stacks of events: the frames of a program with known functions, in text and JSON, live and from a recording by perf.
# Runs on an idle machine.
. "$(dirname "$0")/../../../lib.sh"
[ -r /sys/bus/event_source/devices/uprobe/type ] || skip_all 'the kernel has no uprobe PMU'
needs_tracepoint sched:sched_switch

probes=$TOP/build/workloads/probes
event="uprobe:probed_twice@\"$probes\""

# -O2 keeps no frame pointers: the function itself is certain, its callers are not.
"$PROFSCRIPT" trace -e "$event" -g -- "$probes" 20 >"$TMP/text"
check 'as many stacks as calls' test "$(grep -c ' probed_twice+0x0 (' "$TMP/text")" = 20
expect_line 'a frame' "^    [0-9a-f]{16} probed_twice\+0x0 \($probes\)\$" "$TMP/text"


"$PROFSCRIPT" trace -e "$event//stack/" --format json -- "$probes" 3 >"$TMP/json"
check 'JSON has the frames' test "$(grep -c '"stack":\["probed_twice+0x0 (' "$TMP/json")" = 3

"$PROFSCRIPT" exec -e "$event" -g 'count(ev._stack)' -- "$probes" 50 >"$TMP/count"
check 'the same stack has the same number' test "$(awk '$2 ~ /^[0-9]+$/ { n += $2 } END { print n }' "$TMP/count")" = 50
"$PROFSCRIPT" exec -e "$event" 'count(ev._stack + 0)' -- "$probes" 50 >"$TMP/count"
expect_line 'without stacks it is -1' '^ +-1 +50$' "$TMP/count"

# The kernel half alone, and a limited number of frames.
switch=sched:sched_switch/prev_pid\>0/max-stack=2/
"$PROFSCRIPT" trace -e "$switch" --no-user-callchain -N 20 >"$TMP/kernel"
check 'max-stack limits the frames' test "$(grep -c '^    ' "$TMP/kernel")" -le 40
check 'only kernel frames' test "$(grep '^    ' "$TMP/kernel" | grep -cv 'kernel.kallsyms\|\[[a-z0-9_]*\])$')" = 0
check_status 'no half of the stacks is left' 2 "$PROFSCRIPT" trace -e sched:sched_switch -g --no-user-callchain --no-kernel-callchain

# A process that has ended, and one that has since executed another program, keep their names.
"$PROFSCRIPT" trace -e "$event" -g --watermark 90 -- bash -c "$probes 5; exec $probes 5" >"$TMP/ended"
check 'stacks of tasks that have ended' test "$(grep -c ' probed_twice+0x0 (' "$TMP/ended")" = 10

# A BPF program that was loaded after the start, and is unloaded when the stacks are printed.
if [ -d /sys/kernel/tracing/events/bpf_trace ] && "$TOP/build/workloads/bpf" 1 2>/dev/null; then
	"$PROFSCRIPT" trace -e bpf_trace:bpf_trace_printk -g --watermark 90 -- "$TOP/build/workloads/bpf" 3 >"$TMP/bpf"
	check 'BPF programs' test "$(grep -c ' bpf_prog_[0-9a-f]*_traced+0x[0-9a-f]* (\[bpf\])$' "$TMP/bpf")" = 3
	if perf record -q -a -g -o "$TMP/data" -e bpf_trace:bpf_trace_printk -- "$TOP/build/workloads/bpf" 3 2>/dev/null; then
		"$PROFSCRIPT" trace -e bpf_trace:bpf_trace_printk -g --input "$TMP/data" >"$TMP/bpf"
		check 'BPF programs of a recording' test "$(grep -c ' bpf_prog_[0-9a-f]*_traced+0x[0-9a-f]* (' "$TMP/bpf")" = 3
	fi
else
	skip 'BPF programs' 'no BPF programs on tracepoints, or no tracepoint bpf_trace:bpf_trace_printk'
fi

# While execve() fills the new program's memory, the calling program no longer exists.
if "$PROFSCRIPT" trace -e exceptions:page_fault_kernel -g -- bash -c '/bin/true; /bin/true' >"$TMP/execve" 2>/dev/null; then
	check 'the caller of execve has a name' grep -q ' [a-zA-Z_]*execve+0x' <(grep -v kallsyms "$TMP/execve")
else
	skip 'the caller of execve' 'no tracepoint exceptions:page_fault_kernel'
fi

# The same frames as perf: kernel, libraries with all their names, stubs of the linker, the vdso, tasks in the middle of
# execve(). perf prints the return address of a call even if that is in the next function, versions of symbols, and, for
# a program without frame pointers, values that are not addresses.
frames='
/^[ \t]+[0-9a-f]+ [^ ].*\)$/ {
	if (length($1) > 12 && $1 !~ /^(0000|ffff)/) next # beyond what a program can have
	sub(/^[ \t]+[0-9a-f]+ /, ""); sub(/@@?[A-Z][A-Za-z0-9_.]*\+/, "+"); gsub(/\[unknown\]/, "Unknown"); sub(/\(Unknown\)/, "(unknown)")
	print n " " $0; next
}
/[^ \t]/ { n++ }'
# What perf does not know, and the function that follows a call that never returns: every stack of the idle task has it.
no_measure=' Unknown \(unknown\)$|\+0x0 \('
same_as_perf() { # NAME EVENT RECORD_ARG...
	local name=$1 event=$2 all same
	shift 2
	if ! perf record -q -g -o "$TMP/data" -e "$event" "$@" >/dev/null 2>&1; then
		skip "$name" 'perf cannot record stacks here'
		return
	fi
	perf script --no-inline -F comm,tid,time,ip,sym,symoff,dso -i "$TMP/data" 2>/dev/null |
		awk "$frames" | grep -Ev "$no_measure" >"$TMP/perf"
	"$PROFSCRIPT" trace -e "$event" --input "$TMP/data" -g | awk "$frames" >"$TMP/ours"
	diff "$TMP/perf" "$TMP/ours" >"$TMP/differ"
	all=$(wc -l <"$TMP/perf")
	same=$((all - $(grep -c '^<' "$TMP/differ")))
	check "$name: perf has frames" test "$all" -ge 500
	check "$name: $same of $all frames match perf's" test $((same * 100)) -ge $((all * 99))
}
# An address of the kernel may have several names, such as that of a system call.
same_as_perf 'switches' sched:sched_switch -- "$TOP/build/workloads/yields" 500
check 'perf has frames of the system call' test "$(grep -c sched_yield "$TMP/perf")" -ge 100
check "the kernel frames match perf's" diff <(grep kallsyms "$TMP/perf") <(grep kallsyms "$TMP/ours")
same_as_perf 'system calls of shells' raw_syscalls:sys_enter -- \
	bash -c 'for i in 1 2 3 4 5; do ls -l /usr/bin >/dev/null; x=$(date); done'
same_as_perf 'samples' cpu-clock -F 4000 -- \
	bash -c 'for i in $(seq 3000); do x=$x$i; printf -v y "%d %s" "$i" "${x: -9}"; done; ls / | sort >/dev/null'
same_as_perf 'all cpus' sched:sched_switch -a -- "$TOP/build/workloads/pingpong" 2000
