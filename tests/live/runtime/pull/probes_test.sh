# SPDX-License-Identifier: GPL-2.0-only
# shellcheck shell=bash
# Probes that another profscript sets and sends: found by the name that they have there, with their arguments.
# Runs alone.
. "$(dirname "$0")/../../../lib.sh"
[ -r /sys/bus/event_source/devices/uprobe/type ] || skip_all 'no uprobe PMU'
mount -t tracefs nodev /sys/kernel/tracing 2>/dev/null
[ -w /sys/kernel/tracing/uprobe_events ] || skip_all 'no uprobe_events in tracefs'
PROBES=$TOP/build/workloads/probes
CALL="uprobe:probed_twice@\"$PROBES\"" PLACES="usdt:lab:inlined@\"$PROBES\""
PULL="pull=\"unix:$TMP/s\""

# sends ARG...: starts a sender of the workload's probes; its pid is $sender
sends() {
	rm -f "$TMP/sent"
	"$PROFSCRIPT" trace "$@" --push "unix:$TMP/s" -p "$WORKLOAD" 2>"$TMP/sent" &
	sender=$!
	wait_for 20 grep -q '^Listen at' "$TMP/sent"
	wait_ready $sender
}

# receives PROFILER ARG...: runs a receiver until the workload has ended
receives() {
	local receiver
	"$PROFSCRIPT" "$@" >"$TMP/out" 2>"$TMP/err" &
	receiver=$!
	wait_for 20 grep -q '^Accept client' "$TMP/sent"
	go
	wait $sender $receiver
}

workload probes 100
sends -e "$CALL(i=%di:s32)" -e "uretprobe:probed_twice@\"$PROBES\"(twice=\$retval)"
receives multi-trace -e "uprobe:probed_twice//$PULL/key=i/" -e "uretprobe:probed_twice//$PULL/key='twice / 2'/" \
	--csv
rows 'pairs by arguments' 'c["calls"] == 100'

workload probes 100
sends -e "$CALL" -e "$PLACES"
receives trace -e "$CALL//$PULL/" -e "usdt:lab:inlined//$PULL/"
check 'a probe without arguments, by the text that set it' \
	test "$(grep -c ' G .* uprobe:probed_twice: (' "$TMP/out")" -eq 100
check 'all places of a USDT probe' test "$(grep -c ' G .* usdt:lab:inlined: (' "$TMP/out")" -eq 100

workload probes 100
sends -e "$CALL(i=%di:s32)"
receives exec -e "uprobe:probed_twice/i > 90/" 'count(ev.i)' --input "unix:$TMP/s" --csv
check 'a whole run: a filter and a script read arguments' test "$(grep -c '^count(ev.i),.*,9[1-9],1$' "$TMP/out")" -eq 9

workload probes 100
sends -e "$CALL(i=%di:s32)"
refused 'one that is not sent' 1 "unix:$TMP/s does not send uprobe:probed_twic; it sends uprobe:probed_twice" \
	trace -e "uprobe:probed_twic//$PULL/"
refused 'one that is not sent to a whole run' 1 "unix:$TMP/s does not send uprobe:probed_twic; it sends uprobe:probed_twice" \
	trace -e uprobe:probed_twic --input "unix:$TMP/s"
refused 'arguments are those of the sender' 2 "bad key of uprobe:probed_twice 'j': unknown variable 'j'" \
	multi-trace --cycle -e "$CALL(j=%di)//$PULL/key=j/"
go
wait $sender

# The sender is started anew, and sets the probes in another order, so the kernel gives them other ids.
workload probes 300 50
sends -e "$CALL(i=%di:s32)" -e "$PLACES"
"$PROFSCRIPT" trace -e "uprobe:probed_twice//$PULL/,usdt:lab:inlined//$PULL/" >"$TMP/out" 2>"$TMP/err" &
receiver=$!
wait_for 20 grep -q '^Accept client' "$TMP/sent"
echo >&"$workload_go"
exec {workload_go}>&-
wait_for 20 grep -q usdt:lab:inlined "$TMP/out"
kill -KILL $sender
rm -f "$TMP/s"
wait $sender 2>/dev/null
wait_for 20 grep -q Disconnect "$TMP/err"
cp "$TMP/out" "$TMP/before"
sends -e "$PLACES" -e "$CALL(i=%di:s32)"
wait $sender $receiver
tail -n +$(($(wc -l <"$TMP/before") + 1)) "$TMP/out" >"$TMP/after"
for event in 'uprobe:probed_twice: \([0-9a-f]+\) i=[0-9]+' 'usdt:lab:inlined: \([0-9a-f]+\)'; do
	expect_line "before the sender was started anew: $event" " G .* $event" "$TMP/before"
	expect_line "after it: $event" " G .* $event" "$TMP/after"
done
check 'each event is of one probe' bash -c "! grep -v -E ' (uprobe:probed_twice: .*i=|usdt:lab:inlined: [^ ]*)' '$TMP/out'"
