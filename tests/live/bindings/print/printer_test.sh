#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only
# Control characters in a task's name are escaped.
. "$(dirname "$0")/../../../lib.sh"
needs_tracepoint raw_syscalls:sys_exit
cd "$TMP" || exit 1

for format in text json csv; do
	"$PROFSCRIPT" trace -m 512 -e raw_syscalls:sys_exit --format $format -- \
		bash -c 'printf "\033[31mX\n" >/proc/$$/comm; kill -0 $$' >out 2>err
	LC_ALL=C grep -q $'\033' out
	check "$format: no escape character from a task's name" test $? -ne 0
	expect_line "$format: its name" 'x1b\[31mX|u001b\[31mX' out
done
