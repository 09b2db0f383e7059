#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only
# In a time namespace the kernel's events keep their times.
. "$(dirname "$0")/../../../lib.sh"
needs_tracepoint sched:sched_process_exec
cd "$TMP" || exit 1
if ! unshare -T --monotonic 1000 true 2>/dev/null; then
	skip 'time namespaces' 'this kernel or unshare(1) has none'
	exit
fi
for offset in 100000 -100; do
	from=$(date +%s)
	unshare -T --monotonic $offset --boottime $offset "$PROFSCRIPT" trace -e sched:sched_process_exec -N 2 --csv \
		-- sh -c '/bin/true; /bin/true' >out 2>err
	awk -F, -v from="$from" -v to="$(date +%s)" 'NR > 1 { n++; if ($2 < from || $2 > to + 1) print } END { if (n != 2) print n }' \
		out >wrong
	[ ! -s wrong ]
	result $? "events and dates with clocks shifted by $offset s" wrong
	unshare -T --monotonic $offset "$PROFSCRIPT" rundelay --duration 0.2 >out 2>err
	result $? "a run for a time, shifted by $offset s" err
done
