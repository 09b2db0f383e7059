#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only
# Pairs that took too long on a distribution's kernel: programs load, and send them with both events.
. "$(dirname "$0")/../../../lib.sh"
needs_tracepoint raw_syscalls:sys_enter

calls=(-e raw_syscalls:sys_enter -e raw_syscalls:sys_exit)
for args in '-k common_pid' '-k common_pid+0 --perins' --cycle '-k common_pid --cycle'; do
	# shellcheck disable=SC2086 # several arguments
	"$PROFSCRIPT" multi-trace "${calls[@]}" $args --than 1ms -v --duration 1ms >"$TMP/out" 2>&1
	check "programs load: $args" grep -q 'paired in the kernel, by a BPF program; those over 1 ms are sent' "$TMP/out"
done

sleep=230 # clock_nanosleep
"$PROFSCRIPT" multi-trace -e "raw_syscalls:sys_enter/id == $sleep/" -e "raw_syscalls:sys_exit/id == $sleep/" -k common_pid \
	--capture=bpf --than 5ms --csv -- bash -c 'for i in 1 2 3 4 5; do sleep 0.01; done' >"$TMP/out" 2>"$TMP/err"
for event in sys_enter sys_exit; do
	check "calls that sleep: $event" test "$(grep -c "^raw_syscalls:$event,.*,sleep,.*,$sleep," "$TMP/out")" = 5
done
