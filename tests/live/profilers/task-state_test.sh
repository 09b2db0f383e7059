#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only
# The profilers that list tasks and values, on programs that do a known number of things for a known time.
. "$(dirname "$0")/../../lib.sh"
needs_tracepoint sched:sched_switch sched:sched_wakeup sched:sched_wakeup_new sched:sched_process_fork \
	sched:sched_migrate_task signal:signal_generate raw_syscalls:sys_enter
states=$TOP/build/workloads/states
syscalls=$TOP/build/workloads/syscalls
case $(uname -m) in
x86_64) getppid=110 ;;
*) getppid=173 ;;
esac

# csv ARG...: runs profscript with CSV into $TMP/out; what it says goes to $TMP/err
on=()
csv() {
	"${on[@]}" "$PROFSCRIPT" "$1" --format csv "${@:2}" >"$TMP/out" 2>"$TMP/err"
}

# start ARG...: as csv, in the background, until it waits for events: all are enabled; its pid is $tracer
start() {
	"$PROFSCRIPT" "$1" --format csv "${@:2}" >"$TMP/out" 2>"$TMP/err" &
	tracer=$!
	wait_ready $tracer
}

# lossless ARG...: csv, again if events were lost: the machine may be busy, and there are kernels that
# report nothing of what some tasks do
lossless() {
	for _ in 1 2 3 4 5 6 7 8 9; do
		csv "$1" -m 4096 "${@:2}"
		grep -Eq 'lost|not report' "$TMP/err" || return 0
	done
	sed "s/^/# each time: /" "$TMP/err"
}

# column NAME FILE: the values of a column of CSV
column() {
	awk -F, -v name="$1" 'NR == 1 { for (i = 1; i <= NF; i++) if ($i == name) at = i; next } { print $at }' "${2-$TMP/out}"
}

# rows NAME EXPRESSION: awk's EXPRESSION of a row of the CSV in $TMP/out is true for one row; columns are
# c["NAME"]
rows() {
	awk -F, -v OFS=, 'NR == 1 { split($0, name); next } { for (i in name) c[name[i]] = $i; if ('"$2"') found = 1 }
		END { exit !found }' "$TMP/out"
	result $? "$1: $2" "$TMP/out"
}

# total COLUMN: the sum of a column
total() { column "$1" | awk '{ n += $1 } END { print n + 0 }'; }

# num-dist
csv num-dist -m 1024 -e "raw_syscalls:sys_enter/id==$getppid/num=id/" \
	-e "raw_syscalls:sys_enter/id==$getppid/num=-id*2/alias=twice/" -- "$syscalls" 3000
rows 'num-dist: a number' "c[\"event\"] == \"sys_enter\" && c[\"calls\"] == 3000 && c[\"total\"] == 3000 * $getppid"
rows 'num-dist: its bounds' "c[\"event\"] == \"sys_enter\" && c[\"min\"] == $getppid && c[\"max\"] == $getppid"
rows 'num-dist: negative numbers' \
	"c[\"event\"] == \"twice\" && c[\"total\"] == -6000 * $getppid && c[\"p99\"] == -2 * $getppid && c[\"avg\"] == c[\"max\"]"
csv num-dist -e "raw_syscalls:sys_enter/id==$getppid/num=id/" --perins -- "$syscalls" 10
rows 'num-dist --perins: the thread' 'c["instance"] > 1 && c["calls"] == 10'
"$PROFSCRIPT" num-dist -e "raw_syscalls:sys_enter/id==$getppid/num=id/" --than $((getppid - 1)) -- "$syscalls" 7 \
	>"$TMP/out"
check 'num-dist --than prints the events' test "$(grep -c "sys_enter: NR $getppid" "$TMP/out")" = 7
check_status 'num-dist wants num=' 2 "$PROFSCRIPT" num-dist -e sched:sched_switch -- true
check_status 'num-dist wants a number' 2 "$PROFSCRIPT" num-dist -e sched:sched_switch//num=next_comm/ -- true

# top: the combinations of keys, names and columns
call=raw_syscalls:sys_enter/id==$getppid
csv top -m 1024 -e "$call/" -- "$syscalls" 2000
rows 'top: no key is the thread' 'c["comm"] == "syscalls" && c["sys_enter"] == 2000'
csv top -m 1024 -e "$call/" -k id -- "$syscalls" 2000
rows 'top -k' "c[\"id\"] == $getppid && c[\"sys_enter\"] == 2000"
csv top -m 1024 -e "$call/key=id/comm=_comm/alias=calls/top-by=id*2/top-add=id/" -- "$syscalls" 100
rows 'top: key, comm, columns, alias of the first' \
	"c[\"calls\"] == 200 * $getppid && c[\"id#2\"] == 100 * $getppid && c[\"_comm\"] == \"syscalls\""
csv top -m 1024 -e "$call/comm=_comm/" --only-comm -- "$syscalls" 100
rows 'top --only-comm' 'c["_comm"] == "syscalls" && c["sys_enter"] == 100'
csv top -m 1024 -e "$call/key=id/,raw_syscalls:sys_exit/id==$getppid/key=id/" -- "$syscalls" 100
rows 'top: two events' 'c["sys_enter"] == 100 && c["sys_exit"] == 100'
csv top -e "$call/key=id/printkey='printf(\"call-%d\",key)'/" -- "$syscalls" 10
rows 'top: printkey' "c[\"id\"] == \"call-$getppid\""
check_status 'top: either all have a key' 2 "$PROFSCRIPT" top -e "$call/key=id/,raw_syscalls:sys_exit" -- true
check_status 'top --only-comm wants comm=' 2 "$PROFSCRIPT" top -e "$call/key=id/" --only-comm -- true
lossless top -e sched:sched_process_fork//key=parent_pid/comm=parent_comm/ -i 100s -- "$states" fork 25
rows 'top: forks' 'c["parent_comm"] == "states" && c["sched_process_fork"] == 25'

# Totals are those of perf stat, of the same threads at the same time: with rings that take all of it, and with
# rings so small that what is lost makes up for the difference.
for profiler in top//key=id/ num-dist//num=id/; do
	for pages in 1024 1; do
		workload syscalls 200000
		perf stat -x, -o "$TMP/perf.csv" -e raw_syscalls:sys_enter -p $WORKLOAD &
		peer=$!
		start "${profiler%%/*}" -v -m $pages -e "raw_syscalls:sys_enter//${profiler#*//}" -p $WORKLOAD -i 100s
		wait_for 20 grep -q -E 'nanosleep|poll' /proc/$peer/wchan
		go
		wait $tracer $peer
		want=$(sed -n 's/,,raw_syscalls.*//p' "$TMP/perf.csv")
		lost=$(sed -n 's/^profscript: [0-9]* events, \([0-9]*\) lost.*/\1/p' "$TMP/err")
		column=calls
		[ "${profiler%%/*}" = top ] && column=sys_enter
		echo "seen $(total $column), lost $lost, perf stat $want" >"$TMP/sum"
		[ "$want" -ge 200000 ] && [ $(($(total $column) + lost)) -eq "$want" ] && [ $((lost > 0)) -eq $((pages == 1)) ]
		result $? "${profiler%%/*} -m $pages: its total and what was lost are what perf stat counts" "$TMP/sum"
	done
done

# Addresses in a recording of this kernel have the names that perf gives them.
if [ -d /sys/kernel/tracing/events/kmem/kmalloc ]; then
	perf record -q -e kmem:kmalloc -o "$TMP/kmalloc.data" -- "$states" fork 5 2>/dev/null
	perf script -i "$TMP/kmalloc.data" -F trace 2>/dev/null | sed -n 's/.*call_site=\([^+ ]*\)+.*/\1/p' | sort | uniq -c |
		awk '{ print $2 "," $1 }' | sort >"$TMP/want"
	"$PROFSCRIPT" top --input "$TMP/kmalloc.data" -i 100s --only-comm --format csv \
		-e 'kmem:kmalloc//comm=ksymbol(call_site)/alias=n/' | awk -F, 'NR > 1 { print $4 "," $3 }' | sort >"$TMP/got"
	check 'top: names of where a recording allocates' diff "$TMP/want" "$TMP/got"
	check 'there are some' test -s "$TMP/want"
	"$PROFSCRIPT" trace --input "$TMP/kmalloc.data" | sed -n 's/.*call_site=\([^+ ]*\)+.*/\1/p' | sort | uniq -c |
		awk '{ print $2 "," $1 }' | sort >"$TMP/got"
	check 'trace: the same' diff "$TMP/want" "$TMP/got"
else
	skip 'names in a recording' 'kmem:kmalloc'
fi

# Pages that a program gets: its own are movable, its page tables are not.
if [ -d /sys/kernel/tracing/events/kmem/mm_page_alloc ]; then
	for args in 'top -m 1024 -k migratetype' stat; do
		workload pages 3000
		# shellcheck disable=SC2086 # words
		start $args -i 100s -e kmem:mm_page_alloc/migratetype==1/ -p $WORKLOAD
		go
		wait $tracer
		check "${args%% *}: N pages are allocated" grep -Eq '(,1|kmem:mm_page_alloc),3000(,|$)' "$TMP/out"
	done
	workload pages 3000
	start kmemleak -m 1024 --alloc "kmem:mm_page_alloc/migratetype==1/ptr=pfn/size='4096<<order'/" \
		--free kmem:mm_page_free/pfn==0/ptr=pfn/ -p $WORKLOAD
	go
	wait $tracer
	rows 'kmemleak: pages that are not freed' 'c["objects"] == 3000 && c["bytes"] == 3000 * 4096'
else
	skip 'pages' 'kmem:mm_page_alloc'
fi

# Reports come in the order of their times, also where nothing has happened for long.
csv event-lost -i 50 -e sched:sched_process_exec -- sleep 0.22
grep ^event-lost "$TMP/out" | cut -d, -f2 >"$TMP/times"
check 'the last report is not older than the one before' sort -c -n "$TMP/times"
check 'and each interval has one' test "$(wc -l <"$TMP/times")" -ge 5

# Behind lost events nobody knows who runs: what is known and what is not are all of a CPU that is never idle.
"$TOP/build/workloads/pingpong" -c 0 1000000000 &
busy=$!
"$PROFSCRIPT" oncpu -m 1 -C 0 --duration 1 -i 100s --format csv >"$TMP/out" 2>"$TMP/err"
kill $busy
hidden=$(sed -n 's/^oncpu: for \([0-9]*\) ms of CPU time lost events hide who ran$/\1/p' "$TMP/err")
all=$(($(total runtime_ns) / 1000000 + ${hidden:-0}))
echo "all $all ms" >>"$TMP/err"
[ "${hidden:-0}" -gt 0 ] && [ $all -ge 700 ] && [ $all -le 1010 ]
result $? 'oncpu: what is not known, and what is' "$TMP/err"

# A clock of another profiler is no event of it.
"$PROFSCRIPT" trace -e 'hrtimer/-F 20 -e sched:sched_switch 1/' --duration 0.3 >"$TMP/out"
expect_line 'hrtimer as a source: its events' ': sched:sched_switch: prev_comm=' "$TMP/out"
expect_line 'hrtimer as a source: its clock' ': hrtimer: cpu-clock$' "$TMP/out"

# oncpu --prio
lossless oncpu --prio 92 -i 100s -- taskset -c 0 chrt -f 7 "$states" run 50 # idle tasks of others may not be seen
if chrt -f 7 true 2>/dev/null; then
	rows 'oncpu --prio: of real time' 'c["comm"] == "states" && c["runtime_ns"] > 40e6'
	csv oncpu --prio 100-139 -i 100s -- chrt -f 7 "$states" run 50
	check 'oncpu --prio: and not of others' test \
		"$(awk -F, '$5 == "states" { n += $6 } END { print int(n / 1e6) }' "$TMP/out")" -lt 25 # until chrt has changed it
else
	skip 'oncpu --prio' 'chrt -f, real-time scheduling'
fi
check_status 'oncpu --prio: no list' 2 "$PROFSCRIPT" oncpu --prio 7-3

# The screen, in a pseudo-terminal.
check 'top on a terminal' python3 "$TOP/tests/tools/screen.py" "$PROFSCRIPT" "$states"

# signal
csv signal -- "$states" signal 40
rows signal 'c["signal"] == "USR1" && c["count"] == 40 && c["sender"] == c["receiver"] && c["sender_comm"] == "states"'
"$PROFSCRIPT" signal --print --filter 'sig == 10' -- "$states" signal 3 >"$TMP/out"
check 'signal --print' test "$(grep -c 'signal_generate: sig=10 .*comm=states' "$TMP/out")" = 3
csv signal --filter 'sig == 9' -- "$states" signal 3
check 'signal --filter: and no others' test ! -s "$TMP/out"

# sched-migrate
if [ "$(nproc)" -gt 1 ]; then
	lossless sched-migrate -i 100s -- taskset -c 0 "$states" pin 0 migrate 20
	# The start of the program may move it, too.
	rows sched-migrate 'c["total"] >= 20 && c["total"] <= 24'
	lossless sched-migrate --filter 'dest_cpu == 0' -i 100s -- taskset -c 0 "$states" pin 0 migrate 20
	rows 'sched-migrate --filter: every other one' 'c["total"] >= 10 && c["total"] <= 13'
else
	skip sched-migrate 'a second CPU'
fi

# From here on all is on CPU 0: where the idle task's events get lost, it is on the others.
pinned=(taskset -c 0 "$states")
on=(taskset -c 0) # where programs that it starts begin
# Nobody takes the CPU from what runs but for a moment: a busy machine has tasks whose switches the kernel does
# not report. Only who reads the rings comes before it. Its number is in $TMP/main, others may be lower.
calm=(taskset -c 0) soon=()
chrt -f 1 true 2>/dev/null && calm+=(chrt -f 1) soon=(-r 2)
# shellcheck disable=SC2016 # sh expands it
calm+=(sh -c 'echo $$ >"$0"; exec "$@"' "$TMP/main" "$states")

# task-state: a program that runs 300 ms, sleeps 200 ms in S and 100 ms in D, a thread of it 50 ms in S
lossless task-state --perins "${soon[@]}" -- "${calm[@]}" run 300 sleep 200 vfork 100 thread 50
awk -F, -v main="$(cat "$TMP/main")" '$3 == main { sum[$5] += $7 }
	END { print int(sum["R"] / 1e6), int(sum["S"] / 1e6), int(sum["D"] / 1e6) }' "$TMP/out" >"$TMP/states"
read -r run sleep disk <"$TMP/states"
check 'task-state: R' test "$run" -ge 297 -a "$run" -le 330
check 'task-state: S, and the wait for a thread' test "$sleep" -ge 250 -a "$sleep" -le 400
check 'task-state: D' test "$disk" -ge 100 -a "$disk" -le 250
rows 'task-state: a new thread' 'c["state"] == "S" && c["total_ns"] >= 5e7 && c["total_ns"] < 6e7'
lossless task-state -D --perins "${soon[@]}" -- "${calm[@]}" vfork 60
rows 'task-state -D' 'c["state"] == "D" && c["calls"] >= 1 && c["max_ns"] >= 6e7'
check 'task-state -D: nothing else' bash -c "! grep -v '^table\|,D,' '$TMP/out'"
lossless task-state --filter 'stat*' -S "${soon[@]}" -- "${calm[@]}" sleep 70
rows 'task-state --filter -S' 'c["state"] == "S" && c["max_ns"] >= 7e7'
"$PROFSCRIPT" task-state -S --than 60ms --filter states "${soon[@]}" -- "${calm[@]}" sleep 70 >"$TMP/out" 2>"$TMP/err"
expect_line 'task-state --than: who' 'task-state: [0-9]+ states WAIT 7[0-9]\.' "$TMP/out"
expect_line 'task-state --than: from' 'sched_switch: prev_comm=states .* prev_state=S' "$TMP/out"
expect_line 'task-state --than: to' 'sched_wakeup: comm=states ' "$TMP/out"
began=$(cut -d. -f1 /proc/uptime)
"$PROFSCRIPT" task-state -S --than 60ms --filter states --format json "${soon[@]}" -- "${calm[@]}" sleep 70 >"$TMP/out" 2>"$TMP/err"
check 'task-state --than: when' test "$(sed -n 's/^{"event":"task-state","time":\([0-9]*\).*/\1/p' "$TMP/out" | head -n 1)" \
	-ge "$began"

# --filter and -p: both have to be true.
"$states" sleep 300000 &
sleeper=$!
csv task-state -p $sleeper --filter nosuch --duration 0.1
check 'task-state --filter -p: not of another name' test ! -s "$TMP/out"
csv task-state -p $sleeper --filter 'st?tes' --duration 0.1
rows 'task-state --filter -p: of this name' 'c["state"] == "S" && c["total_ns"] == 1e8'
kill $sleeper

# A process that is there already: the states of its threads fill the time of the run.
"${pinned[@]}" run 200 sleep 20 run 300000 &
busy=$!
lossless task-state -p $busy --duration 1 --perins
check 'task-state -p: all of the time' test "$(total total_ns)" -gt 990000000 -a "$(total total_ns)" -lt 1010000000
# Its end ends the run.
(sleep 0.3 && kill $busy) &
check 'task-state ends with its process' timeout 20 "$PROFSCRIPT" task-state -p $busy
"$states" sleep 200000 &
sleeper=$!
lossless task-state -t $sleeper --duration 0.5
rows 'task-state -t: a sleep longer than the run' 'c["state"] == "S" && c["total_ns"] == 5e8'
kill $sleeper

# Frozen in its cgroup a task is in D, and R before and after.
freezer=$(awk '$3 == "cgroup" && $4 ~ /(^|,)freezer(,|$)/ { print $2; exit }' /proc/mounts)/profscript-test-$$
if mkdir "$freezer" 2>/dev/null; then
	"${pinned[@]}" run 200000 &
	frozen=$!
	echo $frozen >"$freezer/cgroup.procs"
	start task-state -m 1024 -p $frozen --perins
	sleep 0.2
	echo FROZEN >"$freezer/freezer.state"
	check 'the kernel has frozen it' wait_for 20 grep -q FROZEN "$freezer/freezer.state"
	sleep 0.3
	echo THAWED >"$freezer/freezer.state"
	sleep 0.2
	kill $frozen
	wait $tracer
	rows 'task-state: frozen is D' "c[\"thread\"] == $frozen && c[\"state\"] == \"D\" && c[\"calls\"] == 1 && c[\"total_ns\"] >= 3e8"
	rows 'task-state: before and after it runs' "c[\"thread\"] == $frozen && c[\"state\"] == \"R\" && c[\"total_ns\"] > 0"
	wait_for 20 rmdir "$freezer"
else
	skip 'task-state: frozen is D' 'the freezer of cgroup v1 (that of v2 leaves tasks in S)'
fi

# oncpu: 300 ms of a CPU, on CPU 0, in a second
lossless oncpu -i 100s -- "$states" pin 0 run 300 sleep 100
check 'oncpu: the time' test "$(awk -F, '$5 == "states" && $3 == 0 { print int($6 / 1e6) }' "$TMP/out")" -ge 297
check 'oncpu: on no other CPU but at the start' \
	test "$(awk -F, '$5 == "states" && $3 != 0 { n += $6 } END { print int(n / 1e6) }' "$TMP/out")" -lt 10
"$states" pin 0 run 200000 &
hog=$!
lossless oncpu -C 0 --duration 1
check "oncpu -C: a CPU's time" test "$(total runtime_ns)" -gt 900000000 -a "$(total runtime_ns)" -le 1000000001
rows 'oncpu -C: who' "c[\"tid\"] == $hog && c[\"runtime_ns\"] > 0"
lossless oncpu -p $hog --duration 2
check 'oncpu -p: a thread' test "$(column tid | sort -u)" = $hog
"$PROFSCRIPT" oncpu -m 4096 -p $hog -i 100s --duration 2 --detail >"$TMP/out" 2>/dev/null
expect_line 'oncpu -p: its line' "^ *$hog states +[0-9]+ms/[0-9]+ +0\\([0-9.]+ms/[0-9]+/[0-9.]+ms\\)\$" "$TMP/out"
kill $hog

# Switches that are not reported, as those that the idle tasks of some machines make: here all to one program.
# It is told of each time that it leaves a CPU, but for the first.
perf record -q -a -m 1024 -o "$TMP/hidden.data" -e sched:sched_switch --filter 'next_comm != "states"' \
	-e sched:sched_wakeup,sched:sched_wakeup_new -- taskset -c 0 "$states" sleep 20 sleep 20 sleep 20 sleep 20 sleep 20 \
	2>/dev/null
left=$("$PROFSCRIPT" exec -e 'sched:sched_switch/prev_comm=="states"/' --input "$TMP/hidden.data" 'count(ev.prev_comm)' \
	--format csv | sed -n 's/.*states,//p')
for args in oncpu rundelay 'task-state --perins'; do
	# shellcheck disable=SC2086 # words
	"$PROFSCRIPT" $args --input "$TMP/hidden.data" >"$TMP/out" 2>"$TMP/err"
	n=$(sed -n "s/^${args%% *}: the kernel did not report.* \([0-9]*\) switches (.*left out)\$/\1/p" "$TMP/err")
	echo "# $left leave, ${n:-0} not reported" >>"$TMP/err"
	[ "$left" -ge 6 ] && [ "${n:-0}" -ge $((left - 1)) ]
	result $? "${args%% *}: switches that are not reported" "$TMP/err"
done

# kmemleak: malloc and calloc of a program that keeps every tenth object, by probes
leak=$TOP/build/workloads/leak
if [ "$(uname -m)" = x86_64 ] && [ -e /sys/bus/event_source/devices/uprobe ]; then
	probes=(--size 'uprobe:malloc@libc.so.6(n=%di)//size=n/' --free 'uprobe:free@libc.so.6(p=%di)//ptr=p/'
		--alloc 'uretprobe:malloc@libc.so.6(p=$retval)//ptr=p/,uretprobe:calloc@libc.so.6(p=$retval)//ptr=p/')
	csv kmemleak -m 1024 -g "${probes[@]}" -- "$leak" 500
	rows 'kmemleak: exactly what leaks' 'c["bytes"] == 50000 && c["objects"] == 50 && c["stack"] ~ / main\+/'
	check 'kmemleak: and nothing else' test "$(column objects)" = 50
	"$PROFSCRIPT" kmemleak -m 1024 --comm -g "${probes[@]}" -- "$leak" 500 >"$TMP/out"
	expect_line 'kmemleak: all of it' '^TOTAL alloc 1000 free 950$' "$TMP/out"
	expect_line 'kmemleak: by stack' '^Leak of 50000 bytes in 50 objects allocated from:' "$TMP/out"
	expect_line 'kmemleak --comm' '^    comms: leak\(50000/50\)$' "$TMP/out"
	"$PROFSCRIPT" kmemleak -m 1024 --flame-graph "$TMP/leak.folded" "${probes[@]}" -- "$leak" 500 >"$TMP/out" 2>"$TMP/err"
	expect_line 'kmemleak --flame-graph: leaked bytes' '^leak;(.*;)?main 50000$' "$TMP/leak.folded"
	check 'kmemleak --flame-graph: and no others' test "$(awk '{ n += $NF } END { print n }' "$TMP/leak.folded")" = 50000
	csv kmemleak "${probes[@]:2}" -- "$leak" 100
	expect_line 'kmemleak: a size that nobody tells' '^kmemleak: no size= of uretprobe:malloc, uretprobe:calloc: ' "$TMP/err"
	csv kmemleak --than 60s "${probes[@]}" -- "$leak" 100
	check 'kmemleak --than: nothing is that old' test ! -s "$TMP/out"
else
	skip kmemleak 'the uprobe PMU, or x86_64 registers'
fi
check_status 'kmemleak wants an address' 2 "$PROFSCRIPT" kmemleak --alloc sched:sched_switch --free kmem:kfree -- true

# event-lost: what is counted is delivered; where rings are tiny it is delivered or lost
csv event-care -m 1024 -e "raw_syscalls:sys_enter/id==$getppid/" -- "$syscalls" 3000 # as perf-prof calls it
rows 'event-lost: nothing is' 'c["counted"] == 3000 && c["delivered"] == 3000 && c["missing"] == 0'
"$PROFSCRIPT" event-lost -m 1 -e "raw_syscalls:sys_enter/id==$getppid/" -- "$syscalls" 200000 >"$TMP/out" 2>"$TMP/err"
all_lost='^lost [1-9][0-9]*( \([0-9]+ of them no events\))?, missing without a word 0, late 0$'
expect_line 'event-lost: all that is missing was lost' "$all_lost" "$TMP/out"
children="for i in 1 2 3; do $syscalls 1000; done; :"
csv event-lost -m 1024 -e sched:sched_switch//cpus=0/ --duration 0.3
rows 'event-lost: cpus= of what is counted, too' 'c["counted"] > 0 && c["missing"] * 4 <= c["counted"]'
for args in '' --perins; do
	csv event-lost -m 1024 $args -e "raw_syscalls:sys_enter/id==$getppid/" -- sh -c "$children"
	rows "event-lost $args: what children did is delivered" \
		'c["counted"] >= 3000 && c["delivered"] == c["counted"] && c["missing"] == 0'
done
"$PROFSCRIPT" event-lost -m 1 -e "raw_syscalls:sys_enter/id==$getppid/" -- sh -c "${children//1000/100000}" >"$TMP/out" 2>"$TMP/err"
expect_line 'event-lost: what children lost' "$all_lost" "$TMP/out"

# On CPUs each event tells how many there were: nothing seems lost at either end, nor between reports.
taskset -c 0 "$syscalls" 1000000000 &
busy=$!
calls=raw_syscalls:sys_enter/common_pid==$busy/
csv event-lost -m 4096 -C 0 -i 50 --duration 0.5 -e "$calls"
check 'event-lost on CPUs: nothing is' test "$(total delivered)" -gt 0 -a "$(column missing | sort -u | grep -v '^$')" = 0
csv event-lost -m 1 --perins --duration 0.3 -e "$calls"
lost=$(sed -n 's/^lost,\([0-9]*\),0,0$/\1/p' "$TMP/out")
echo "# missing $(total missing), lost ${lost:-none}" >>"$TMP/out"
[ "$(total missing)" -gt 0 ] && [ "$(total missing)" -le "${lost:-0}" ]
result $? 'event-lost on CPUs: what is missing was lost' "$TMP/out"
kill $busy
check_status 'event-lost: what counts something else' 2 "$PROFSCRIPT" event-lost -e sched:sched_stat_runtime

# What is counted ends with what is delivered, although nothing wakes the tracer then.
mkfifo "$TMP/never"
bash -c "exec 3<>'$TMP/never'; while :; do read -t 0.001 -u 3; done" &
ticker=$!
csv event-lost -e raw_syscalls:sys_enter -p $ticker --duration 0.15
rows 'event-lost: nothing is counted behind the end' 'c["counted"] > 10 && c["missing"] * 8 <= c["counted"]'
csv event-lost -e raw_syscalls:sys_enter -p $ticker --duration 60 -N 30
rows 'event-lost -N' 'c["delivered"] >= 30 && c["delivered"] < 3000'
kill $ticker

# Ctrl-C ends each of them with a report.
for args in 'top -e sched:sched_switch' 'task-state' oncpu 'num-dist -e sched:sched_switch//num=next_pid/' signal \
	sched-migrate 'kmemleak --alloc kmem:kmalloc --free kmem:kfree'; do
	# shellcheck disable=SC2086 # words
	start $args -i 100s --format json
	sleep 0.5
	kill -INT $tracer
	wait $tracer
	check "${args%% *} ends on Ctrl-C" bash -c "! grep -v '^{.*}\$' '$TMP/out'"
	[ "${args%% *}" = signal ] || expect_line "${args%% *} reports at its end" '"table":' "$TMP/out"
done
