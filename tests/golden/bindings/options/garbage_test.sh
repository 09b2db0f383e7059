#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only
# What scripts can call never crashes, whatever they pass, and no pointer is in their reach.
. "$(dirname "$0")/../../../lib.sh"

sched=$DATA/sched.data
cd "$TMP" || exit 1

for data in sched hogs mixed; do
	"$PROFSCRIPT" "$HERE/garbage.lua" --top "$TOP" --input "$DATA/$data.data" >/dev/null 2>err
	result $? "garbage, $data.data" err
	expect_line 'all functions were called' 'called enough|[0-9]{4} calls' err
done
"$PROFSCRIPT" "$HERE/garbage.lua" --top "$TOP" --input - -e raw_syscalls:sys_enter,raw_syscalls:sys_exit <"$DATA/pipe.data" >/dev/null 2>err
result $? 'garbage, a pipe whose chunks are freed at the end' err

"$PROFSCRIPT" "$HERE/reach.lua" --input "$sched" >out 2>err
check 'no pointer is in reach' test $? -eq 0 -a ! -s out
expect_line 'of what was looked at' '^[1-9][0-9]{2,} tables$' err
