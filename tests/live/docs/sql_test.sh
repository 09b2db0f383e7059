#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only
# The commands of docs/sql.md.
. "$(dirname "$0")/../../lib.sh"
needs_tracepoint sched:sched_wakeup sched:sched_switch irq:softirq_entry raw_syscalls:sys_enter
cd "$TMP" || exit 1
page_commands "$TOP/docs/sql.md"
