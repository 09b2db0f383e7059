#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only
# page-faults: where a program faults, with its registers.
. "$(dirname "$0")/../../lib.sh"
needs_tracepoint sched:sched_switch
burn=$TOP/build/workloads/burn
cd "$TMP" || exit 1

"$PROFSCRIPT" page-faults -N 1 -g -- "$burn" 1 >fault
expect_line 'a page fault' ' burn +[0-9]+ \[[0-9]{3}\] [0-9.]+: page-fault: addr [0-9a-f]{16} ip [^ ]+$' fault
if [ "$(uname -m)" = x86_64 ]; then
	expect_line 'its registers' '^      RIP: [0-9a-f]{16} RSP: [0-9a-f]{16} RFLAGS:[0-9a-f]{8}$' fault
	"$PROFSCRIPT" page-faults -N 1 -g --exclude-user -- "$burn" 1 >fault
	awk '/\(\[kernel\.kallsyms\]\)$/ { kernel++; late += registers } /^ +RIP: / { registers = kernel > 0 }
		/^    0000/ { user += registers } END { exit !(registers && user && !late) }' fault
	result $? 'those of a fault in the kernel are between its frames and those of user space' fault
fi
