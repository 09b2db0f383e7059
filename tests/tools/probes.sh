# SPDX-License-Identifier: GPL-2.0-only
# shellcheck shell=bash
# Probes of build/workloads/probes, which passes each of them N times with known arguments, for tests that source this
# after tests/lib.sh. Skips them if the kernel has no uprobes.
LIST=/sys/kernel/tracing/uprobe_events
PROGRAM=$TOP/build/workloads/probes
N=1000

[ -d /sys/kernel/tracing/events ] || mount -t tracefs nodev /sys/kernel/tracing 2>/dev/null
[ -w $LIST ] || skip_all "no writable uprobe_events in tracefs (CONFIG_UPROBE_EVENTS)"
[ -r /sys/bus/event_source/devices/uprobe/type ] || skip_all "no uprobe PMU"

# trace EVENTS ARG...: the lines go to $TMP/out, the output of the program to $TMP/seen
trace() {
	local events=$1
	shift
	rm -f "$TMP/out"
	"$PROFSCRIPT" trace -o "$TMP/out" -e "$events" "$@" >"$TMP/seen" 2>"$TMP/err" || {
		cat "$TMP/err"
		return 1
	}
}

# lines NAME COUNT EVENT [FIELDS]: the event has COUNT lines; the i-th has FIELDS, an awk expression with i
lines() {
	awk -v want="$2" -v event=" $3: " "
		index(\$0, event) {
			i++
			fields = ${4:-\"\"}
			if (fields != \"\" && substr(\$0, length(\$0) - length(fields)) != \" \" fields) {
				print \"line \" i \" is not ... \" fields \": \" \$0
				bad = 1
				exit
			}
		}
		END { if (i != want && !bad) print i + 0 \" lines\"; exit bad || i != want }" \
		"$TMP/out" >"$TMP/.lines" 2>&1
	result $? "$1" "$TMP/.lines"
}

left_over() {
	grep -F "$PROGRAM" $LIST
}

nothing_left() {
	left_over >"$TMP/.left"
	result $((! $?)) "$1: nothing stays in uprobe_events" "$TMP/.left"
}

at="@\"$PROGRAM\""
text='(i % 2 ? "odd" : "even")'
