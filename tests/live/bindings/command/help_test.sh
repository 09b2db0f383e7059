#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only
# What profscript says about itself and the machine, the events of perf, and the shell's completion.
. "$(dirname "$0")/../../../lib.sh"
needs_tracepoint sched:sched_switch raw_syscalls:sys_enter
cd "$TMP" || exit 1

# fails NAME STATUS REGEX ARG...: ends with the status, prints nothing but lines that match
fails() {
	local name=$1 want=$2 regex=$3 status
	shift 3
	"$PROFSCRIPT" "$@" >out 2>err
	status=$?
	[ $status -eq "$want" ] && [ ! -s out ] && grep -Eq -- "$regex" err
	result $? "$name" err
}

# The format file is what the help must say.
"$PROFSCRIPT" trace -e sched:sched_switch help >help
expect_line 'help' '^  profscript trace -e sched:sched_switch \[--allow-exec\] \[--overwrite\]$' help
expect_line 'help' "^sched:sched_switch: id $(</sys/kernel/tracing/events/sched/sched_switch/id)\$" help
sed -nE 's/.*field:.*[ *]([a-z_]+)(\[.*)?;\toffset:([0-9]+);\tsize:([0-9]+);.*/\1 \3 \4/p' \
	/sys/kernel/tracing/events/sched/sched_switch/format | sort >want
"$PROFSCRIPT" -e sched:sched_switch help --format csv | awk -F, 'NR > 1 { print $4, $6, $7 }' | sort >got
check 'all fields with offset and size' diff want got
expect_line 'every profiler that takes events' '^  profscript multi-trace -e cs$' \
	<("$PROFSCRIPT" -e cs help | sed 's/ \[-k.*//')
"$PROFSCRIPT" -e sched:sched_switch//key=next_pid/ help >help
check 'only profilers that read the attributes' bash -c '! grep -q "^  profscript trace" help'
expect_line 'help of a profiler' '^usage: profscript trace ' <("$PROFSCRIPT" help trace)
fails 'help of no event' 2 "did you mean 'sched:sched_switch'" trace -e sched:sched_swich help
fails 'an attribute that is not read' 2 "does not use the attribute 'key' at column 21; it knows alias, " \
	trace -e sched:sched_switch//key=pid/
fails 'an attribute that is misspelt' 2 "did you mean 'stack'" trace -e sched:sched_switch//stak/

# list
"$PROFSCRIPT" list >list
check 'list has all tracepoints' bash -c "! grep -vxF -f list /sys/kernel/tracing/available_events"
check 'and no others' bash -c "! grep -v ' \\[\|^ftrace:' list | grep -vxF -f /sys/kernel/tracing/available_events"
check 'in order' bash -c "grep -v ' \\[' list | LC_ALL=C sort -c"
expect_line 'list by a part' '^sched:sched_wakeup_new$' <("$PROFSCRIPT" list ched_wakeup_n)
expect_line 'list' '^page-faults +\[software event\]$' list
fails 'list nothing' 1 "^profscript: no event matches 'no_such'" list no_such

# Each page of this program's memory faults once.
cat >touch.c <<'C'
#include <stdlib.h>
int main(void)
{
	volatile char *p = aligned_alloc(4096, 1000 * 4096);
	for (int i = 0; i < 1000; i++)
		p[i * 4096] = 1;
}
C
if gcc -O1 -o touch touch.c 2>/dev/null; then
	"$PROFSCRIPT" exec -e minor-faults 'count()' --format csv -- ./touch >out
	n=$(tail -n 1 out | sed 's/.*,//')
	check "page faults are counted one by one ($n)" test "$n" -ge 1000 -a "$n" -lt 1500
	"$PROFSCRIPT" exec -e minor-faults//period=10/ 'count()' --format csv -- ./touch >out
	n=$(tail -n 1 out | sed 's/.*,//')
	check "every tenth ($n)" test "$n" -ge 100 -a "$n" -lt 150
fi
# The samples' periods add up to the time that the program has used.
spin='for ((i = 0; i < 500000; i++)); do :; done; read -r _ _ _ _ _ _ _ _ _ _ _ _ _ user sys _ </proc/self/stat
	echo $((user + sys)) >ticks'
"$PROFSCRIPT" exec -e task-clock//freq=200/ 'sum(ev._period)' --format csv -- bash -c "$spin" >out
n=$(tail -n 1 out | sed 's/.*,//')
used=$(($(<ticks) * 1000000000 / $(getconf CLK_TCK)))
check "a clock sampled by frequency adds up to its time ($n of $used ns)" \
	test "${n%.*}" -ge $((used / 2)) -a "${n%.*}" -lt $((used * 3 / 2 + 50000000))
expect_line 'the period is printed' ': cpu-clock: 1000000$' \
	<("$PROFSCRIPT" trace -e cpu-clock/period=1000000/ -N 3 -- bash -c "$spin")
expect_line 'a period of time' ': cpu-clock: 2000000$' \
	<("$PROFSCRIPT" trace -e cpu-clock --period 2ms -N 3 -- bash -c "$spin")
fails 'no such event' 2 "neither a tracepoint.*did you mean 'cpu-clock'" trace -e cpu-clok
fails 'too fast' 2 'above kernel.perf_event_max_sample_rate' trace -e cpu-clock//freq=900000000/
fails 'either' 2 'either period or freq' trace -e cpu-clock//freq=9/period=9/
if compgen -G '/sys/bus/event_source/devices/cpu*' || compgen -G '/sys/bus/event_source/devices/arm*'; then
	skip 'events without their PMU' 'this machine has a hardware PMU'
else
	fails 'an event without its PMU' 1 "'cycles' needs a hardware PMU, and this machine has none" trace -e cycles
	fails 'a raw event without its PMU' 1 "'r1a8' needs a hardware PMU" trace -e r1a8
fi
if [ -d /sys/bus/event_source/devices/msr/format ]; then
	fails 'an unknown term' 2 "PMU msr has no term 'tsx'; did you mean 'tsc'\\? at column 5" trace -e msr/tsx/
fi

# expr
"$PROFSCRIPT" expr -e sched:sched_switch '(next_pid << 1) - (next_pid * 2) - 1' -N 1 >out
expect_line 'expr' '^type: int$' out
expect_line 'expr' '^  pid_t next_pid +offset [0-9]+, 4 bytes, signed$' out
expect_line 'expr' '^result: 0xffffffffffffffff \(-1\)$' out
expect_line 'expr of text' '^result: "[^"]+"$' <("$PROFSCRIPT" expr -e sched:sched_switch next_comm -N 1)
expect_line 'expr of a recording' '^result: 0x78 \(120\)$' \
	<("$PROFSCRIPT" expr -e sched:sched_wakeup prio --input "$TOP/tests/recordings/sched.data")
check 'expr takes five events' test \
	"$("$PROFSCRIPT" expr -e sched:sched_wakeup pid --input "$TOP/tests/recordings/sched.data" | grep -c ^result)" -eq 5
fails 'expr of no field' 2 "did you mean 'next_pid'" expr -e sched:sched_switch nxt_pid

# --dry-run
"$PROFSCRIPT" trace -e 'raw_syscalls:sys_enter/id==1 && id+1>1/' --dry-run -C 0 >out
check 'a dry run ends well' test $? -eq 0
expect_line 'a dry run' '^    filter in the kernel: \(id==1\) && \(common_pid != [0-9]+ \|\| common_flags & 24\)$' out
expect_line 'a dry run' '^    filter in profscript: id\+1>1$' out
expect_line 'a dry run' '^target: CPUs 0$' out

# --check
"$PROFSCRIPT" --check >out
check '--check: tracepoints work' test $? -eq 0
expect_line '--check' '^ok  tracepoints: ' out
check '--check: each line in its form' bash -c '! grep -Ev "^(ok|no|--)  [a-zA-Z -]+: " out'
if su nobody -s /bin/sh -c 'test -x "$0" && test ! -r /sys/kernel/tracing/events' "$PROFSCRIPT" 2>/dev/null; then
	check_status '--check: nobody cannot' 1 su nobody -s /bin/sh -c '"$0" --check' "$PROFSCRIPT"
else
	skip '--check: nobody cannot' 'other users cannot reach the program, or may trace'
fi

# Manual pages
for page in '' trace expr list; do
	"$PROFSCRIPT" man $page >page.1
	check "man $page" test -s page.1
	if command -v groff >/dev/null; then
		groff -Tutf8 -man -ww page.1 2>&1 >/dev/null | tee warnings >/dev/null
		check "man $page: groff has no complaint" test ! -s warnings
	fi
done

# Completion, as an interactive bash asks for it: complete LINE
complete_bash() {
	bash --norc -c '
		. <("$PROFSCRIPT" completion bash)
		compopt() { echo "option $*"; }
		COMP_LINE=$1 COMP_POINT=${#1} COMP_WORDBREAKS=$'\'' \t\n"\047><=;|&(:'\''
		_profscript "$PROFSCRIPT" "${1##*[ :=]}" ""
		printf "%s\n" "${COMPREPLY[@]}"' bash "$1"
}
export PROFSCRIPT
expect_line 'completes profilers' '^multi-trace$' <(complete_bash 'profscript mul')
expect_line 'completes other names of profilers' '^event-care$' <(complete_bash 'profscript event-c')
expect_line 'and as sources' '^event-care/$' <(complete_bash 'profscript trace -e event-c')
expect_line 'completes options' '^--exit-n$' <(complete_bash 'profscript trace --ex')
for option in call-graph prio perfeval-pids; do
	check "stat, which only counts, has no --$option: help, page" bash -c \
		"! { '$PROFSCRIPT' stat -h; '$PROFSCRIPT' man stat | tr -d '\\\\'; } | grep -q -e '--$option'"
	check 'nor its completion' test -z "$(complete_bash "profscript stat --$option" | grep -e --)"
	fails 'nor it' 2 "option '--$option' does not apply to this profiler" stat -e cs --$option 1
done
expect_line 'completes values' '^json$' <(complete_bash 'profscript trace --format=')
expect_line 'completes events' '^sched_switch$' <(complete_bash 'profscript trace -e sched:sched_swi')
expect_line 'events go on' '^option -o nospace$' <(complete_bash 'profscript trace -e sched:sched_swi')
expect_line 'completes behind a comma' '^cs,page-faults$' <(complete_bash 'profscript trace -e cs,page')
expect_line 'completes fields' '^sched_switch/prev_state$' <(complete_bash 'profscript trace -e sched:sched_switch/prev_')
expect_line 'completes keys' '^next_pid$' <(complete_bash 'profscript multi-trace -e sched:sched_switch//key=next')
expect_line 'completes attributes' '^sched_switch//stack/$' <(complete_bash 'profscript trace -e sched:sched_switch//s')
touch a_recording
expect_line 'completes files' '^a_recording$' <(complete_bash 'profscript trace --input a_rec')
expect_line 'completes commands' '^chmod$' <(complete_bash 'profscript trace -e cs chmo')
