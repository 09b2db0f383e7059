#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only
# Writes to variables of the kernel, whose code is read from /proc/kcore.
. "$(dirname "$0")/../../lib.sh"
cd "$TOP" || exit 1
[ -r /proc/kcore ] || skip_all 'no /proc/kcore'

# watch ARG...: breakpoint, ready
watch() {
	"$PROFSCRIPT" breakpoint "$@" >"$TMP/out" 2>"$TMP/err" &
	tracer=$!
	wait_ready $tracer
}

finish_watch() {
	sleep 1
	kill -INT $tracer
	wait $tracer
	cat "$TMP/err"
	sed -n 's/.* DATA: //p' "$TMP/out" >"$TMP/data"
}

# The emulator stops too early if an instruction nearby reads from the same page: then no instruction is found.
watch panic_timeout/4:w
for number in 40000 -2 60000; do echo $number >/proc/sys/kernel/panic; done
finish_watch
check 'a variable that is set' diff <(printf '0x%x\n' 40000 $((-2 & 0xffffffff)) 60000) "$TMP/data"
watch panic_timeout/4 --filter 'data > 45000'
for number in 40000 50000 44000 60000; do echo $number >/proc/sys/kernel/panic; done
finish_watch
check '--filter' diff <(printf '0x%x\n' 50000 60000) "$TMP/data"
