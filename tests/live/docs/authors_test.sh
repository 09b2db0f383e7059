#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only
# docs/first-profiler.md can be followed from its first command to its last, and the commands, scripts and one-liners in
# docs/from-bpftrace.md and docs/from-perf-python.md run.
. "$(dirname "$0")/../../lib.sh"
needs_tracepoint sched:sched_switch sched:sched_wakeup syscalls:sys_enter_read

mkdir "$TMP/first" "$TMP/from-bpftrace" "$TMP/from-perf-python"
cd "$TMP/first" || exit 1
while sleep 0.05; do /bin/true; done & # something to see
python3 -c 'import threading
while True: threading.Event().wait(0.05)' & # futexes to wait for, which a quiet machine does not have
# The page begins with what `new` writes, and replaces it after the second command that runs it.
sed '/^```lua$/,$d' "$TOP/docs/first-profiler.md" >begin.md
sed '1,/^```lua$/d' "$TOP/docs/first-profiler.md" >end.md
page_commands begin.md
check 'new has written the script' grep -q "'sched:sched_wakeup'" whowakes.lua
page=$TOP/docs/first-profiler.md page_scripts
page_commands end.md
check 'the test has an expectation' test -s whowakes.short.expect

# follow PAGE SECTION COUNT: runs its scripts, its commands, and at least COUNT one-liners of the table in a section
follow() {
	cd "$TMP/$1" || exit 1
	page=$TOP/docs/$1.md page_scripts
	page_commands "$TOP/docs/$1.md"
	sed -n "/^## $2/,/^## [^$(printf %.1s "$2")]/p" "$TOP/docs/$1.md" | grep '^|' | tail -n +3 |
		sed -E 's/^.*\| `([^`]*)`[^`|]*(`[^`|]*`)?[^`|]*\|$/\1/' | grep -E '^(exec|sql|list|multi-trace) ' | grep -v '\.\.\.' >one-liners
	check "$1: there are one-liners" test "$(wc -l <one-liners)" -ge "$3"
	while IFS= read -r line; do
		# Something for each: reads, programs that start, calls of the C library, and a write to the disk.
		run=
		[[ $line != *' -e '* || $line == *' help' ]] || run="--duration 1 -- bash -c 'dd if=/dev/zero of=$TOP/build/written bs=4k count=1 oflag=sync;
			for i in {1..20}; do ls /usr/lib >/dev/null; done; for i in {1..100000}; do :; done'"
		bash -c "exec \"\$0\" $line $run" "$PROFSCRIPT" >"$TMP/out" 2>"$TMP/err" </dev/null
		status=$?
		[ $status -ne 0 ] || [ -s "$TMP/out" ] || { status=1; echo 'it printed nothing' >"$TMP/err"; }
		unavailable $status "$line" || result $status "$line" "$TMP/err"
	done <one-liners
}
follow from-bpftrace One-liners 20
follow from-perf-python "perf's scripts" 4
