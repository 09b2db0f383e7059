#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only
# The commands in the README's indented lines succeed and print something.
. "$(dirname "$0")/../lib.sh"
needs_tracepoint sched:sched_wakeup raw_syscalls:sys_enter
cd "$TOP" || exit 1
while sleep 0.1; do /bin/true; done & # something to see
for _ in $(seq $((3 * $(nproc)))); do
	nice -n 19 bash -c 'while :; do :; done' & # and delays
done
page_commands README.md
