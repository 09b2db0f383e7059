#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only
# kcore on memory whose contents the kernel also shows elsewhere.
. "$(dirname "$0")/../../lib.sh"
cd "$TOP" || exit 1
[ -r /proc/kcore ] || skip_all 'no /proc/kcore'

./profscript kcore --string linux_banner >"$TMP/out" 2>"$TMP/err"
result $? 'a string' "$TMP/err"
cut -d ' ' -f 2- "$TMP/out" >"$TMP/text"
check 'matches /proc/version' diff "$TMP/text" /proc/version
address=$(sed -n 's/ . linux_banner$//p' /proc/kallsyms)
expect_line 'after its address' "^$address: Linux version " "$TMP/out"
./profscript kcore -1 "0x$address" 5 >"$TMP/out"
expect_line 'bytes' "^$address: 4c 69 6e 75 78 {35}Linux\$" "$TMP/out"
./profscript kcore "0x$address" 3 >"$TMP/out"
expect_line 'longs, two per line' "^$address: 65762078756e694c [0-9a-f]{16}  Linux version [0-9]\.\$" "$TMP/out"
expect_line 'the rest' "^[0-9a-f]{16}: [0-9a-f]{16} {19}[0-9.]+" "$TMP/out"
echo 54321 >/proc/sys/kernel/pid_max
./profscript kcore -4 pid_max >"$TMP/out"
expect_line 'a variable' '^[0-9a-f]{16}: 0000d431 ' "$TMP/out"
check_status 'unmapped memory' 1 ./profscript kcore 0x1000
check_status 'no symbol' 2 ./profscript kcore linux_baner
