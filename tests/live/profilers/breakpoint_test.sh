#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only
# What breakpoints on writes say was written, by instructions of every kind, against what was there.
. "$(dirname "$0")/../../lib.sh"
cd "$TOP" || exit 1
[ "$(uname -m)" = x86_64 ] || skip_all 'instructions are decoded on x86_64 only'
perf stat -e mem:0x1000 true >/dev/null 2>&1 || skip_all 'no hardware breakpoints'
stores=build/workloads/stores

# data FILE: what was there behind each instruction
data() {
	sed -n 's/.* DATA: //p' "$1"
}

$stores 1 >"$TMP/real"
"$PROFSCRIPT" breakpoint 0x10000000/8 -- $stores 1 2>"$TMP/err" >"$TMP/out"
expect_line 'an instruction each' '^40$' <(grep -c ' INSN: ' "$TMP/out")
# Those that samples do not tell: xadd, xchg, a vector register.
awk 'NR == FNR { real[NR] = $0; next } $0 == "unknown" { unknown++; next } $0 != real[FNR] { print FNR, $0, real[FNR] }
	END { if (unknown != 3) print unknown, "unknown" }' "$TMP/real" <(data "$TMP/out") >"$TMP/wrong"
check 'what was written' test ! -s "$TMP/wrong"
if command -v objdump >/dev/null; then
	objdump -d --no-show-raw-insn $stores | awk -F '\t' 'NF == 2 { gsub(/ +/, " ", $2); sub(/ *(#.*)?$/, "", $2); print $2 }' >"$TMP/code"
	sed -nE 's/^ +INSN: ([0-9a-f]{2} )+(.*) ADDR: .*/\2/p' "$TMP/out" | grep -vxFf "$TMP/code" >"$TMP/wrong"
	check 'instructions are called what objdump calls them' test ! -s "$TMP/wrong"
else
	skip 'instructions are called what objdump calls them' 'no objdump'
fi

# Half of it, and one byte in its middle.
for place in 0x10000004/4 0x10000002/1; do
	"$PROFSCRIPT" breakpoint "$place" -- $stores 1 2>"$TMP/err" >"$TMP/out"
	shift=$(((${place%/*} - 0x10000000) * 8)) mask=0xff
	[[ $place != */4 ]] || mask=0xffffffff
	while read -r value; do printf '0x%x\n' $((value >> shift & mask)); done <"$TMP/real" | sort -u >"$TMP/possible"
	data "$TMP/out" | grep -v unknown | sort -u | grep -vxFf "$TMP/possible" >"$TMP/wrong"
	check "a part of it: $place" test ! -s "$TMP/wrong" -a "$(data "$TMP/out" | grep -c 0x)" -ge 5
done

# A count goes on from what was there: it is known from the second time on, if it was looked at between them.
"$PROFSCRIPT" breakpoint 0x10000000/8 -- $stores 20 20 2>"$TMP/err" >"$TMP/out"
data "$TMP/out" | awk '$0 == "unknown" { next } { known++ } $0 != sprintf("0x%x", NR) { print NR, $0 }
	END { if (NR != 20 || !known) print NR, "of which are known:", known + 0 }' >"$TMP/wrong"
check 'a count that begins somewhere' test ! -s "$TMP/wrong"

"$PROFSCRIPT" breakpoint 0x10000000/8 --filter 'data == 0x9 || data == 0x12354000123416c9' -- $stores 1 2>"$TMP/err" >"$TMP/out"
data "$TMP/out" | grep -v unknown >"$TMP/values"
check '--filter' diff <(printf '0x12354000123416c9\n0x9\n') "$TMP/values"
expect_line '--filter: what is not known is shown' '^3$' <(data "$TMP/out" | grep -c unknown)
"$PROFSCRIPT" breakpoint 0x10000000/8 --count --filter 'data == 0x4d && data > 0' -- $stores 50 2>"$TMP/err" >"$TMP/out"
expect_line '--filter: what is counted, and what is not known' '^5$' <(grep -c ' main+0x[0-9a-f]* *50$' "$TMP/out")
"$PROFSCRIPT" breakpoint 0x10000000/8 --filter 'data == 0x9' -N 5 -q -- $stores 50 2>"$TMP/err" >"$TMP/out"
expect_line '--filter: -N counts what passes' '^5$' <(grep -c breakpoint: "$TMP/out")
# Who else writes is not seen: what follows from the value before is not said.
"$PROFSCRIPT" breakpoint 0x10000000/8 --exclude-kernel -- $stores 1 2>"$TMP/err" >"$TMP/out"
awk 'NR == FNR { real[NR] = $0; next } $0 == "unknown" { n++; next } $0 != real[FNR] { bad++ } END { exit bad || n < 10 }' \
	"$TMP/real" <(data "$TMP/out")
result $? 'without the kernel, which may write too' "$TMP/out"
"$PROFSCRIPT" trace -e 'breakpoint/"0x10000000/8"/' -- $stores 1 2>"$TMP/err" >"$TMP/out"
expect_line 'as a source' 'INSN: 48 89 07 mov %rax,\(%rdi\) ADDR: 0x10000000  DATA: 0x1122334455667788$' "$TMP/out"

# refused REGEX ARG...
refused() {
	local regex=$1
	shift
	expect_line "refused: $*" "$regex" <("$PROFSCRIPT" "$@" 2>&1)
}
refused "--filter is for writes, and 0x1000:rw is none" breakpoint 0x1000:rw --filter 'data > 1'
refused "unknown.* 'dta'" breakpoint 0x1000 --filter 'dta > 1'
refused 'it has no --filter where it is a source' trace -e "breakpoint/\"0x1000 --filter data>1\"/"
