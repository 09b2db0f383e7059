#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only
# -e EVENT help: the format of an event, and the profilers that take it.
. "$(dirname "$0")/../../../lib.sh"
needs_tracepoint sched:sched_switch
cd "$TMP" || exit 1

"$PROFSCRIPT" trace -e sched:sched_switch help >help
expect_line 'help' '^  profscript trace -e sched:sched_switch \[--overwrite\]$' help
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
refused 'help without an event' 2 ".*did you mean 'sched:sched_switch'" trace -e sched:sched_swich help
refused 'a misspelled attribute' 2 ".*did you mean 'stack'" trace -e sched:sched_switch//stak/
