#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only
# The scripts in docs/scripting.md are complete: each has its file name in its first line, and the commands of the page
# run them.
. "$(dirname "$0")/../../lib.sh"
page=$TOP/docs/scripting.md
export XDG_CACHE_HOME=$TOP/build/cache # of compiled BPF programs
needs_tracepoint sched:sched_switch raw_syscalls:sys_exit
cd "$TMP" || exit 1
awk '
	/^```/ { file = ""; starts = /^```lua$/; next }
	starts { file = substr($0, 4); starts = 0 }
	file { print >file }' "$page"
for script in *.lua; do
	check "$script is run" grep -Eq "^    .*\<$script" "$page"
	"$PROFSCRIPT" "./$script" --help >out 2>err
	check "$script loads" test ! -s err
done
while sleep 0.1; do /bin/true; done & # something to see
page_commands "$page"
