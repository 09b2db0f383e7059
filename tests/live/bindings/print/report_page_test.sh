#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only
# On a terminal, a report with a picture takes the place of the one before; without one, reports are text.
. "$(dirname "$0")/../../../lib.sh"
needs_tracepoint sched:sched_switch
command -v python3 >/dev/null || skip_all 'python3 is not installed'
picture() { python3 "$TOP/tests/tools/picture.py" "$1" "$PROFSCRIPT" "${@:2}"; }
hist=(exec -e sched:sched_switch 'hist(ev.prev_pid)' -i 200)

check 'a histogram, with earlier ones as a heat map' picture histogram "${hist[@]}"
check 'without colors' picture plain "${hist[@]}"
check 'counts by period, as a heat map' picture periods stat -e sched:sched_switch --period 20ms -i 200 --perins
check 'without -i, what was counted so far' picture 'prev_comm +count' exec -e sched:sched_switch 'count(ev.prev_comm)'
check 'latencies' picture 'calls +total' rundelay
check 'system calls' picture 'syscalls +calls' syscalls
check 'states' picture 'St +calls' task-state
check 'numbers' picture 'sched_stat_runtime +\d+ ' num-dist -e sched:sched_stat_runtime//num=runtime/
check 'leaks' picture 'KMEMLEAK STATS' kmemleak --alloc kmem:kmalloc --free kmem:kfree
check 'memory' picture '=> kmem:kfree' kmemprof -e kmem:kmalloc -e kmem:kfree
check 'pairs' picture 'paired \d+' multi-trace -e irq:softirq_entry -e irq:softirq_exit --impl pair
check 'migrations' picture 'total' sched-migrate
check 'text if lines are printed, too' picture none exec -e sched:sched_switch 'hist(ev.prev_pid) print(1)' -i 200
"$PROFSCRIPT" "${hist[@]}" --duration 1 >"$TMP/out"
check 'a pipe gets text' test "$(grep -c '^hist(ev.prev_pid):$' "$TMP/out")" -ge 2
check 'without control characters' bash -c "! grep -q $'\\033' '$TMP/out'"
