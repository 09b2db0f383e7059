#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only
# sched-migrate: a program that moves to the other CPU an exact number of times.
# Runs alone.
. "$(dirname "$0")/../../lib.sh"
needs_tracepoint sched:sched_migrate_task
[ "$(nproc)" -gt 1 ] || skip_all 'there is one CPU'

# migrations ARG...: CSV of the 20 moves, the first of them from CPU 0, where the program was started
migrations() {
	workload -C 0 states migrate 20
	trace_workload sched-migrate -m 1024 -i 100s --format csv -p $WORKLOAD "$@"
}
migrations
rows 'each move' 'c["total"] == 20'
migrations --filter 'dest_cpu == 0'
rows '--filter: every other one' 'c["total"] == 10'
ends_on_ctrl_c sched-migrate
