#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only
# list: all tracepoints of this kernel and no others.
. "$(dirname "$0")/../../lib.sh"
needs_tracepoint sched:sched_switch
cd "$TMP" || exit 1

"$PROFSCRIPT" list >list
check 'list has all tracepoints' bash -c "! grep -vxF -f list /sys/kernel/tracing/available_events"
check 'and no others' bash -c "! grep -v ' \\[\|^ftrace:' list | grep -vxF -f /sys/kernel/tracing/available_events"
check 'in order' bash -c "grep -v ' \\[' list | LC_ALL=C sort -c"
expect_line 'list by a part of the name' '^sched:sched_wakeup_new$' <("$PROFSCRIPT" list ched_wakeup_n)
expect_line 'list' '^page-faults +\[software event\]$' list
refused 'list nothing' 1 "no event matches 'no_such'" list no_such
refused 'a function is not listed unasked' 1 "no event matches 'vfs_read'; functions of the kernel are listed by 'fentry:vfs_read'" list vfs_read
if [ -r /sys/kernel/btf/vmlinux ]; then
	expect_line 'how tracepoints with types are listed' '^tp_btf:TRACEPOINT +\[tracepoint with typed arguments\]$' list
	expect_line 'tracepoints with types' '^tp_btf:sched_wakeup_new$' <("$PROFSCRIPT" list 'tp_btf:sched_wakeup*')
	expect_line 'functions, by the name of a probe' '^kretprobe:vfs_read$' <("$PROFSCRIPT" list 'kretprobe:vfs_rea*')
	check 'and no others' bash -c "! '$PROFSCRIPT' list 'fentry:vfs_rea*' | grep -v '^fentry:vfs_rea'"
else
	skip 'events with types' 'the kernel has no BTF'
fi
