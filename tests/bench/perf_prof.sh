#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only
# perf_prof.sh [NAME...]: compares profscript with perf-prof ($PERF_PROF is its program) in all profilers
# that both have and that count right on this kernel, or only in those named. Prints one line each: name,
# ns of CPU time (user and system, of the whole process) per event of ours and of perf-prof, ours /
# perf-prof. Needs root and perf.
#
# The two take turns at the same load on CPU 0, BENCH_ROUNDS times (5), and the medians are printed. Each
# sees the load twice: the first time it compiles what it does with the events, and touches all of its
# rings. The second time is measured: its CPU time is divided by the events that `perf stat` counts
# meanwhile. A run in which events are lost, or in which the figures that are printed add up to less than
# 98 % of the events of both times, does not count. Nor does one without any CPU time.
#
# BENCH_LOOPS: loops of the pipe benchmark, each about eight events (300000); other loads take as long.
set -u
cd "$(dirname "$0")/../.." || exit 1
. tests/bench/lib.sh
: "${PERF_PROF:?is the program of perf-prof}"
rounds=${BENCH_ROUNDS:-5}
only=" $* "
disk=

clean() {
	[ -z "$disk" ] || losetup -d "$disk"
	rm -rf "$tmp"
}
trap clean EXIT

pipe_load() { exec taskset -c 0 perf bench sched pipe -l "$loops"; }
messages_load() { exec taskset -c 0 perf bench sched messaging -g 1 -l $((loops / 1000)); }
pages_load() { exec taskset -c 0 build/workloads/pages "$loops"; }
disk_load() { exec taskset -c 0 dd if="$disk" of=/dev/null iflag=direct bs=4k count=$((loops / 20)); }

# seen CHECK: how many events the output accounts for, by what CHECK says:
#   calls N     the column `calls`, of which each is N events; `calls N EVENT`: N of these events
#   lines TEXT  lines with this text
#   sample      the figure of top's first lines
#   switches    the switches of `oncpu --detail`
#   -           it does not say
seen() {
	case $1 in
	calls*)
		awk -v each="$(cut -d ' ' -f 2 <<<"$1")" '
			match($0, / (calls|reqs)/) { end = RSTART + RLENGTH - 1; next } # figures end where titles do
			end && match(substr($0, 1, end), /[0-9]+$/) { sum += substr($0, RSTART, RLENGTH) }
			END { print sum * each }' "$tmp/out"
		;;
	lines*) grep -c "${1#lines }" "$tmp/out" ;;
	sample) sed -n 's/.* sample \([0-9]*\) events.*/\1/p' "$tmp/out" | awk '{ sum += $1 } END { print sum }' ;;
	switches) grep -o '^[0-9]* *[0-9]*ms/[0-9]*' "$tmp/out" | awk -F / '{ sum += $2 } END { print sum }' ;;
	-) echo inf ;;
	esac
}

# sum_of EVENT: what `perf stat` has counted of it; '': of all events
sum_of() {
	awk -F, -v event="$1" '$1 > 0 && (event == "" || $3 == event) { sum += $1 } END { print sum }' "$tmp/stat"
}

# count_events LOAD EVENTS: runs the load; prints how many of the events there are meanwhile, or, with
# EVENTS `N/s`, N for each second.
count_events() {
	local begin=$EPOCHREALTIME
	case $2 in
	*/s)
		("$1") >/dev/null 2>&1
		awk -v begin="$begin" -v end="$EPOCHREALTIME" -v rate="${2%/s}" 'BEGIN { printf "%d", (end - begin) * rate }'
		;;
	*)
		export -f "${1?}"
		# shellcheck disable=SC2086 # words
		loops=$loops disk=$disk perf stat $cpus -x, -e "$2" -o "$tmp/stat" -- \
			bash -c "$1" >/dev/null 2>&1
		sum_of ''
		;;
	esac
}

# measure LOAD EVENTS CHECK COMMAND...: ns of CPU time per event; fails where the round does not count
measure() {
	local load=$1 counted=$2 check=$3 cpus=-a pid before after n expected
	shift 3
	[[ "$*" != *' -C 0'* ]] || cpus='-C 0'
	"$@" >"$tmp/out" 2>"$tmp/err" &
	pid=$!
	sleep 1
	n=$(count_events "$load" "$counted")
	[[ $check != calls*:* ]] || n=$(sum_of "${check##* }")
	expected=$n
	sleep 0.5
	before=$(process_cpu $pid)
	n=$(count_events "$load" "$counted")
	sleep 0.5
	after=$(process_cpu $pid)
	kill -INT $pid || { wait $pid; echo "it has ended, with status $?" >"$tmp/why"; return 1; }
	wait $pid
	! grep -Ehm 1 'lost [1-9]|[1-9][0-9]* lost' "$tmp/out" "$tmp/err" >"$tmp/why" || return 1
	if [[ $check == calls*:* ]]; then
		expected=$((expected + $(sum_of "${check##* }")))
	else
		expected=$((expected + n))
	fi
	awk -v seen="$(seen "$check")" -v n="$expected" 'BEGIN { exit !(seen == "inf" || seen >= n * 0.98) }' || {
		echo "$expected events, but its figures are about $(seen "$check")" >"$tmp/why"
		return 1
	}
	if [ "$after" -le "$before" ] || [ "$n" -le 0 ]; then
		echo "$((after - before)) ns of CPU time for $n events" >"$tmp/why"
		return 1
	fi
	per_event $((after - before)) "$n"
}

tell() {
	echo "$1: not counted: $(head -n 1 "$tmp/why")" >&2
}

median() {
	sort -g | awk '{ value[NR] = $1 } END { print (value[int((NR + 1) / 2)] + value[int(NR / 2) + 1]) / 2 }'
}

# compare NAME LOAD EVENTS CHECK OURS THEIRS
compare() {
	local name=$1 load=$2_load events=$3 check=$4 ours theirs good=0 tries=0
	[ "$only" = '  ' ] || [[ $only == *" $name "* ]] || return
	rm -f "$tmp/ours" "$tmp/theirs"
	while [ $good -lt "$rounds" ] && [ $tries -lt $((rounds * 2)) ]; do
		tries=$((tries + 1))
		# shellcheck disable=SC2086 # words
		ours=$(measure "$load" "$events" "$check" $profscript $5 -v) || { tell "$name"; continue; }
		# shellcheck disable=SC2086
		theirs=$(measure "$load" "$events" "$check" "$PERF_PROF" $6) || { tell "$name: perf-prof"; continue; }
		echo "$ours" >>"$tmp/ours"
		echo "$theirs" >>"$tmp/theirs"
		good=$((good + 1))
	done
	if [ $good -eq 0 ]; then
		echo "$name: no run counts" >&2
		failed=1
		return
	fi
	row "$name" "$(median <"$tmp/ours")" "$(median <"$tmp/theirs")"
}

calls=raw_syscalls:sys_enter,raw_syscalls:sys_exit
switches=sched:sched_switch
wakes=sched:sched_wakeup,sched:sched_wakeup_new
pair='-e raw_syscalls:sys_enter -e raw_syscalls:sys_exit'
woken='-e sched:sched_wakeup//key=pid/ -e sched:sched_switch//key=next_pid/'
tasks='sched:sched_wakeup//key=pid/comm=comm/,sched:sched_switch//key=prev_pid/comm=prev_comm/'
allocs=kmem:kmalloc,kmem:kmem_cache_alloc,kmem:kfree,kmem:kmem_cache_free
leak='--alloc kmem:kmalloc,kmem:kmem_cache_alloc --free kmem:kfree,kmem:kmem_cache_free'
bytes='-e kmem:kmalloc//size=bytes_alloc/key=ptr/ -e kmem:kfree//key=ptr/'
delays='-e sched:sched_wakeup*,sched:sched_switch -e sched:sched_switch'
blocks=block:block_getrq,block:block_rq_insert,block:block_rq_issue,block:block_rq_complete
all_cpus=0-$(($(nproc) - 1))
# A ring wakes its reader when it has 2 MiB, or 128 KiB of events that are rare: what is left unread when the
# load ends must be little of it. Where perf-prof or the kernel is slow, the rings are larger, and of CPU 0 only.
big='-m 4096 --watermark 12' huge='-m 16384 --watermark 3 -C 0' rare='-m 256 --watermark 12'

compare multi-trace pipe $calls 'calls 2' "multi-trace $pair -k common_pid $big" \
	"multi-trace $pair -k common_pid $big --order"
compare details pipe $calls 'calls 2' "multi-trace $pair -k common_pid --than 100s --detail $huge" \
	"multi-trace $pair -k common_pid --than 100s --detail $huge --order"
compare wake-switch pipe sched:sched_wakeup,$switches 'calls 1 sched:sched_wakeup' "multi-trace $woken $big" \
	"multi-trace $woken $big --order"
compare syscalls pipe $calls 'calls 2' "syscalls $big" "syscalls $pair $big"
compare rundelay pipe $wakes,$switches 'calls 1 sched:sched_wakeup' "rundelay $big" "rundelay $delays $big"
compare nested-trace pipe $calls 'calls 2' "nested-trace -e $calls -k common_pid $big" \
	"nested-trace -e $calls -k common_pid $big --order"
compare task-state pipe $wakes,$switches 'calls 1' "task-state $big" "task-state $big --order"
compare oncpu pipe $switches switches "oncpu --detail $big" "oncpu --detail -C $all_cpus $big"
compare num-dist pipe raw_syscalls:sys_enter 'calls 1' "num-dist -e raw_syscalls:sys_enter//num=id/ $big" \
	"num-dist -e raw_syscalls:sys_enter//num=id/ $big"
compare top pipe sched:sched_wakeup,$switches sample "top -e $tasks -i 1000 $big" "top -e $tasks -i 1000 $big"
compare trace pipe sched:sched_wakeup 'lines sched:sched_wakeup: ' "trace -e sched:sched_wakeup $big" \
	"trace -e sched:sched_wakeup $big"
compare kmemleak messages $allocs - "kmemleak $leak $huge" "kmemleak $leak $huge --order"
compare kmemprof messages kmem:kmalloc,kmem:kfree - "kmemprof $bytes $huge" "kmemprof $bytes $huge --order"
compare page-faults pages page-faults 'lines page-fault: ' "page-faults $huge" "page-faults $huge"
compare profile pipe "$((10000 * $(nproc)))/s" 'lines profile: ' "profile -F 10000 $rare" "profile -F 10000 $rare"
if truncate -s 1G "$tmp/disk" && disk=$(losetup -f --show "$tmp/disk" 2>"$tmp/err"); then
	compare blktrace disk $blocks - "blktrace -d $disk $rare" "blktrace -d $disk $rare --order"
else
	fail blktrace
fi
exit $failed
