#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only
# The scripts in the pages for authors are complete: each has its file name in its first line, and the commands of its page
# run them and print what the page shows.
. "$(dirname "$0")/../../lib.sh"
export XDG_CACHE_HOME=$TOP/build/cache # of compiled BPF programs
needs_tracepoint sched:sched_switch raw_syscalls:sys_exit syscalls:sys_enter_openat
while sleep 0.1; do /bin/true; done & # something to see
for name in scripting twenty pointers recorders sources; do
	page=$TOP/docs/$name.md
	mkdir "$TMP/$name" && cd "$TMP/$name" || exit 1
	page_scripts
	for script in *.lua; do
		check "$name: $script is run" grep -Eq "^    .*\\<$script" "$page"
		"$PROFSCRIPT" "./$script" --help >out 2>err
		check "$name: $script loads" test ! -s err
	done
	page_commands "$page" as_shown
done
