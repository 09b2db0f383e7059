#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only
# Exit status 3: this machine lacks or forbids what a valid command line asks for. A misspelled name is status 2.
# Runs alone.
. "$(dirname "$0")/../../../lib.sh"
needs_tracepoint sched:sched_switch
cd "$TMP" || exit 1

if ! unshare -m true 2>/dev/null; then
	skip_all 'no unshare or no mount namespaces'
fi
# without SYSTEM: creates a profscript for which the kernel has no events of this system
without() {
	printf '#!/bin/sh\nexec unshare -m sh -c '\''mount -t tmpfs none /sys/kernel/tracing/events/%s && exec "$@"'\'' - "%s" "$@"\n' \
		"$1" "$profscript" >lacking
	chmod +x lacking
	PROFSCRIPT=$TMP/lacking
}
profscript=$PROFSCRIPT
without sched
cp "$TOP/examples/wakeups.lua" .
refused 'events that a profiler names' 3 "task-state: this kernel has no event 'sched:sched_switch'$" task-state \
	--capture perf
refused 'also if it is a source' 3 "task-state: this kernel has no event 'sched:sched_switch'$" trace -e task-state
refused 'events that are the default of an option' 3 "rundelay: this kernel has no event 'sched:sched_wakeup'$" rundelay
refused 'events that the user names' 2 "no such event 'sched:sched_switch'" trace -e sched:sched_switch
refused 'also for such an option' 2 "no such event 'sched:sched_wakeup'" \
	rundelay -e sched:sched_wakeup -e sched:sched_switch -e sched:sched_switch//untraced/
refused "events that a user's script names" 1 "./wakeups.lua:[0-9]+: no such event 'sched:sched_wakeup'" ./wakeups.lua
PROFSCRIPT=$profscript
cat >lacks.lua <<'END'
return { summary = 'x', start = function() require('lib.failure').unavailable('no such %s', 'device') end }
END
refused 'a script that reports a missing feature' 3 'no such device$' ./lacks.lua
refused 'a misspelled tracepoint' 2 "no such event 'sched:sched_swich'; did you mean" trace -e sched:sched_swich
refused 'a misspelled profiler' 2 "no such profiler 'tak-state'; did you mean" tak-state
