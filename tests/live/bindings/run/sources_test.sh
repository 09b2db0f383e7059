#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only
# Profilers as sources of events for others, on this kernel.
# Runs alone.
. "$(dirname "$0")/../../../lib.sh"
needs_tracepoint sched:sched_wakeup raw_syscalls:sys_enter
export PROFSCRIPT_PATH=$TOP/examples

count() { grep -c -- "$1" "$TMP/out"; }

"$PROFSCRIPT" trace -e "raw_syscalls:sys_enter/id==110/,trace/-e raw_syscalls:sys_exit --filter id==110 -N 20/" \
	-- "$TOP/build/workloads/syscalls" 1000 >"$TMP/out" 2>&1
expect_line 'events of both' '^1000 20$' <(echo "$(count 'sys_enter: NR 110 ')" "$(count 'sys_exit: NR 110 ')")
check 'in time order' sort -c -s -k1,2 <(cut -c1-26 "$TMP/out")

timeout 20 "$PROFSCRIPT" trace -e "trace/-e raw_syscalls:sys_enter -N 5/,trace/-e raw_syscalls:sys_exit -N 6/" >"$TMP/out" 2>&1
expect_line 'the run ends with the last of its sources' '^0$' <(echo $?)
expect_line 'and has all of their events' '^5 6$' <(echo "$(count sys_enter:)" "$(count sys_exit:)")

"$PROFSCRIPT" trace -e "raw_syscalls:sys_enter/id==110/,trace/-g -e raw_syscalls:sys_exit -N 1/" \
	-- "$TOP/build/workloads/syscalls" 3 >"$TMP/out" 2>&1
expect_line 'only the source records stacks' '^1$' <(grep -A1 ': raw_syscalls:' "$TMP/out" | grep -c '^    ')

# Page faults and samples of a program between its system calls, each printed by its own profiler.
cat >"$TMP/work.c" <<'C'
#include <sys/syscall.h>
#include <unistd.h>
int main(void)
{
	for (volatile long i = 0; i < 300000000; i++)
		;
	syscall(SYS_getppid);
	return 0;
}
C
if gcc -O1 -o "$TMP/work" "$TMP/work.c" 2>/dev/null; then
	"$PROFSCRIPT" trace -e 'raw_syscalls:sys_enter/id==110/,page-faults/-N 10/,profile/-F 500 -N 7/' --order \
		-- "$TMP/work" >"$TMP/out" 2>"$TMP/err"
	line='^[0-9-]{10} [0-9:]{8}\.[0-9]{6} +work +[0-9]+ \[[0-9]{3}\] [0-9]+\.[0-9]{6}: '
	expect_line 'page-faults, its first ten' '^10$' <(grep -Ec "${line}page-fault: addr [0-9a-f]{16} ip [^ ]+\$" "$TMP/out")
	expect_line 'profile, its first seven' '^7$' <(grep -Ec "${line}profile: [0-9]+ (cpu-cycles|ns)\$" "$TMP/out")
	expect_line 'the system call after them' ' raw_syscalls:sys_enter: NR 110 ' <(tail -n 1 "$TMP/out")
	check 'all in time order' sort -c -s -k1,2 <(cut -c1-26 "$TMP/out")
	"$PROFSCRIPT" exec -e 'profile/-F 500/,raw_syscalls:sys_enter/id==110/' 'count(ev._event)' --format csv \
		-- "$TMP/work" >"$TMP/out" 2>"$TMP/err"
	expect_line 'any profiler takes them' 'raw_syscalls:sys_enter,1$' "$TMP/out"
	expect_line 'any profiler takes them' '(cpu-clock|cycles),[0-9]{2,}$' "$TMP/out"
else
	skip 'sources that sample' 'no gcc'
fi

# Flame graphs that start again at each interval, of events that record stacks.
"$PROFSCRIPT" trace -e raw_syscalls:sys_enter -g --flame-graph "$TMP/calls" -i 20 -N 300 -q >"$TMP/out" 2>"$TMP/err"
expect_line 'trace -g --flame-graph -i' '^0$' <(echo $?)
expect_line 'has stacks' ';.* [0-9]+$' "$TMP/calls.folded"

# Samples during a long system call, from its start to its end.
cat >"$TMP/fill.c" <<'C'
#define _GNU_SOURCE
#include <sys/mman.h>
int main(void)
{
	return mmap(0, 256 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0) == MAP_FAILED;
}
C
if gcc -O1 -o "$TMP/fill" "$TMP/fill.c" 2>/dev/null; then
	"$PROFSCRIPT" multi-trace -e raw_syscalls:sys_enter \
		-e 'raw_syscalls:sys_exit,profile/-F 500 --watermark 50 -m 32 -g/untraced/' --order --than 5ms --detail=sametid \
		-- "$TMP/fill" >"$TMP/out" 2>"$TMP/err"
	sed -n '/sys_enter: NR 9 /,/sys_exit: NR 9 /p' "$TMP/out" >"$TMP/call"
	expect_line 'details of a pair: the samples of a source' '^[1-9]$|^[1-9][0-9]+$' \
		<(grep -Ec '^\|.* +fill +[0-9]+ \[[0-9]{3}\] [0-9.]+: profile: [0-9]+ (cpu-cycles|ns)$' "$TMP/call")
	expect_line 'with their stacks' ' [0-9a-f]{16} .*mm_populate\+0x' "$TMP/call"
	expect_line 'the source has no row in the table' '^1$' <(grep -c '^ *[a-z_:-]* => [a-z_:-]* *[0-9]' "$TMP/out")
fi
