#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only
# The commands of docs/clocks.md, except those about virtual machines.
. "$(dirname "$0")/../../lib.sh"
needs_tracepoint sched:sched_process_exec
cd "$TMP" || exit 1
page_commands "$TOP/docs/clocks.md"
