#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only
# Stacks of programs without frame pointers (--call-graph dwarf): the whole known call chain, live, of programs that
# have ended, from signal handlers, and from recordings by perf with perf's frames.
# Runs alone.
. "$(dirname "$0")/../../../lib.sh"
needs_tracepoint raw_syscalls:sys_enter
[ "$(uname -m)" = x86_64 ] || skip_all 'stacks are unwound on x86-64 only'

deep=$TOP/build/workloads/deep
event=raw_syscalls:sys_enter/id==110/
chain='syscall deep_0 deep_1 deep_2 deep_3 deep_4 deep_5 deep_6 deep_7 deep_8 deep_9 '
# The names of each stack in one line.
names='/^ +[0-9a-f]+ [^ ].*\)$/ { sub(/\+0x.*/, "", $2); line = line $2 " "; next }
	{ if (line) print line; line = "" } END { print line }'

"$PROFSCRIPT" trace -e "$event" --call-graph dwarf --no-kernel-callchain -- "$deep" 20 >"$TMP/text"
awk "$names" "$TMP/text" >"$TMP/stacks"
check 'the whole chain of all calls' test "$(grep -c "^$chain" "$TMP/stacks")" = 20
check 'from main on' test "$(grep -c "^${chain}main " "$TMP/stacks")" = 10
check 'out of a signal handler' test "$(grep -c "^$chain\(on_signal \|\)[_a-z]*restore_rt .*raise main " "$TMP/stacks")" = 10
"$PROFSCRIPT" trace -e "$event" --call-graph fp --no-kernel-callchain -- "$deep" 20 >"$TMP/fp"
check 'frame pointers do not lead there' test "$(awk "$names" "$TMP/fp" | grep -c "^$chain")" = 0

# Programs in the kernel walk by tables. The process is there before the run, so all of its stacks are walked.
workload deep 20
start trace -v -e "$event" --call-graph tables -p "$WORKLOAD"
go
wait $tracer
awk "$names" "$TMP/out" | sed 's/^\([^ ]* \)*syscall deep_0/syscall deep_0/' >"$TMP/stacks"
check 'tables in the kernel: the whole chain of all calls' test "$(grep -c "^$chain" "$TMP/stacks")" = 20
check 'tables in the kernel: down to _start' test "$(grep -c "^${chain}main .*_start $" "$TMP/stacks")" = 10
check 'tables in the kernel: out of a signal handler' test "$(grep -c "^$chain\(on_signal \|\)[_a-z]*restore_rt .*raise main " "$TMP/stacks")" = 10
expect_line 'tables in the kernel: what was found' 'walks: 20 whole, 0 cut, 0 of processes whose tables were not there' "$TMP/err"

# By default: tables lead out of libc, which has no frame pointers, and then the kernel's chain on to main, 4 KiB away.
callers=$TOP/build/workloads/callers
for graph in '' =hybrid =fp =dwarf; do
	"$PROFSCRIPT" trace -e "$event" --call-graph$graph --no-kernel-callchain -- "$callers" 20 >"$TMP/text" 2>"$TMP/err"
	count=$(awk "$names" "$TMP/text" | grep -c "^syscall inner outer main ")
	case $graph in
	=fp) check 'frame pointers alone skip the caller of libc' test "$count" = 0 ;;
	*) check "the caller of libc with --call-graph$graph" test "$count" = 20 ;;
	esac
	check "no stack is cut with --call-graph$graph" [ ! -s "$TMP/err" ]
done
"$PROFSCRIPT" exec -m 1024 -e "$event" -g --no-kernel-callchain 'count(ev._stack)' -- "$callers" 3000 >"$TMP/count" 2>"$TMP/err"
check 'the same stack each time' test "$(grep -c ': 3000$' "$TMP/count")" = 1
"$PROFSCRIPT" profile -F 997 -g --no-kernel-callchain --flame-graph "$TMP/cpu.folded" -- "$deep" 300000 >/dev/null 2>&1
check 'profiles reach main without frame pointers' awk '{ all += $NF } /;main;/ { whole += $NF }
	END { exit !(all >= 20 && whole * 10 >= all * 9) }' "$TMP/cpu.folded"

"$PROFSCRIPT" trace -e "$event" --call-graph dwarf --watermark 90 -- bash -c "$deep 4; exec $deep 4" >"$TMP/ended"
check 'programs that have ended' test "$(awk "$names" "$TMP/ended" | grep -c "$chain")" = 8
"$PROFSCRIPT" exec -e "$event" --call-graph dwarf 'count(ev._stack)' -- "$deep" 100 >"$TMP/count"
check 'the same stack has the same number' test "$(awk '$2 == 50' "$TMP/count" | wc -l)" = 2
"$PROFSCRIPT" trace -e "$event" --call-graph dwarf -N 4 --kernel-callchain -- "$deep" 4 >"$TMP/both"
expect_line 'the kernel half is there too' ' entry_SYSCALL_64|do_syscall_64' "$TMP/both"

"$PROFSCRIPT" trace -e "$event" --call-graph dwarf --no-kernel-callchain --flame-graph "$TMP/deep.folded" -- "$deep" 20 >/dev/null 2>&1
expect_line 'flame graphs have it' ';main;deep_9;deep_8;deep_7;deep_6;deep_5;deep_4;deep_3;deep_2;deep_1;deep_0;syscall 10$' "$TMP/deep.folded"

# 256 bytes are not enough for ten frames, which is reported.
"$PROFSCRIPT" trace -e "$event" --call-graph dwarf,256 -- "$deep" 10 >"$TMP/cut" 2>"$TMP/err"
expect_line 'truncated stacks' '^trace: unwound 10 stacks: 10 exceed the copied size' "$TMP/err"
"$PROFSCRIPT" trace -v -e "$event" --call-graph dwarf -- "$deep" 10 >"$TMP/whole" 2>"$TMP/err"
expect_line 'with -v also if none was truncated' '^trace: unwound 10 stacks: 0 exceed the copied size, 0 end' "$TMP/err"
expect_line 'and the memory used' '^profscript: stacks: [0-9]+ distinct, .* unwind tables: [0-9.]+ MiB' "$TMP/err"

# perf's frames, as far as it gets: it stops where the dynamic linker or a program without symbols is not the file that
# it has read last.
frames='
/^[ \t]+[0-9a-f]+ [^ ].*\)$/ {
	if (length($1) > 12 && $1 !~ /^(0000|ffff)/) next
	sub(/^[ \t]+[0-9a-f]+ /, ""); sub(/(@@?[A-Z][A-Za-z0-9_.]*)?\+0x[0-9a-f]+ \(/, " (")
	gsub(/\[unknown\]/, "Unknown"); sub(/\(Unknown\)/, "(unknown)")
	print n " " ++frame " " $0; next
}
/[^ \t]/ { n++; frame = 0 }'
same_as_perf() { # NAME RECORD_ARG...
	local name=$1 all same
	shift
	if ! perf record -q --call-graph dwarf -o "$TMP/data" "$@" >/dev/null 2>&1; then
		skip "$name" 'perf cannot record stacks here'
		return
	fi
	perf script --no-inline -F comm,tid,time,ip,sym,symoff,dso -i "$TMP/data" 2>/dev/null |
		awk "$frames" | grep -v ' Unknown (' >"$TMP/perf"
	"$PROFSCRIPT" trace -e "$(perf evlist -i "$TMP/data" | sed -n '1s/\/.*//p;1!d;s/:[a-zA-Z]*$//;1p' | head -1)" \
		--input "$TMP/data" -g 2>/dev/null | awk "$frames" >"$TMP/ours"
	all=$(wc -l <"$TMP/perf")
	same=$(sort "$TMP/perf" | comm -12 - <(sort "$TMP/ours") | wc -l)
	check "$name: perf has frames" test "$all" -ge 500
	check "$name: $same of $all frames of perf are ours" test $((same * 100)) -ge $((all * 99))
	check "$name: as many frames" test "$(wc -l <"$TMP/ours")" -ge "$same"
}
same_as_perf 'known chain' -e raw_syscalls:sys_enter -- "$deep" 100
same_as_perf 'shells' -e cpu-clock -F 4000 -- \
	bash -c 'for i in $(seq 3000); do x=$x$i; printf -v y "%d %s" "$i" "${x: -9}"; done; ls / | sort >/dev/null'

# A recording has what is requested, and reports what it does not have.
if perf record -q --call-graph dwarf -o "$TMP/data" -e raw_syscalls:sys_enter -- "$deep" 4 2>/dev/null; then
	of_recording() { "$PROFSCRIPT" trace -e "$event" -g --input "$TMP/data" "$@" | grep -c ' deep_0+0x\| entry_SYSCALL_64_after_hwframe+0x'; }
	check 'both halves' test "$(of_recording)" = 8
	check 'the kernel half' test "$(of_recording --no-user-callchain)" = 4
	check 'the user half' test "$(of_recording --no-kernel-callchain)" = 4
	perf record -q -g -o "$TMP/data" -e raw_syscalls:sys_enter -- "$deep" 4 2>/dev/null
	check_status 'no copies of stacks' 1 "$PROFSCRIPT" trace -e "$event" --call-graph dwarf --input "$TMP/data"
	expect_line 'that is reported' 'contains no stack copies of .* to unwind; use perf record --call-graph dwarf$' "$TMP/.check"
fi
