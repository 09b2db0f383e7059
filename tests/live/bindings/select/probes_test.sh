#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only
# Filters, expressions and probes on this kernel where size or names make them hard; whose words are whose.
. "$(dirname "$0")/../../../lib.sh"
needs_tracepoint raw_syscalls:sys_enter sched:sched_process_exec
GETPPID=syscalls:sys_enter_getppid
syscalls=$TOP/build/workloads/syscalls
cd "$TMP" || exit 1

# counted NAME N: out, a table of exec, says N
counted() {
	echo "expected $2" >>out
	result "$(($(sed -n 's/^.*[ ,]\([0-9][0-9]*\)$/\1/p' out | tail -n 1 | grep -c "^$2\$") == 0))" "$1" out
}

# A list of processes that is longer than the kernel's filters may be.
workload syscalls 1000
ids=common_pid==$WORKLOAD
for ((i = 3; i < 2400; i += 7)); do ids+="||common_pid==$((4194303 - i))"; done
"$PROFSCRIPT" exec -e "$GETPPID/$ids/" 'count()' -N 1000 >out 2>&1 &
tracer=$!
wait_ready $tracer
go
wait $tracer
counted "a filter of ${#ids} characters" 1000

# A payload of some hundred bytes.
deep=$(printf 'd%.0s' {1..200})/$(printf 'e%.0s' {1..200})
mkdir -p "$deep"
cp /bin/true "$deep/true"
"$PROFSCRIPT" trace -e 'sched:sched_process_exec/filename ~ "*eee/true" && pid*1>0/' -- "$deep/true" >out 2>&1
expect_line 'an expression on a long payload' "filename=$deep/true pid=" out
"$PROFSCRIPT" exec -e sched:sched_process_exec 'print(#ev.filename)' -- "$deep/true" >out 2>&1
expect_line 'all of it is there' "^$((${#deep} + 5))\$" out

# The words of a workload are its own, and so is standard input.
expect_line 'words behind a workload' '^-N 1 -o hi$' <("$PROFSCRIPT" exec -e $GETPPID 'count()' echo -N 1 -o hi)
expect_line 'with -- too' '^-N 1 -o hi$' <("$PROFSCRIPT" exec -e $GETPPID 'count()' -- echo -N 1 -o hi)
PATH=/no/a:/no/b:/no/c:$PATH "$PROFSCRIPT" exec -e syscalls:sys_exit_execve 'count(ev.ret)' --format csv -- true >out 2>&1
expect_line 'looking for the program is no part of it' '^1 ' <(grep -c '^count(ev.ret),' out | tr '\n' ' ')
expect_line 'starting it is' '^count\(ev.ret\),[0-9.]+,0,1$' out
"$PROFSCRIPT" exec -e $GETPPID 'count()' --duration 0.5 < <(sleep 2) >out 2>&1 &
tracer=$!
wait_ready $tracer
flags=$(awk '/^flags/ { print $2 }' /proc/$tracer/fdinfo/0)
check "standard input still blocks ($flags)" test $((8#$flags & 8#4000)) -eq 0
wait $tracer

# Functions of a library that is not executable, as C++ has their names.
cat >shape.c <<'C'
int area(int x) __asm__("_ZN5shape4areaEi");
int area(int x) { return x * x; }
C
cat >use.c <<'C'
int area(int x) __asm__("_ZN5shape4areaEi");
int main(void)
{
	for (int i = 1; i <= 100; i++)
		area(i);
	return 0;
}
C
if [ -r /sys/bus/event_source/devices/uprobe/type ] && gcc -O1 -shared -fPIC -o libshape.so shape.c 2>/dev/null &&
	gcc -O1 -o use use.c -L. -lshape -Wl,-rpath,"$TMP"; then
	chmod 644 libshape.so
	for name in _ZN5shape4areaEi shape::area 'shape::area(int)'; do
		"$PROFSCRIPT" trace -e "uprobe:\"$name\"@\"$TMP/libshape.so\"" -- ./use >out 2>&1
		echo "$(grep -c "uprobe:$name: " out)" >n
		expect_line "a probe of $name" '^100$' n
	done
	"$PROFSCRIPT" trace -e "uprobe:shape::area@\"$TMP/libshape.so\"(x=%di:s32)/x > 98/" -- ./use >out 2>&1
	expect_line 'with its arguments' 'uprobe:shape::area: .*x=100$' out
	expect_line 'and a filter of them' '^2$' <(grep -c uprobe: out)
	"$PROFSCRIPT" trace -e "uprobe:shape::aera@\"$TMP/libshape.so\"" -- ./use >out 2>&1
	expect_line 'a misspelt one' "no function 'shape::aera' in " out
else
	skip 'probes of a library' 'no uprobe PMU, or no gcc'
fi

# Breakpoints of the hardware.
cat >watch.c <<'C'
volatile int watched;
int main(void)
{
	for (int i = 0; i < 100; i++)
		watched = i;
	return watched != 99;
}
C
if [ -e /sys/bus/event_source/devices/breakpoint ] && gcc -O1 -no-pie -o watch watch.c 2>/dev/null &&
	perf stat -e mem:0x1000 true >/dev/null 2>&1; then
	address=0x$(nm watch | awk '$3 == "watched" { print $1 }')
	"$PROFSCRIPT" exec -e "mem:$address/4:w" 'count(ev._pid)' --exclude-kernel -- ./watch >out 2>&1
	counted 'a breakpoint on writes' 100
	"$PROFSCRIPT" exec -e "mem:$address/4:rw" 'count(ev._pid)' --exclude-kernel -- ./watch >out 2>&1
	counted 'on reads and writes' 101
	"$PROFSCRIPT" exec -e "mem:0x$(nm watch | awk '$3 == "main" { print $1 }'):x" 'count(ev._pid)' -- ./watch >out 2>&1
	counted 'on execution' 1
	five=$(for i in 0 4 8 12 16; do printf 'mem:%d:w,' $((address + i)); done)
	"$PROFSCRIPT" trace -e "${five%,}" -- ./watch >out 2>&1
	expect_line 'more than the CPU has' "^profscript: this CPU has no breakpoint left for mem:$((address + 16)):w$" out
	"$PROFSCRIPT" breakpoint "$address/4" --exclude-kernel -- ./watch >out 2>&1
	expect_line 'a line for each access' '^100$' <(grep -c ": breakpoint: $address/4:W ip main+0x" out)
	expect_line 'with its registers' '^ +RIP: 0{10}[0-9a-f]{6} RSP: [0-9a-f]{16} RFLAGS:[0-9a-f]{8}$' out
	"$PROFSCRIPT" breakpoint "$address/4" --exclude-kernel -q -- ./watch >out 2>&1
	expect_line 'or just the lines' '^100$' <(grep -c . out)
	"$PROFSCRIPT" breakpoint "$address/4" --exclude-kernel --count -- ./watch >out 2>&1
	expect_line 'or their number' "^$address/4:W +[0-9]+ watch +main\\+0x[0-9a-f]+ +100\$" out
	expect_line 'no place' "breakpoint: 'no_such_symbol' is neither an address" <("$PROFSCRIPT" breakpoint no_such_symbol 2>&1)
	"$PROFSCRIPT" trace -e "raw_syscalls:sys_enter/id==231/,breakpoint/\"$address/4:w -N 7 --exclude-kernel\"/" \
		-- ./watch >out 2>&1
	expect_line 'as a source of others' '^7$' <(grep -c ": breakpoint: $address/4:W ip main+0x" out)
	expect_line 'in the order of time' 'sys_enter: NR 231 ' <(tail -n 1 out)
	expect_line 'with its registers too' '^7$' <(grep -cE '^ +RIP: 0{10}[0-9a-f]{6} RSP: ' out)
	"$PROFSCRIPT" multi-trace -e raw_syscalls:sys_exit -e "raw_syscalls:sys_enter/id==231/,breakpoint/\"$address/4:w --exclude-kernel\"/" \
		--lower 100s --detail -- ./watch >out 2>&1
	expect_line 'in details' '^100$' <(grep -cE "^\|.* watch .*: breakpoint: $address/4:W ip main\+0x" out)
	expect_line 'with what the registers were then' '^100$' <(grep -E '^ +RIP: ' out | grep -cE 'RIP: 0{10}[0-9a-f]{6} RSP: ')
	"$PROFSCRIPT" multi-trace -e raw_syscalls:sys_enter -e "raw_syscalls:sys_exit,breakpoint/\"$address/4:w\" --exclude-kernel -N 3 -q/trigger/" \
		-- ./watch >triggered 2>&1
	expect_line 'as triggers of reports, without their registers' '^3 1 0$' <(echo "$(grep -c ' breakpoint: ' triggered)" \
		"$(grep -c 'start => end' triggered)" "$(grep -c 'RIP: ' triggered)")
	expect_line 'one after the other' '^100$' <(grep -E '^ +RAX: ' out | sort -u | wc -l)
	expect_line 'a bad one' "bad event 'mem:0x1000/3:w': '3' is no length" <("$PROFSCRIPT" breakpoint 4096/3 2>&1)
	expect_line 'too many' 'breakpoint: up to 4 breakpoints are supported' <("$PROFSCRIPT" breakpoint 1 2 3 4 5 2>&1)
else
	skip 'breakpoints' 'no hardware breakpoints, or no gcc'
fi
