#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only
# Strings of execve: those of the new address space after a success, those of the caller after a failure, whichever
# thread calls. Calls that begin again are no errors.
. "$(dirname "$0")/../../../lib.sh"
needs_tracepoint syscalls:sys_exit_execve
cd "$TMP" || exit 1
execs=$TOP/build/workloads/execs

"$PROFSCRIPT" exec -e syscalls:sys_exit_execve 'print(ev.ret, ev:string "filename", ev:string "argv", #ev:string "envp" > 0)' \
	--record r.data -- env A=b "$execs" 20 >out 2>err
status=$?
unavailable $status 'strings behind pointers' && exit
check 'a success' test "$(grep -cx $'0\t/bin/true\ttrue some-argument\ttrue' out)" -eq 20
check 'in a thread' test "$(grep -cx $'0\t/bin/true\ttrue from a thread\ttrue' out)" -eq 20
check 'a failure' test "$(grep -cE $'^-2\t(/absent\tabsent 1|<unreadable>\t.*)\ttrue$' out)" -eq 1
check 'nothing else is unreadable' test "$(grep -c '^0.*unreadable' out)" -eq 0
"$PROFSCRIPT" "$TOP/examples/execsnoop.lua" -- "$execs" 20 >out 2>err
check 'execsnoop prints all' test "$(grep -cE '^ *[0-9]+ execs +/bin/true +true (some-argument|from a thread)$' out)" -eq 40
# shellcheck disable=SC2046 # many arguments
"$PROFSCRIPT" exec -e syscalls:sys_exit_execve 'print(ev:string "argv")' -- bash -c "exec /bin/true '' $(echo {1..40})" >out 2>err
expect_line 'a long list is cut' '^/bin/true  1 2 .* 29 30 \.\.\.$' out

cat >restart.py <<'E2'
import os, signal, threading, time
signal.signal(signal.SIGALRM, lambda *a: None)
r, w = os.pipe()
signal.setitimer(signal.ITIMER_REAL, 0.1)
threading.Timer(0.3, lambda: os.write(w, b'x')).start()
os.read(r, 1)
E2
"$PROFSCRIPT" syscalls -e raw_syscalls:sys_enter/id==read/ -e raw_syscalls:sys_exit/id==read/ -- python3 restart.py >out 2>err
expect_line 'a call that begins again is no error' '^read\(0\) .* 0$' out
