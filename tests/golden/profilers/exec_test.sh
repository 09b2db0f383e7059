#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only
# multi-trace and exec on the recordings: the figures against ones computed from perf script's text,
# the texts against *.expect files. UPDATE=1 writes these anew, from what the figures have proved.
. "$(dirname "$0")/../lib.sh"
here=$TOP/tests/golden
export TZ=UTC
wakeups=(-e sched:sched_wakeup//key=pid/ -e sched:sched_switch//key=next_pid/)
wakeup_stages=(sched:sched_wakeup:pid sched:sched_switch:next_pid)
calls=(-e raw_syscalls:sys_enter -e raw_syscalls:sys_exit)
declare -A peers

# text NAME ARG...: the command's text is NAME.expect
text() {
	local expected=$here/$1.expect
	shift
	[ -n "${UPDATE-}" ] && "$PROFSCRIPT" "$@" >"$expected"
	expect_text "$(basename "$expected")" "$expected" "$PROFSCRIPT" "$@"
}

# figures NAME DATA "SETTING..." ARG... -- STAGE...: the same command's figures are right
figures() {
	local name=$1 data=$2 settings=$3 args=()
	shift 3
	while [ "$1" != -- ]; do
		args+=("$1")
		shift
	done
	shift
	if [ -z "${peers[$data]-}" ]; then
		peers[$data]=$TMP/$data.peer
		perf script -i "$here/$data.data" --ns -G -F +pid 2>/dev/null >"${peers[$data]}"
	fi
	"$PROFSCRIPT" multi-trace "${args[@]}" --input "$here/$data.data" --format json >"$TMP/json"
	# shellcheck disable=SC2086 # settings are words
	check "$name: figures" luajit "$here/latency.lua" "${peers[$data]}" "$TMP/json" $settings "$@"
	text "$name" multi-trace "${args[@]}" --input "$here/$data.data"
}

figures wakeups sched '' "${wakeups[@]}" -- "${wakeup_stages[@]}"
figures wakeups-perins sched perins "${wakeups[@]}" --perins -- "${wakeup_stages[@]}"
figures wakeups-interval sched interval=2000000 "${wakeups[@]}" -i 2ms -- "${wakeup_stages[@]}"
figures wakeups-interval-perins sched 'interval=1000000 perins' "${wakeups[@]}" -i 1 --perins -- \
	"${wakeup_stages[@]}"
figures wakeups-than sched than=50000 "${wakeups[@]}" --than 50us -- "${wakeup_stages[@]}"
figures stages sched '' "${wakeups[@]}" -e sched:sched_switch//key=prev_pid/ -- "${wakeup_stages[@]}" \
	sched:sched_switch:prev_pid
figures syscalls syscalls wall "${calls[@]}" -k common_pid -- raw_syscalls:sys_enter:TID \
	raw_syscalls:sys_exit:TID
figures syscalls-pipe pipe 'wall than=5000' "${calls[@]}" -k common_pid --than 5us -- \
	raw_syscalls:sys_enter:TID raw_syscalls:sys_exit:TID
figures syscalls-zstd zstd perins "${calls[@]}" -k _tid --perins -- raw_syscalls:sys_enter:TID \
	raw_syscalls:sys_exit:TID
figures syscalls-by-cpu zstd perins "${calls[@]}" --perins -- raw_syscalls:sys_enter:CPU \
	raw_syscalls:sys_exit:CPU

# Samples are counted by period and CPU; each is in one place.
for data in sched zstd; do
	"$PROFSCRIPT" stat --period 1ms -i 3 --perins --input "$here/$data.data" --format json >"$TMP/json"
	perf script -i "$here/$data.data" -F event 2>/dev/null | sort | uniq -c | awk '{ print $2, $1 }' | LC_ALL=C sort >"$TMP/want"
	luajit "$here/counts.lua" "$TMP/json" >"$TMP/got"
	check "stat $data: all samples of perf script" diff "$TMP/want" "$TMP/got"
done
text stat stat --input "$here/sched.data" -e sched:sched_switch,sched:sched_wakeup --period 1ms -i 3 --perins

# The lines that thresholds print are those of trace, in their order, in front of the table.
"$PROFSCRIPT" trace --input "$here/sched.data" >"$TMP/lines"
for threshold in than=50000 lower=600; do
	luajit "$here/latency.lua" "${peers[sched]}" "$TMP/lines" print $threshold "${wakeup_stages[@]}" >"$TMP/want"
	"$PROFSCRIPT" multi-trace "${wakeups[@]}" --$threshold --input "$here/sched.data" |
		grep ' \[[0-9]*\] ' >"$TMP/got"
	check "--$threshold: the events of the pairs" diff "$TMP/want" "$TMP/got"
done
grep -c . "$TMP/want" >"$TMP/n"
check 'some pairs were below the threshold' test "$(cat "$TMP/n")" -ge 20

# --only-than: no table where nothing was longer, the same one where something was.
expect_text '--only-than 1s prints nothing' /dev/null \
	"$PROFSCRIPT" multi-trace "${wakeups[@]}" --only-than 1s --input "$here/sched.data"
expect_text '--only-than 50us is --than 50us' "$here/wakeups-than.expect" \
	"$PROFSCRIPT" multi-trace "${wakeups[@]}" --only-than 50us --input "$here/sched.data"

# -N counts events, not pairs; -o and stdout are the same.
"$PROFSCRIPT" multi-trace "${wakeups[@]}" -N 60 --input "$here/sched.data" --format json >"$TMP/json"
head -n 60 "${peers[sched]}" >"$TMP/first"
check '-N 60' luajit "$here/latency.lua" "$TMP/first" "$TMP/json" "${wakeup_stages[@]}"
"$PROFSCRIPT" multi-trace "${wakeups[@]}" --input "$here/sched.data" -o "$TMP/out"
check '-o FILE is the same' cmp "$here/wakeups.expect" "$TMP/out"

# exec: counts and sums from perf's text, and the texts.
one_liner() {
	"$PROFSCRIPT" exec --input "$here/$1.data" "${@:3}" "$2"
}
perf script -i "$here/sched.data" -F trace 2>/dev/null | sed -n 's/.*next_comm=\(.*\) next_pid.*/\1/p' | sort |
	uniq -c | awk '{ n = $1; sub(/^ *[0-9]+ /, ""); print $0 "," n }' | sort >"$TMP/want"
one_liner sched 'count(ev.next_comm)' -e sched:sched_switch --format csv | tail -n +2 | cut -d, -f3- | sort >"$TMP/got"
check 'exec: count by a name' diff "$TMP/want" "$TMP/got"
perf script -i "$here/syscalls.data" -F trace 2>/dev/null |
	awk '$1 == "NR" && $3 == "=" && $4 > 0 && $4 < 100000 { sum[$2] += $4 } END { for (i in sum) print i "," sum[i] }' |
	sort >"$TMP/want"
one_liner syscalls 'if ev.ret > 0 and ev.ret < 100000 then sum(ev.ret, ev.id) end' -e raw_syscalls:sys_exit \
	--format csv | tail -n +2 | sed 's/^".*",//' | cut -d, -f2- | sort >"$TMP/got"
check 'exec: sum by a number' diff "$TMP/want" "$TMP/got"
text exec-count exec --input "$here/sched.data" -e sched:sched_switch 'count(ev.next_comm, ev.next_pid)'
text exec-hist exec --input "$here/syscalls.data" -e raw_syscalls:sys_exit 'hist(ev.ret)'
text exec-quantiles exec --input "$here/zstd.data" -e raw_syscalls:sys_exit 'quantiles(ev.ret, ev.id)'
text exec-sum exec --input "$here/syscalls.data" -e raw_syscalls:sys_exit 'if ev.id == 0 then sum(ev.ret, ev._comm) end'
text exec-print exec --input "$here/pipe.data" -N 5 'print(ev._event, ev._tid, ev.id) printf("%d\n", ev._cpu)'
text exec-interval exec --input "$here/sched.data" -i 4ms -e sched:sched_wakeup 'count()'

# Profilers of tasks: the figures against perf script's text, then the text.
perf script -i "$here/sched.data" --ns -F comm,tid,cpu,time,event,trace 2>/dev/null >"$TMP/script"
"$PROFSCRIPT" top --input "$here/sched.data" -i 100s --format csv \
	-e sched:sched_wakeup//key=pid/comm=comm/,sched:sched_switch//key=prev_pid/comm=prev_comm/ |
	awk -F, 'NR > 1 { print $3, $4, $5 }' | sort >"$TMP/got"
awk '{ for (i = 1; i <= NF; i++) if ($i ~ /^(prev_pid|pid)=/) { split($i, f, "="); break } }
	/sched_wakeup:/ { woken[f[2]]++ } /sched_switch:/ { switched[f[2]]++ } { seen[f[2]] }
	END { for (pid in seen) print pid, woken[pid] + 0, switched[pid] + 0 }' "$TMP/script" | sort >"$TMP/want"
check 'top counts as perf script does' diff "$TMP/want" "$TMP/got"
text top top --input "$here/sched.data" -i 100s \
	-e sched:sched_wakeup//key=pid/comm=comm/,sched:sched_switch//key=prev_pid/comm=prev_comm/
check_status 'top: a key that some events have not' 0 "$PROFSCRIPT" top --input "$here/sched.data" -i 100s \
	-e sched:sched_switch -k '1/(prev_pid!=0)'
expect_line 'is told' '^top: [1-9][0-9]* events gave no key \(a division by zero\)$' "$TMP/.check"
check 'and has no row' bash -c "! grep -q nil '$TMP/.check'"
check_status 'num-dist: numbers that are too large' 0 "$PROFSCRIPT" num-dist --input "$here/sched.data" \
	-e 'sched:sched_switch//num="0xffffffff00000000+(prev_pid&1)"/'
expect_line 'are told' '^num-dist: [1-9][0-9]* numbers are 2\^63 or more, and count as that$' "$TMP/.check"
text top-only-comm top --input "$here/sched.data" -i 100s -e sched:sched_switch//comm=prev_comm/top-by=prev_prio/ \
	--only-comm

# A run is from a switch to a task until the next switch on its CPU, which must be from that task.
awk '{ cpu = $3; gsub(/[][]/, "", cpu); time = $4; sub(":", "", time); split(time, t, ".")
		ns = t[1] * 1000000000 + t[2] }
	/sched_switch:/ { match($0, /prev_pid=[0-9]+/); prev = substr($0, RSTART + 9, RLENGTH - 9)
		match($0, /next_pid=[0-9]+/); nxt = substr($0, RSTART + 9, RLENGTH - 9)
		if (cpu in since && prev != 0 && runs[cpu] == prev) sum[cpu + 0 " " prev] += ns - since[cpu]
		since[cpu] = ns; runs[cpu] = nxt; last = ns }
	/sched_wakeup:/ { last = ns }
	END { for (cpu in since) if (runs[cpu] != 0 && last > since[cpu]) sum[cpu + 0 " " runs[cpu]] += last - since[cpu]
		for (key in sum) print key, sum[key] }' "$TMP/script" | sort >"$TMP/want"
"$PROFSCRIPT" oncpu --input "$here/sched.data" -i 100s --format csv | awk -F, 'NR > 1 { print $3, $4, $6 }' |
	sort >"$TMP/got"
check 'oncpu adds as the text says' diff "$TMP/want" "$TMP/got"
text oncpu oncpu --input "$here/sched.data" -i 100s --detail
text task-state task-state --input "$here/sched.data" --perins
text task-state-than task-state --input "$here/sched.data" --than 100us
text num-dist num-dist --input "$here/syscalls.data" -e raw_syscalls:sys_exit//num=ret/,raw_syscalls:sys_enter//num=id/ \
	--than 1000000000000000000

# A recording has no counts, but says what was lost.
"$PROFSCRIPT" event-lost --input "$here/lost.data" --format json >"$TMP/json"
perf script -i "$here/lost.data" -F event 2>/dev/null | sed 's/.*:\(.*\): *$/\1/' | sort | uniq -c | awk '{ print $2, $1 }' >"$TMP/want"
perf script -i "$here/lost.data" --show-lost-events 2>/dev/null | awk '/PERF_RECORD_LOST/ { n += $NF } END { print "lost", n }' \
	>>"$TMP/want"
sed -n 's/.*"event":"\([a-z_]*\)","delivered":\([0-9]*\)}$/\1 \2/p; s/.*"event":"lost","lost":\([0-9]*\),.*/lost \1/p' \
	"$TMP/json" >"$TMP/got"
check 'event-lost of a recording' diff "$TMP/want" "$TMP/got"

# What kmemleak says is there at the end is what perf script's text says.
perf script -i "$here/kmem.data" --ns -F event,trace 2>/dev/null | awk '
	{ for (i = 1; i <= NF; i++) if ($i ~ /^ptr=/) ptr = $i; else if ($i ~ /^bytes_alloc=/) bytes = substr($i, 13) }
	/kmalloc:/ { there[ptr] = bytes; allocs++ } /kfree:/ { delete there[ptr]; frees++ }
	END { for (p in there) { n++; sum += there[p] } print allocs + 0, frees + 0, sum + 0, n + 0 }' >"$TMP/want"
"$PROFSCRIPT" kmemleak --alloc kmem:kmalloc --free kmem:kfree --input "$here/kmem.data" |
	awk '/^TOTAL/ { a = $3; f = $5 } /^LEAKED [0-9]/ { print a, f, $2, $5 }' >"$TMP/got"
check 'kmemleak: what is left' diff "$TMP/want" "$TMP/got"
expect_text 'kmemleak --filter' /dev/null "$PROFSCRIPT" kmemleak --alloc kmem:kmalloc --free kmem:kfree \
	--filter 'common_pid == -1' --input "$here/kmem.data"
text kmemleak kmemleak --alloc kmem:kmalloc --free kmem:kfree --input "$here/kmem.data"
