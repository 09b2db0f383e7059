#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only
# multi-trace with all of its options: numbers compared with those computed from perf script's text, outputs with
# *.expect files.
. "$(dirname "$0")/../../lib.sh"
export TZ=UTC
wakeups=(-e sched:sched_wakeup//key=pid/ -e sched:sched_switch//key=next_pid/)
calls=(-e raw_syscalls:sys_enter -e raw_syscalls:sys_exit)
softirqs=(-e irq:softirq_entry -e irq:softirq_exit)
wakeup_stages=(sched:sched_wakeup:pid sched:sched_switch:next_pid)
declare -A peers # perf script's text by recording

# figures NAME DATA "SETTING..." ARG... -- STAGE...: the numbers of the command are right
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
		perf script -i "$DATA/$data.data" --ns -G -F +pid 2>/dev/null >"${peers[$data]}"
	fi
	"$PROFSCRIPT" multi-trace "${args[@]}" --input "$DATA/$data.data" --format json >"$TMP/json"
	# shellcheck disable=SC2086 # settings are words
	check "$name: numbers" luajit "$TOP/tests/tools/latency.lua" "${peers[$data]}" "$TMP/json" $settings "$@"
	expect_output "multi-trace-$name" "$data" multi-trace "${args[@]}"
}

# --- numbers --------------------------------------------------------------------------------------
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

# The lines printed because of thresholds are those of trace, in order, before the table.
"$PROFSCRIPT" trace --input "$DATA/sched.data" >"$TMP/lines"
for threshold in than=50000 lower=600; do
	luajit "$TOP/tests/tools/latency.lua" "${peers[sched]}" "$TMP/lines" print $threshold "${wakeup_stages[@]}" >"$TMP/want"
	"$PROFSCRIPT" multi-trace "${wakeups[@]}" --$threshold --input "$DATA/sched.data" |
		grep ' \[[0-9]*\] ' >"$TMP/got"
	check "--$threshold: the events of the pairs" diff "$TMP/want" "$TMP/got"
done
grep -c . "$TMP/want" >"$TMP/n"
check 'some pairs are below the threshold' test "$(cat "$TMP/n")" -ge 20

# --only-than: no table if no latency was longer, otherwise the same table.
expect_text '--only-than 1s prints nothing' /dev/null \
	"$PROFSCRIPT" multi-trace "${wakeups[@]}" --only-than 1s --input "$DATA/sched.data"
expect_text '--only-than 50us is --than 50us' "$HERE/multi-trace-wakeups-than.expect" \
	"$PROFSCRIPT" multi-trace "${wakeups[@]}" --only-than 50us --input "$DATA/sched.data"

# -N counts events, not pairs; -o writes what stdout gets.
"$PROFSCRIPT" multi-trace "${wakeups[@]}" -N 60 --input "$DATA/sched.data" --format json >"$TMP/json"
head -n 60 "${peers[sched]}" >"$TMP/first"
check '-N 60' luajit "$TOP/tests/tools/latency.lua" "$TMP/first" "$TMP/json" "${wakeup_stages[@]}"
"$PROFSCRIPT" multi-trace "${wakeups[@]}" --input "$DATA/sched.data" -o "$TMP/out"
check '-o FILE gets the same' cmp "$HERE/multi-trace-wakeups.expect" "$TMP/out"

# --- details --------------------------------------------------------------------------------------
nap=(multi-trace -e raw_syscalls:sys_enter//key=common_pid/
	-e 'raw_syscalls:sys_exit//key=common_pid/,sched:sched_wakeup//untraced/,sched:sched_switch//untraced/,sched:sched_migrate_task//untraced/')
expect_output multi-trace-detail-all nap "${nap[@]}" --than 20ms --detail
expect_output multi-trace-detail-samecpu nap "${nap[@]}" --than 20ms --detail=samecpu
expect_output multi-trace-detail-sametid nap "${nap[@]}" --than 20ms --detail=sametid,-50us,+50us
expect_output multi-trace-detail-samekey nap "${nap[@]}" --than 20ms --detail=samekey,+30us
expect_output multi-trace-detail-hide nap "${nap[@]}" --than 20ms --detail='hide<1ms'
expect_output multi-trace-detail-lower nap "${nap[@]}" --lower 1us --detail
# With -v each line says why it is shown: the task that runs, waits or migrates is followed to its CPU.
expect_output multi-trace-detail-reasons nap "${nap[@]}" --than 20ms --detail=samecpu,sametid,samekey,-30us,+30us -v
"$PROFSCRIPT" "${nap[@]}" --than 20ms --detail=sametid --format json --input "$DATA/nap.data" 2>/dev/null |
	sed -nE 's/.*"pid":([0-9]+).*"part":"between".*"reason":"([a-z]+-[12])".*/\1 \2/p' >"$TMP/got"
expect_line 'why: the thread of the first event' '^[0-9]+ sametid-1$' "$TMP/got"
"$PROFSCRIPT" "${nap[@]}" --than 20ms --detail=sametid,2 -v --input "$DATA/nap.data" >"$TMP/out" 2>/dev/null
expect_line 'why: the thread of the second event' '^\| sametid-2  ' "$TMP/out"
expect_line 'why: the tracked thread is switched out' '^\|\+ .* us cpu tracking end  ' "$HERE/multi-trace-detail-reasons.expect"
expect_line 'why: it waits for this CPU' '^\| samecpu-track  ' "$HERE/multi-trace-detail-reasons.expect"
expect_line 'why: the CPU of the first event' '^\| samecpu-1  ' "$HERE/multi-trace-detail-reasons.expect"
check 'no reasons without -v' test "$(grep -cE '^\| same' "$HERE/multi-trace-detail-samecpu.expect")" -eq 0
# An untraced event without the key of -k would never match.
keyed=(multi-trace -e sched:sched_wakeup -e 'sched:sched_switch//key=next_pid/,sched:sched_switch//untraced/' -k pid --than 9ms)
check_status 'samekey: an untraced event without the key' 2 "$PROFSCRIPT" "${keyed[@]}" --detail=samekey --input "$DATA/hogs.data"
expect_line 'samekey: is named' "bad key of sched:sched_switch 'pid'" "$TMP/.check"
check_status 'which may lack it if it does not matter' 0 "$PROFSCRIPT" "${keyed[@]}" --detail=samecpu --input "$DATA/hogs.data"
"$PROFSCRIPT" "${keyed[@]/untraced/key=prev_pid/untraced}" --detail=samekey,+20ms --input "$DATA/hogs.data" >"$TMP/out"
expect_line 'samekey: with its own key' '^\|.* sched:sched_switch: prev_comm=timeout ' "$TMP/out"
check_status 'samekey: events of others may lack the key' 0 "$PROFSCRIPT" "${keyed[@]/sched:sched_switch\/\/untraced\//task-state\/\/untraced\/}" \
	--detail=samekey --input "$DATA/hogs.data"
expect_output multi-trace-detail-json nap "${nap[@]}" --than 20ms --detail=sametid,-50us --format json

# Without a selection everything between the two events is shown: the output of trace, except for the margin.
"$PROFSCRIPT" trace --input "$DATA/nap.data" | cut -c29- >"$TMP/all"
cut -c29- "$HERE/multi-trace-detail-all.expect" | grep ' \[[0-9]*\] ' >"$TMP/shown"
first=$(grep -nFx "$(head -n 1 "$TMP/shown")" "$TMP/all" | cut -d: -f1)
last=$(grep -nFx "$(tail -n 1 "$TMP/shown")" "$TMP/all" | cut -d: -f1)
sed -n "${first},${last}p" "$TMP/all" >"$TMP/want"
check 'the details are all events between the two' diff "$TMP/want" "$TMP/shown"
check 'and there are some' test "$(wc -l <"$TMP/shown")" -ge 30

# The nap of 20 ms: the task sleeps, is woken and waits for the CPU.
expect_line 'the nap sleeps' '^\|\+ 305[0-9]{2}\.[0-9]{3} us .*prev_comm=sleep .* prev_state=S ' "$HERE/multi-trace-detail-sametid.expect"
expect_line 'is woken after 20 ms' '^\| .*sched_wakeup: comm=sleep ' "$HERE/multi-trace-detail-sametid.expect"
expect_line 'with its time on the tracked CPU' '^\|    200[0-9]{2}\.[0-9]{3} \[wakeup\] ' "$HERE/multi-trace-detail-samecpu.expect"
expect_line 'and runs' '^\| .*==> next_comm=sleep ' "$HERE/multi-trace-detail-sametid.expect"
expect_line 'the events before' '^-Previous -[0-9]+\.[0-9]{3} us$' "$HERE/multi-trace-detail-sametid.expect"
expect_line 'the events after' '^`After [0-9]+\.[0-9]{3} us$' "$HERE/multi-trace-detail-sametid.expect"

# A pair whose start is hidden by a loss is shown as far as it is known.
check 'a recording that loses events' luajit "$TOP/tests/tools/lose.lua" "$DATA/hogs.data" "$TMP/hogs10.data" 10 1
"$PROFSCRIPT" multi-trace "${wakeups[@]}" --than 100us --detail=samecpu --input "$TMP/hogs10.data" >"$TMP/out" 2>"$TMP/err"
expect_line 'a start whose end may be lost' '^\| >= +[0-9]+\.[0-9]{3} us, event2 may be lost\.$' "$TMP/out"
expect_line 'dropped starts are reported' '^multi-trace: [0-9]+ starts dropped: the events that end them may be lost$' "$TMP/err"

# --- other features of multi-trace ----------------------------------------------------------------
expect_output multi-trace-pair timers multi-trace "${softirqs[@]}" --impl pair
expect_output multi-trace-pair-left nap multi-trace -e sched:sched_wakeup//key=pid/ -e sched:sched_migrate_task//key=pid/ --impl pair
awk '/ unpaired / { n += $NF } / paired / { n += $NF } / replaced by / { n += $3 } END { print n }' "$HERE/multi-trace-pair-left.expect" >"$TMP/got"
perf_text nap | grep -c ' sched:sched_wakeup: ' >"$TMP/want"
check 'pair: each start is accounted for' diff "$TMP/want" "$TMP/got"
check_status 'an option that the analysis does not use' 2 "$PROFSCRIPT" multi-trace "${softirqs[@]}" --impl pair --than 1ms \
	--input "$DATA/timers.data"
expect_line 'is named' '^profscript: multi-trace: --than does not work with --impl pair$' "$TMP/.check"
expect_output multi-trace-cycle hogs multi-trace -e 'sched:sched_switch//role="(next_pid?1:0)|(prev_pid?2:0)"/' --cycle
expect_output multi-trace-trigger nap multi-trace -e raw_syscalls:sys_enter -e \
	'raw_syscalls:sys_exit,sched:sched_switch/prev_comm=="sleep"/trigger/untraced/' -k common_pid
expect_output multi-trace-printkey hogs multi-trace -e 'sched:sched_wakeup//key=pid/printkey=printf("task %d",key)/' \
	-e 'sched:sched_switch//key=next_pid/' --perins

# role and --cycle: the time of tasks on a CPU, from one switch of the CPU to the next, without the idle task.
perf_text hogs | awk '$3 == "sched:sched_switch:" {
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
	--input "$DATA/hogs.data" | awk -F, 'NR == 2 { print $5, $6 }' >"$TMP/got"
check 'role and --cycle: numbers' diff "$TMP/want" "$TMP/got"

# One picture for each two events.
"$PROFSCRIPT" multi-trace "${softirqs[@]}" --heatmap "$TMP/map.svg" --input "$DATA/timers.data" >"$TMP/out"
grep -oE '<title>' "$TMP/map-softirq_entry-softirq_exit.svg" | wc -l >"$TMP/n"
check '--heatmap FILE.svg draws' test "$(cat "$TMP/n")" -ge 50
check '--heatmap also prints the table' diff <(tail -n +2 "$TMP/out") <("$PROFSCRIPT" multi-trace "${softirqs[@]}" \
	--input "$DATA/timers.data" | tail -n +2)
check_status '--heatmap that cannot be written' 1 "$PROFSCRIPT" multi-trace "${softirqs[@]}" \
	--heatmap "$TMP/none/map" --input "$DATA/timers.data"

# -v prints what is opened, and -vv every event, of all stages and of none, as trace does.
"$PROFSCRIPT" trace --input "$DATA/nap.data" >"$TMP/want"
"$PROFSCRIPT" "${nap[@]}" --detail -vv --input "$DATA/nap.data" 2>"$TMP/err" | grep -E '^20.* (raw_syscalls|sched):' >"$TMP/got"
check 'multi-trace -vv: every event' diff "$TMP/want" "$TMP/got"
expect_line '-v: the events' '^multi-trace: 5 events$' "$TMP/err"
expect_line '-v: their attributes' '^    attributes: key=common_pid$' "$TMP/err"
