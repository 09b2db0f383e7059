#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only
# The end of a run with very many tracepoints, which the kernel closes slowly: nobody waits for it.
# Runs alone.
. "$(dirname "$0")/../../../lib.sh"
needs_tracepoint syscalls:sys_exit_read

now() { date +%s%N; }
gone() { ! pgrep -x 'closing events' >"$TMP/closers"; }

wait_for 60 gone
start=$(now)
lines=$("$PROFSCRIPT" trace -e 'syscalls:sys_exit_[p-r]*' -N 5 2>"$TMP/err" | wc -l)
ended=$(now)
gone
check 'a run with many system calls prints its events' test "$lines" -eq 5
check 'it ends' wait_for 120 gone
closed=$(now)
echo "# the run and its pipe: $(((ended - start) / 1000000)) ms, then closing: $(((closed - ended) / 1000000)) ms"
check 'neither the run nor the reader of its output waits for it' test $((closed - ended)) -gt $((ended - start))

"$PROFSCRIPT" trace -e sched:sched_switch -N 1 >"$TMP/out" 2>"$TMP/err"
check 'a run with few events closes them itself' gone

# Nor does a run that cannot have all of them open them first.
bash -c 'ulimit -n 100; exec "$@"' - "$PROFSCRIPT" trace -e 'syscalls:sys_exit_*' 2>"$TMP/err"
expect_line 'too few file descriptors' '^profscript: [0-9]+ file descriptors needed, but only 100 allowed' "$TMP/err"
