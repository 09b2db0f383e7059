#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only
# kmemprof: the memory that a program allocates and frees, by probes.
# Runs alone.
. "$(dirname "$0")/../../lib.sh"
needs_tracepoint sched:sched_switch
[ -w /sys/kernel/tracing/uprobe_events ] && [ -r /sys/bus/event_source/devices/uprobe/type ] ||
	skip_all 'no uprobes (CONFIG_UPROBE_EVENTS, uprobe PMU)'
program=$TOP/build/workloads/relations
at=@\"$program\"

"$PROFSCRIPT" kmemprof -m 1024 -e "uprobe:take$at(id=%di:u64, bytes=%si:u64)//key=id/size=bytes/stack/" \
	-e "uprobe:give$at(id=%di:u64)//key=id/stack/" --format json -- "$program" 400 >"$TMP/out" 2>"$TMP/err"
result $? 'it runs' "$TMP/err"
for what in alloc free; do
	expect_line "all of $what" "\"what\":\"$what\",\"bytes\":30000,\"objects\":300,\"stack\":null" "$TMP/out"
	expect_line "the stack of $what" "\"what\":\"$what\",\"bytes\":30000,\"objects\":300,\"stack\":\\[\"[0-9a-f]{16} (take|give)\+0x" "$TMP/out"
done
expect_line 'memory that is not freed' '"what":"left","bytes":10000,"objects":100,' "$TMP/out"
