#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only
# num-dist: the output compared with an *.expect file, and numbers that doubles do not hold.
. "$(dirname "$0")/../../lib.sh"

expect_output num-dist syscalls num-dist -e raw_syscalls:sys_exit//num=ret/,raw_syscalls:sys_enter//num=id/ \
	--than 1000000000000000000

variance() { sed -nE 's/.*"stddev":([0-9.]+),"variance":([0-9.]+)\}.*/\1 \2/p' | awk '{ printf "%.9g %.9g\n", $1, $2 }'; }
events='raw_syscalls:sys_exit/ret > -100 && ret < 100000'
"$PROFSCRIPT" num-dist -e "$events/num=ret/" --json --input "$DATA/syscalls.data" | variance >"$TMP/got"
"$PROFSCRIPT" sql -e "$events/" --query 'SELECT stddev(ret) AS stddev, variance(ret) AS variance FROM sys_exit' --json \
	--input "$DATA/syscalls.data" | variance >"$TMP/want"
check 'num-dist: the variance of negative and positive numbers' test "$(wc -w <"$TMP/want")" -eq 2
check 'is that of SQL' diff "$TMP/want" "$TMP/got"

# Numbers that doubles do not hold are not rounded.
for one in 9007199254740993 -9007199254740993 18446744073709551613 -9223372036854775808; do
	"$PROFSCRIPT" num-dist -e "$events/num=\"${one/-9223372036854775808/1LL<<63}\"/" --json --input "$DATA/syscalls.data" >"$TMP/out"
	expect_line "num-dist: $one" "\"min\":\"$one\",.*\"p99\":\"$one\",\"max\":\"$one\"," "$TMP/out"
done
total=$("$PROFSCRIPT" num-dist -e "$events/num=\"ret<0?-1:9007199254740993\"/" --json --input "$DATA/syscalls.data" |
	sed 's/.*"calls":\([0-9]*\),"total":"\([0-9]*\)".*/\1 \2/')
below=$("$PROFSCRIPT" num-dist -e "$events && ret < 0/num=ret/" --json --input "$DATA/syscalls.data" | sed 's/.*"calls":\([0-9]*\),.*/\1/')
read -r calls total <<<"$total"
check 'num-dist: nor is the total of both signs' test "$total" = $(((calls - below) * 9007199254740993 - below))
