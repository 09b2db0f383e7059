#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only
# The commands of docs/containers.md, on the container that the page starts.
. "$(dirname "$0")/../../lib.sh"
page=$TOP/docs/containers.md
needs_tracepoint sched:sched_switch raw_syscalls:sys_enter
unshare --mount --pid --fork true 2>"$TMP/err" || skip_all "$(head -n 1 "$TMP/err")"
root=$(sed -n 's/^[^ ]* \([^ ]*\) cgroup2 .*/\1/p' /proc/self/mounts | head -n 1)
[ -n "$root" ] && [ -w "$root" ] || skip_all 'no cgroup2 that may be changed'
cd "$TMP" || exit 1
ln -s "$TOP/docs" docs
page_scripts
sh docs/guide/container.sh web &
container=$!
wait_for 10 pgrep -x app >/dev/null
result $? 'the container runs'
page_commands "$page" as_shown
kill -KILL $container
wait $container 2>/dev/null
wait_for 10 rmdir "$root/web"
result $? 'nothing is left'
