#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only
# files: a known number of writes to files that are opened in the run, before it, and by others.
. "$(dirname "$0")/../../lib.sh"
needs_tracepoint raw_syscalls:sys_enter raw_syscalls:sys_exit syscalls:sys_exit_openat sched:sched_process_exec

# Opened in the run, by its absolute path, and by one from the folder to which a shell changes.
exec 5>>"$TMP/before"
"$PROFSCRIPT" files -m 1024 --top 10000 --csv -- sh -c '
	cd "$1" && dd if=/dev/zero of="$1/new" bs=4096 count=50 conv=fsync && exec dd if=new bs=8192 count=3 >&5
	' - "$TMP" >"$TMP/out" 2>"$TMP/err"
exec 5>&-
# Which column is which: table,time,task,op,calls,err,bytes,total_ns,avg_ns,p99_ns,max_ns,file
rows 'writes of 4096 bytes' 'c["op"] == "write" && c["calls"] == 50 && c["bytes"] == 204800 && c["file"] ~ "/new$"'
rows 'fsync' 'c["op"] == "sync" && c["calls"] == 1 && c["file"] ~ "^/.*/new$"'
rows 'a relative path' 'c["op"] == "read" && c["calls"] == 3 && c["bytes"] == 24576 && c["file"] ~ "^/.*/new$"'
rows 'a descriptor from before the run' \
	'c["op"] == "write" && c["calls"] == 3 && c["bytes"] == 24576 && c["file"] ~ "^/.*/before$"'

# Opened before the run by a process that is there.
mkfifo "$TMP/go"
bash -c 'exec 6>>"$1/old"; read -r _; for i in {1..40}; do echo hello >&6; done; : >"$1/done"; read -r _' - "$TMP" <"$TMP/go" &
writer=$!
exec 7>"$TMP/go"
opened() { test -e "$TMP/old"; }
wait_for 20 opened
start files -m 1024 -p $writer --top 10000 --csv --by task,op,mount,file
echo >&7
all_written() { test -e "$TMP/done"; }
wait_for 20 all_written
stop
exec 7>&-
wait $writer
rows 'a file from before the run' \
	'c["op"] == "write" && c["calls"] == 40 && c["bytes"] == 240 && c["file"] ~ "^/.*/old$" && c["mount"] ~ "^/"'
