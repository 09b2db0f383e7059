#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only
# --check: what this kernel and this user can trace.
. "$(dirname "$0")/../../../lib.sh"
needs_tracepoint sched:sched_switch
cd "$TMP" || exit 1

"$PROFSCRIPT" --check >out
check '--check: tracepoints work' test $? -eq 0
expect_line '--check' '^ok  tracepoints: ' out
check '--check: each line in its form' bash -c '! grep -Ev "^(ok|no|--)  [a-zA-Z -]+: " out'
if su nobody -s /bin/sh -c 'test -x "$0" && test ! -r /sys/kernel/tracing/events' "$PROFSCRIPT" 2>/dev/null; then
	check_status '--check: the user nobody' 1 su nobody -s /bin/sh -c '"$0" --check' "$PROFSCRIPT"
else
	skip '--check: the user nobody' 'other users cannot reach the program, or may trace'
fi
