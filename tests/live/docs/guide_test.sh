#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only
# The commands in docs/guide succeed on the service of their page, and print the headings and events that the page shows.
# Runs on an idle machine.
. "$(dirname "$0")/../../lib.sh"
export XDG_CACHE_HOME=$TOP/build/cache # of compiled BPF programs
needs_tracepoint sched:sched_switch raw_syscalls:sys_exit
[ "$(uname -m)" = x86_64 ] || skip_all 'the pages have system call numbers and registers of x86-64'
cd "$TOP" || exit 1

# The kernel allocates memory that it does not free for a while.
python3 -c 'import os, time
pipes = []
while True:
    pipes.append(os.pipe())
    for end in pipes.pop(0) if len(pipes) > 400 else ():
        os.close(end)
    time.sleep(0.002)' &

for page in docs/guide/*.md; do
	mode=$(sed -n 's/^    python3 docs\/guide\/service.py \([a-z]*\) &$/\1/p' "$page")
	if [ -n "$mode" ]; then
		python3 docs/guide/service.py "$mode" &
		service=$!
		check "$page: $mode starts" wait_for 10 grep -qx service /proc/$service/comm
	fi
	page_commands "$page" as_shown
	[ -z "$mode" ] || { kill "$service" && wait "$service"; } 2>/dev/null
done
check 'all pages are in the index' bash -c 'cd docs/guide && for page in [a-z]*.md; do grep -qF "($page)" README.md; done'
check 'all modes are in a page' bash -c '
	for mode in $(python3 docs/guide/service.py 2>&1 | sed "s/.* //; s/|/ /g"); do
		grep -q "service.py $mode &" docs/guide/*.md || exit 1
	done'
