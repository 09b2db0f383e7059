#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only
# multi-trace with all of its options, and its relatives, on recordings: figures against ones computed from
# perf script's text, texts against *.expect files. UPDATE=1 writes these anew, from what the figures have
# proved.
. "$(dirname "$0")/../lib.sh"
here=$TOP/tests/golden
export TZ=UTC
calls=(-e raw_syscalls:sys_enter -e raw_syscalls:sys_exit)
wakeups=(-e sched:sched_wakeup//key=pid/ -e sched:sched_switch//key=next_pid/)
softirqs=(-e irq:softirq_entry -e irq:softirq_exit)

# text NAME DATA ARG...: the command's text is NAME.expect
text() {
	local expected=$here/$1.expect data=$here/$2.data
	shift 2
	[ -n "${UPDATE-}" ] && "$PROFSCRIPT" "$@" --input "$data" >"$expected"
	expect_text "$(basename "$expected")" "$expected" "$PROFSCRIPT" "$@" --input "$data"
}

# peer DATA: perf's text with ns, as "CPU TIME_NS EVENT: FIELDS"
peer() {
	perf script -i "$here/$1.data" --ns -G -F cpu,time,event,trace 2>/dev/null |
		sed -E 's/^ *\[0*([0-9]+)\] +([0-9]+)\.([0-9]+): +/\1 \2\3 /'
}

# --- details --------------------------------------------------------------------------------------
nap=(multi-trace -e raw_syscalls:sys_enter//key=common_pid/
	-e 'raw_syscalls:sys_exit//key=common_pid/,sched:sched_wakeup//untraced/,sched:sched_switch//untraced/,sched:sched_migrate_task//untraced/')
text detail-all nap "${nap[@]}" --than 20ms --detail
text detail-samecpu nap "${nap[@]}" --than 20ms --detail=samecpu
text detail-sametid nap "${nap[@]}" --than 20ms --detail=sametid,-50us,+50us
text detail-samekey nap "${nap[@]}" --than 20ms --detail=samekey,+30us
text detail-hide nap "${nap[@]}" --than 20ms --detail='hide<1ms'
text detail-lower nap "${nap[@]}" --lower 1us --detail
# With -v each line says why it is shown: what runs, waits or is moved is followed to its cpu.
text detail-reasons nap "${nap[@]}" --than 20ms --detail=samecpu,sametid,samekey,-30us,+30us -v
"$PROFSCRIPT" "${nap[@]}" --than 20ms --detail=sametid --format json --input "$here/nap.data" 2>/dev/null |
	sed -nE 's/.*"pid":([0-9]+).*"part":"between".*"reason":"([a-z]+-[12])".*/\1 \2/p' >"$TMP/got"
expect_line 'why: the thread is that of the first event' '^[0-9]+ sametid-1$' "$TMP/got"
"$PROFSCRIPT" "${nap[@]}" --than 20ms --detail=sametid,2 -v --input "$here/nap.data" >"$TMP/out" 2>/dev/null
expect_line 'why: that of the second one' '^\| sametid-2  ' "$TMP/out"
expect_line 'why: the thread that is waited for goes away' '^\|\+ .* us cpu tracking end  ' "$here/detail-reasons.expect"
expect_line 'why: it waits for this cpu' '^\| samecpu-track  ' "$here/detail-reasons.expect"
expect_line 'why: the cpu of the first event' '^\| samecpu-1  ' "$here/detail-reasons.expect"
check 'no reasons without -v' test "$(grep -cE '^\| same' "$here/detail-samecpu.expect")" -eq 0
# An untraced event without the key of -k would just never be of the same key.
keyed=(multi-trace -e sched:sched_wakeup -e 'sched:sched_switch//key=next_pid/,sched:sched_switch//untraced/' -k pid --than 9ms)
check_status 'samekey: an untraced event without the key' 2 "$PROFSCRIPT" "${keyed[@]}" --detail=samekey --input "$here/hogs.data"
expect_line 'samekey: is named' "bad key of sched:sched_switch 'pid'" "$TMP/.check"
check_status 'which may be without it where it does not matter' 0 "$PROFSCRIPT" "${keyed[@]}" --detail=samecpu --input "$here/hogs.data"
"$PROFSCRIPT" "${keyed[@]/untraced/key=prev_pid/untraced}" --detail=samekey,+20ms --input "$here/hogs.data" >"$TMP/out"
expect_line 'samekey: with a key of its own' '^\|.* sched:sched_switch: prev_comm=timeout ' "$TMP/out"
check_status 'samekey: events of others have the key or not' 0 "$PROFSCRIPT" "${keyed[@]/sched:sched_switch\/\/untraced\//task-state\/\/untraced\/}" \
	--detail=samekey --input "$here/hogs.data"
text detail-json nap "${nap[@]}" --than 20ms --detail=sametid,-50us --format json

# Without a selection all that lies between the two is shown: what trace prints, but for the margin.
"$PROFSCRIPT" trace --input "$here/nap.data" | cut -c29- >"$TMP/all"
cut -c29- "$here/detail-all.expect" | grep ' \[[0-9]*\] ' >"$TMP/shown"
first=$(grep -nFx "$(head -n 1 "$TMP/shown")" "$TMP/all" | cut -d: -f1)
last=$(grep -nFx "$(tail -n 1 "$TMP/shown")" "$TMP/all" | cut -d: -f1)
sed -n "${first},${last}p" "$TMP/all" >"$TMP/want"
check 'details are all events between the two' diff "$TMP/want" "$TMP/shown"
check 'and some there are' test "$(wc -l <"$TMP/shown")" -ge 30

# The 20 ms of the nap: it sleeps, is woken and waits for the cpu.
expect_line 'the nap sleeps' '^\|\+ 305[0-9]{2}\.[0-9]{3} us .*prev_comm=sleep .* prev_state=S ' "$here/detail-sametid.expect"
expect_line 'is woken after 20 ms' '^\| .*sched_wakeup: comm=sleep ' "$here/detail-sametid.expect"
expect_line 'with its time on the tracked cpu' '^\|    200[0-9]{2}\.[0-9]{3} \[wakeup\] ' "$here/detail-samecpu.expect"
expect_line 'and runs' '^\| .*==> next_comm=sleep ' "$here/detail-sametid.expect"
expect_line 'the events before' '^-Previous -[0-9]+\.[0-9]{3} us$' "$here/detail-sametid.expect"
expect_line 'the events after' '^`After [0-9]+\.[0-9]{3} us$' "$here/detail-sametid.expect"

# A pair whose start is hidden by loss is shown as far as it is known.
check 'a recording that loses events' luajit "$here/lose.lua" "$here/hogs.data" "$TMP/hogs10.data" 10 1
"$PROFSCRIPT" multi-trace "${wakeups[@]}" --than 100us --detail=samecpu --input "$TMP/hogs10.data" >"$TMP/out" 2>"$TMP/err"
expect_line 'a start whose end may be lost' '^\| >= +[0-9]+\.[0-9]{3} us, event2 may be lost\.$' "$TMP/out"
expect_line 'dropped starts are told' '^multi-trace: [0-9]+ starts dropped: the events that end them may be lost$' "$TMP/err"

# --- what multi-trace can do besides --------------------------------------------------------------
text pair timers multi-trace "${softirqs[@]}" --impl pair
text pair-left nap multi-trace -e sched:sched_wakeup//key=pid/ -e sched:sched_migrate_task//key=pid/ --impl pair
awk '/ unpaired / { n += $NF } / paired / { n += $NF } / replaced by / { n += $3 } END { print n }' "$here/pair-left.expect" >"$TMP/got"
peer nap | grep -c ' sched:sched_wakeup: ' >"$TMP/want"
check 'pair: each start is accounted for' diff "$TMP/want" "$TMP/got"
check_status 'an option that the analysis has no use for' 2 "$PROFSCRIPT" multi-trace "${softirqs[@]}" --impl pair --than 1ms \
	--input "$here/timers.data"
expect_line 'is named' '^profscript: multi-trace: --than has no meaning with --impl pair$' "$TMP/.check"
text cycle hogs multi-trace -e 'sched:sched_switch//role="(next_pid?1:0)|(prev_pid?2:0)"/' --cycle
text trigger nap multi-trace -e raw_syscalls:sys_enter -e \
	'raw_syscalls:sys_exit,sched:sched_switch/prev_comm=="sleep"/trigger/untraced/' -k common_pid
text printkey hogs multi-trace -e 'sched:sched_wakeup//key=pid/printkey=printf("task %d",key)/' \
	-e 'sched:sched_switch//key=next_pid/' --perins

# role and --cycle: the time of tasks on a cpu, from one switch of the cpu to the next, without idling.
peer hogs | awk '$3 == "sched:sched_switch:" {
		prev = next_ = 0
		for (i = 4; i <= NF; i++) {
			if ($i ~ /^prev_pid=/) prev = substr($i, 10)
			if ($i ~ /^next_pid=/) next_ = substr($i, 10)
		}
		if (prev && $1 in since) { n++; sum += $2 - since[$1] }
		delete since[$1]
		if (next_) since[$1] = $2
	} END { print n, sum }' >"$TMP/want"
"$PROFSCRIPT" multi-trace -e 'sched:sched_switch//role="(next_pid?1:0)|(prev_pid?2:0)"/' --cycle --format csv \
	--input "$here/hogs.data" | awk -F, 'NR == 2 { print $5, $6 }' >"$TMP/got"
check 'role and --cycle: figures' diff "$TMP/want" "$TMP/got"

# Nothing is paired over a loss: each latency of what is left is one of the full recording.
latencies() { # NAME DATA ARG...
	local name=$1 data=$2
	shift 2
	rm -f "$TMP/$name"-*.lat
	"$PROFSCRIPT" multi-trace "$@" --heatmap "$TMP/$name" --input "$data" >/dev/null 2>&1
	cat "$TMP/$name"-*.lat | sort >"$TMP/$name.lats"
}
for what in hogs timers; do
	stages=("${wakeups[@]}")
	[ $what = timers ] && stages=("${softirqs[@]}")
	latencies full-$what "$here/$what.data" "${stages[@]}"
	for percent in 10 50; do
		for seed in 1 2 3 4; do
			luajit "$here/lose.lua" "$here/$what.data" "$TMP/lossy.data" $percent $seed >/dev/null
			latencies lossy "$TMP/lossy.data" "${stages[@]}"
			comm -13 "$TMP/full-$what.lats" "$TMP/lossy.lats" >"$TMP/false"
			check "$what without $percent % of its events, $seed: no false pair" diff /dev/null "$TMP/false"
			check "$what without $percent % of its events, $seed: some pairs" test -s "$TMP/lossy.lats"
		done
	done
done

# A picture, and one for each two events.
"$PROFSCRIPT" multi-trace "${softirqs[@]}" --heatmap "$TMP/map.svg" --input "$here/timers.data" >"$TMP/out"
grep -oE '<title>' "$TMP/map-softirq_entry-softirq_exit.svg" | wc -l >"$TMP/n"
check '--heatmap FILE.svg draws' test "$(cat "$TMP/n")" -ge 50
check '--heatmap leaves the table' diff <(tail -n +2 "$TMP/out") <("$PROFSCRIPT" multi-trace "${softirqs[@]}" \
	--input "$here/timers.data" | tail -n +2)
check_status '--heatmap where nothing can be written' 1 "$PROFSCRIPT" multi-trace "${softirqs[@]}" \
	--heatmap "$TMP/none/map" --input "$here/timers.data"

# -v says what is opened, and -vv prints every event, of all stages and none, as trace does.
"$PROFSCRIPT" trace --input "$here/nap.data" >"$TMP/want"
"$PROFSCRIPT" "${nap[@]}" --detail -vv --input "$here/nap.data" 2>"$TMP/err" | grep -E '^20.* (raw_syscalls|sched):' >"$TMP/got"
check 'multi-trace -vv: every event' diff "$TMP/want" "$TMP/got"
expect_line '-v: the events' '^multi-trace: 5 events$' "$TMP/err"
expect_line '-v: their attributes' '^    attributes: key=common_pid$' "$TMP/err"
"$PROFSCRIPT" syscalls -vv --input "$here/nap.data" 2>/dev/null | grep -c ' raw_syscalls:sys_' >"$TMP/got"
peer nap | grep -c ' raw_syscalls:sys_' >"$TMP/want"
check 'syscalls -vv: its events' diff "$TMP/want" "$TMP/got"
"$PROFSCRIPT" trace --input "$here/timers.data" >"$TMP/want"
"$PROFSCRIPT" nested-trace -e irq:softirq_entry,irq:softirq_exit -e timer:timer_expire_entry,timer:timer_expire_exit -vv \
	--input "$here/timers.data" 2>/dev/null | grep -E '^20.* (irq|timer):' >"$TMP/got"
check 'nested-trace -vv: every event' diff "$TMP/want" "$TMP/got"

# --- syscalls -------------------------------------------------------------------------------------
text syscalls-nap nap syscalls
text syscalls-threads nap syscalls --perins --than 1ms
text syscalls-impl nap multi-trace "${calls[@]}" --impl syscalls
check 'multi-trace --impl syscalls is syscalls' diff "$here/syscalls-nap.expect" "$here/syscalls-impl.expect"
perf script -i "$here/nap.data" --ns -G -F tid,time,event,trace 2>/dev/null |
	sed -E 's/^ *([0-9]+) +([0-9]+)\.([0-9]+): +/\1 \2\3 /' |
	awk '$3 == "raw_syscalls:sys_enter:" { nr[$1] = $5; at[$1] = $2 }
		$3 == "raw_syscalls:sys_exit:" && $1 in at && nr[$1] == $5 {
			n[$5]++; sum[$5] += $2 - at[$1]; err[$5] += $7 < 0 && $7 >= -4095; delete at[$1] }
		END { for (i in n) print i "," n[i] "," sum[i] "," err[i] }' | sort >"$TMP/want"
"$PROFSCRIPT" syscalls --input "$here/nap.data" --format json |
	sed -E 's/.*"nr":([0-9]+),"calls":([0-9]+),"total_ns":([0-9]+),.*"err":([0-9]+).*/\1,\2,\3,\4/' |
	grep -v '^231,' | sort >"$TMP/got" # exit_group does not return
check 'syscalls: figures' diff "$TMP/want" "$TMP/got"
expect_line 'exit_group lasts until the task ends' '^exit_group\(231\) +1 ' "$here/syscalls-nap.expect"

# --- nested-trace ---------------------------------------------------------------------------------
# shellcheck disable=SC2054 # commas join the events
nested=(nested-trace -e irq:softirq_entry,irq:softirq_exit -e timer:timer_expire_entry,timer:timer_expire_exit)
text nested timers "${nested[@]}"
text nested-call timers "${nested[@]}" --impl call
text nested-delay timers "${nested[@]}" --impl delay --perins
peer timers | awk '
	$3 == "irq:softirq_entry:" { at[$1] = $2; timer[$1] = 0 }
	$3 == "timer:timer_expire_entry:" { t[$1] = $2 }
	$3 == "timer:timer_expire_exit:" && $1 in t { timers++; all += $2 - t[$1]; timer[$1] += $2 - t[$1]; delete t[$1] }
	$3 == "irq:softirq_exit:" && $1 in at { n++; sum += $2 - at[$1]; own += $2 - at[$1] - timer[$1]; delete at[$1] }
	END { print "softirq_entry," n "," sum "," own; print "timer_expire_entry," timers "," all "," all }' >"$TMP/want"
"$PROFSCRIPT" "${nested[@]}" --input "$here/timers.data" --format csv | tail -n +2 | cut -d, -f3,6-8 >"$TMP/got"
check 'nested-trace: figures' diff "$TMP/want" "$TMP/got"

# Details of calls: those within them, on the same cpu. Each call of more than 20 us is shown with all
# events of its cpu from its beginning to its end.
text nested-detail timers "${nested[@]}" --than 20us --detail=samecpu,-20us,+10us
peer timers | awk '
	{ line[$1, ++n[$1]] = $3; time[$1, n[$1]] = $2 }
	$3 == "irq:softirq_entry:" { at[$1] = n[$1] }
	$3 == "irq:softirq_exit:" && $1 in at {
		if ($2 - time[$1, at[$1]] > 20000) for (i = at[$1]; i <= n[$1]; i++) print line[$1, i]
		delete at[$1] }' >"$TMP/want"
"$PROFSCRIPT" "${nested[@]}" --than 20us --detail=samecpu --input "$here/timers.data" |
	grep -oE '(irq:softirq|timer:timer)_(expire_)?(entry|exit):' >"$TMP/got"
check 'nested-trace --detail: what lies within long calls' diff "$TMP/want" "$TMP/got"
check 'nested-trace --detail: calls within them' grep -q timer_expire_exit "$TMP/got"
expect_line 'nested-trace: the events before' '^-Previous -[0-9]+\.[0-9]{3} us$' "$here/nested-detail.expect"
expect_line 'and after' '^`After [0-9]+\.[0-9]{3} us$' "$here/nested-detail.expect"
"$PROFSCRIPT" "${nested[@]}" --than 20us --detail=samekey --format json --input "$here/timers.data" >"$TMP/json"
expect_line 'nested-trace --detail: as JSON' '"event":"timer:timer_expire_entry",.*"part":"between","offset_ns":[0-9]+' "$TMP/json"
"$PROFSCRIPT" nested-trace -e irq:softirq_entry,irq:softirq_exit,timer:timer_expire_entry//untraced/ --than 20us --detail=samecpu \
	--input "$here/timers.data" >"$TMP/out" 2>"$TMP/err"
expect_line 'nested-trace: untraced events' '^\|.* timer:timer_expire_entry: ' "$TMP/out"
check 'nested-trace: which are no calls' test "$(grep -cE '^ *\|-' "$TMP/out")" -eq 0
check 'nested-trace: nothing to warn of' diff /dev/null "$TMP/err"
check_status 'nested-trace: a word that --detail does not have' 2 "$PROFSCRIPT" "${nested[@]}" --than 1us --detail=samecup \
	--input "$here/timers.data"
"$PROFSCRIPT" "${nested[@]}" --detail --input "$here/timers.data" 2>&1 >/dev/null | grep -c 'shows nothing without' >"$TMP/n"
check 'nested-trace: --detail without --than is told' test "$(cat "$TMP/n")" -eq 1
check 'a recording that loses half of it' luajit "$here/lose.lua" "$here/timers.data" "$TMP/timers50.data" 50 1
"$PROFSCRIPT" "${nested[@]}" --than 2us --detail=samecpu --input "$TMP/timers50.data" >"$TMP/out" 2>"$TMP/err"
expect_line 'nested-trace: a call whose end may be lost' '^\| >= +[0-9]+\.[0-9]{3} us, event2 may be lost\.$' "$TMP/out"
expect_line 'nested-trace: dropped calls are told' '^nested-trace: [0-9]+ calls dropped: ' "$TMP/err"

# The heat maps hold each call once: as many, and as long in all, as the table says.
"$PROFSCRIPT" "${nested[@]}" --heatmap "$TMP/nest" --format csv --input "$here/timers.data" 2>/dev/null |
	awk -F, 'NR > 1 { print $3, $6, $7 }' | sed 's/timer_expire_entry/& timer_expire_exit/; s/softirq_entry/& softirq_exit/' >"$TMP/want"
for pair in 'softirq_entry softirq_exit' 'timer_expire_entry timer_expire_exit'; do
	awk -v name="$pair" '{ n++; sum += $2 } END { print name, n, sum }' "$TMP/nest-${pair/ /-}.lat"
done >"$TMP/got"
check 'nested-trace --heatmap' diff "$TMP/want" "$TMP/got"

# --- kmemprof -------------------------------------------------------------------------------------
memory=(-e kmem:kmalloc//stack/ -e kmem:kfree//stack/)
"$PROFSCRIPT" kmemprof "${memory[@]}" --input "$here/kmemprof.data" --format json >"$TMP/json"
perf script -i "$here/kmemprof.data" -G -F event,trace 2>/dev/null |
	awk '$1 == "kmem:kmalloc:" { match($0, /ptr=[^ ]+/); p = substr($0, RSTART, RLENGTH)
			match($0, /bytes_alloc=[0-9]+/); size[p] = substr($0, RSTART + 12, RLENGTH - 12) }
		$1 == "kmem:kfree:" { match($0, /ptr=[^ ]+/); p = substr($0, RSTART, RLENGTH)
			if (p in size) { n++; sum += size[p]; delete size[p] } }
		END { for (p in size) { left++; bytes += size[p] }
			print "alloc " sum " " n; print "free " sum " " n; if (left) print "left " bytes " " left }' >"$TMP/want"
sed -nE 's/.*"what":"([a-z]+)","bytes":([0-9]+),"objects":([0-9]+),"stack":null.*/\1 \2 \3/p' "$TMP/json" >"$TMP/got"
check 'kmemprof: sums' diff "$TMP/want" "$TMP/got"
for what in alloc free; do
	sed -nE "s/.*\"what\":\"$what\",\"bytes\":([0-9]+),\"objects\":([0-9]+),\"stack\":\[.*/\1 \2/p" "$TMP/json" |
		awk -v what=$what '{ bytes += $1; n += $2 } END { print what, bytes, n }' >"$TMP/got"
	check "kmemprof: the stacks of $what add up" grep -Fxq "$(cat "$TMP/got")" "$TMP/want"
done
"$PROFSCRIPT" kmemprof "${memory[@]}" --input "$here/kmemprof.data" >"$TMP/out"
expect_line 'kmemprof: the sum' '^kmem:kmalloc total alloc [0-9]+ bytes on [0-9]+ objects$' "$TMP/out"
expect_line 'kmemprof: a stack and its part' '^Allocate [0-9]+ \([0-9]+\.[0-9]%\) bytes on [0-9]+ \([0-9]+\.[0-9]%\) objects:$' \
	"$TMP/out"
"$PROFSCRIPT" multi-trace "${memory[@]}" -k ptr --impl kmemprof --input "$here/kmemprof.data" >"$TMP/impl"
check 'multi-trace --impl kmemprof is kmemprof' diff "$TMP/out" "$TMP/impl"
"$PROFSCRIPT" kmemprof -e kmem:kmalloc -e kmem:kfree//stack/ --input "$here/kmemprof.data" 2>&1 >/dev/null | grep -c 'kmalloc' >"$TMP/n"
check 'kmemprof: one warning for events without stacks' test "$(cat "$TMP/n")" -eq 1

# --- rundelay -------------------------------------------------------------------------------------
text rundelay hogs rundelay
text rundelay-threads hogs rundelay --perins --filter 'timeout,s?'
text rundelay-detail hogs rundelay -e 'sched:sched_wakeup*,sched:sched_switch' \
	-e 'sched:sched_switch,sched:sched_migrate_task//untraced/' --than 9ms --detail=samecpu
# What waits: who was woken, unless it wakes itself or its cpu runs it already, and who stopped while it
# could run (R: its time was over, or it yielded; R+: it was preempted).
perf script -i "$here/hogs.data" --ns -G -F tid,cpu,time,event,trace 2>/dev/null |
	sed -E 's/^ *([0-9]+) +\[0*([0-9]+)\] +([0-9]+)\.([0-9]+): +/\1 \2 \3\4 /' |
	awk 'function field(name) { match($0, " " name "=[^ ]+"); return substr($0, RSTART + length(name) + 2, RLENGTH - length(name) - 2) }
		$4 ~ /sched_wakeup/ {
			pid = field("pid"); cpu = field("target_cpu") + 0
			if ($4 !~ /_new/ && ($1 == pid || (cpu in runs && runs[cpu] == pid))) next
			kind[pid] = $4; since[pid] = $3 }
		$4 == "sched:sched_switch:" {
			prev = field("prev_pid"); next_ = field("next_pid")
			if (prev > 0 && field("prev_state") ~ /^R/) { kind[prev] = $4; since[prev] = $3 }
			if (next_ in since && since[next_] < $3) { n[kind[next_]]++; sum[kind[next_]] += $3 - since[next_] }
			delete since[next_]
			runs[$2] = next_ }
		END { for (k in n) { name = k; gsub(/sched:|:$/, "", name); print name "," n[k] "," sum[k] } }' | sort >"$TMP/want"
"$PROFSCRIPT" rundelay --input "$here/hogs.data" --format csv | tail -n +2 | cut -d, -f3,5,6 | sort >"$TMP/got"
check 'rundelay: figures' diff "$TMP/want" "$TMP/got"
expect_line 'rundelay: it sees who could run but had to stop' '^sched_switch,[0-9]{2,},' "$TMP/got"
check_status 'rundelay: an event without a part in it' 2 "$PROFSCRIPT" rundelay -e sched:sched_wakeup -e sched:sched_migrate_task \
	--input "$here/hogs.data"
check_status 'rundelay: too few events' 2 "$PROFSCRIPT" rundelay -e sched:sched_wakeup -e sched:sched_switch \
	--input "$here/hogs.data"
