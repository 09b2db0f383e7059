#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only
# Breakpoints on writes: the reported values, for instructions of every kind, compared with the memory.
# Runs alone.
. "$(dirname "$0")/../../lib.sh"
cd "$TOP" || exit 1
[ "$(uname -m)" = x86_64 ] || skip_all 'instructions are decoded on x86_64 only'
perf stat -e mem:0x1000 true >/dev/null 2>&1 || skip_all 'no hardware breakpoints'
stores=build/workloads/stores

# data FILE: the value in memory after each instruction
data() {
	sed -n 's/.* DATA: //p' "$1"
}

$stores 1 >"$TMP/real"
"$PROFSCRIPT" breakpoint 0x10000000/8 -- $stores 1 2>"$TMP/err" >"$TMP/out"
expect_line 'an instruction each' '^40$' <(grep -c ' INSN: ' "$TMP/out")
# Those whose samples do not contain the value: xadd, xchg, a vector register.
awk 'NR == FNR { real[NR] = $0; next } $0 == "unknown" { unknown++; next } $0 != real[FNR] { print FNR, $0, real[FNR] }
	END { if (unknown != 3) print unknown, "unknown" }' "$TMP/real" <(data "$TMP/out") >"$TMP/wrong"
check 'the written values' test ! -s "$TMP/wrong"
if command -v objdump >/dev/null; then
	objdump -d --no-show-raw-insn $stores | awk -F '\t' 'NF == 2 { gsub(/ +/, " ", $2); sub(/ *(#.*)?$/, "", $2); print $2 }' >"$TMP/code"
	sed -nE 's/^ +INSN: ([0-9a-f]{2} )+(.*) ADDR: .*/\2/p' "$TMP/out" | grep -vxFf "$TMP/code" >"$TMP/wrong"
	check "instructions have objdump's names" test ! -s "$TMP/wrong"
else
	skip "instructions have objdump's names" 'no objdump'
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

# A counter continues from its value, which is known from the second access on, if all accesses in between were seen.
# The rate does not fit the times at which the tracer looks. perf stat has a breakpoint of its own.
perf stat -x, -o "$TMP/perf.csv" -e mem:0x10000000/8:w \
	"$PROFSCRIPT" breakpoint 0x10000000/8 -- $stores 20 13 2>"$TMP/err" >"$TMP/out"
reported=$(sed -n 's/,,mem.*//p' "$TMP/perf.csv")
if [ "$reported" -eq 20 ]; then
	data "$TMP/out" | awk '$0 == "unknown" { next } { known++ } $0 != sprintf("0x%x", NR) { print NR, $0 }
		END { if (NR != 20 || !known) print NR, "of which are known:", known + 0 }' >"$TMP/wrong"
	result $((0 != $(wc -l <"$TMP/wrong"))) 'a counter with an unknown first value' "$TMP/wrong"
else
	skip 'a counter with an unknown first value' "perf stat counts $reported of the 20 accesses"
fi

"$PROFSCRIPT" breakpoint 0x10000000/8 --filter 'data == 0x9 || data == 0x12354000123416c9' -- $stores 1 2>"$TMP/err" >"$TMP/out"
data "$TMP/out" | grep -v unknown >"$TMP/values"
check '--filter' diff <(printf '0x12354000123416c9\n0x9\n') "$TMP/values"
expect_line '--filter: unknown values are shown' '^3$' <(data "$TMP/out" | grep -c unknown)
"$PROFSCRIPT" breakpoint 0x10000000/8 --count --filter 'data == 0x4d && data > 0' -- $stores 50 2>"$TMP/err" >"$TMP/out"
expect_line '--filter: the counter, and unknown values' '^5$' <(grep -c ' main+0x[0-9a-f]* *50$' "$TMP/out")
"$PROFSCRIPT" breakpoint 0x10000000/8 --filter 'data == 0x9' -N 5 -q -- $stores 50 2>"$TMP/err" >"$TMP/out"
expect_line '--filter: -N counts the events that pass' '^5$' <(grep -c breakpoint: "$TMP/out")
# Writes by others are not seen: values that depend on the one before are not printed.
"$PROFSCRIPT" breakpoint 0x10000000/8 --exclude-kernel -- $stores 1 2>"$TMP/err" >"$TMP/out"
awk 'NR == FNR { real[NR] = $0; next } $0 == "unknown" { n++; next } $0 != real[FNR] { bad++ } END { exit bad || n < 10 }' \
	"$TMP/real" <(data "$TMP/out")
result $? 'without the kernel, which may write too' "$TMP/out"
"$PROFSCRIPT" trace -e 'breakpoint/"0x10000000/8"/' -- $stores 1 2>"$TMP/err" >"$TMP/out"
expect_line 'as a source' 'INSN: 48 89 07 mov %rax,\(%rdi\) ADDR: 0x10000000  DATA: 0x1122334455667788$' "$TMP/out"

# A variable that a program writes 100 times.
cd "$TMP" || exit 1
cat >watch.c <<'C'
volatile int watched;
int main(void)
{
	for (int i = 0; i < 100; i++)
		watched = i;
	return watched != 99;
}
C
if gcc -O1 -no-pie -o watch watch.c 2>/dev/null; then
	address=0x$(nm watch | awk '$3 == "watched" { print $1 }')
	"$PROFSCRIPT" exec -e "mem:$address/4:w" 'count(ev._pid)' --exclude-kernel -- ./watch >out 2>&1
	expect_line 'a breakpoint on writes' '^ *[0-9]+ +100$' out
	"$PROFSCRIPT" exec -e "mem:$address/4:rw" 'count(ev._pid)' --exclude-kernel -- ./watch >out 2>&1
	expect_line 'on reads and writes' '^ *[0-9]+ +101$' out
	"$PROFSCRIPT" exec -e "mem:0x$(nm watch | awk '$3 == "main" { print $1 }'):x" 'count(ev._pid)' -- ./watch >out 2>&1
	expect_line 'on execution' '^ *[0-9]+ +1$' out
	five=$(for i in 0 4 8 12 16; do printf 'mem:%d:w,' $((address + i)); done)
	"$PROFSCRIPT" trace -e "${five%,}" -- ./watch >out 2>&1
	expect_line 'more breakpoints than the CPU has' "^profscript: no free hardware breakpoint for mem:$((address + 16)):w$" out
	"$PROFSCRIPT" breakpoint "$address/4" --exclude-kernel -- ./watch >out 2>&1
	expect_line 'a line for each access' '^100$' <(grep -c ": breakpoint: $address/4:W ip main+0x" out)
	expect_line 'with its registers' '^ +RIP: 0{10}[0-9a-f]{6} RSP: [0-9a-f]{16} RFLAGS:[0-9a-f]{8}$' out
	"$PROFSCRIPT" breakpoint "$address/4" --exclude-kernel -q -- ./watch >out 2>&1
	expect_line 'or just the lines' '^100$' <(grep -c . out)
	"$PROFSCRIPT" breakpoint "$address/4" --exclude-kernel --count -- ./watch >out 2>&1
	expect_line 'or their number' "^$address/4:W +[0-9]+ watch +main\\+0x[0-9a-f]+ +100\$" out
	"$PROFSCRIPT" trace -e "raw_syscalls:sys_enter/id==231/,breakpoint/\"$address/4:w -N 7 --exclude-kernel\"/" \
		-- ./watch >out 2>&1
	expect_line 'as a source of others' '^7$' <(grep -c ": breakpoint: $address/4:W ip main+0x" out)
	expect_line 'in time order' 'sys_enter: NR 231 ' <(tail -n 1 out)
	expect_line 'with its registers too' '^7$' <(grep -cE '^ +RIP: 0{10}[0-9a-f]{6} RSP: ' out)
	"$PROFSCRIPT" multi-trace -e raw_syscalls:sys_exit -e "raw_syscalls:sys_enter/id==231/,breakpoint/\"$address/4:w --exclude-kernel\"/" \
		--lower 100s --detail -- ./watch >out 2>&1
	expect_line 'in details' '^100$' <(grep -cE "^\|.* watch .*: breakpoint: $address/4:W ip main\+0x" out)
	expect_line 'with the registers at that time' '^100$' <(grep -E '^ +RIP: ' out | grep -cE 'RIP: 0{10}[0-9a-f]{6} RSP: ')
	"$PROFSCRIPT" multi-trace -e raw_syscalls:sys_enter -e "raw_syscalls:sys_exit,breakpoint/\"$address/4:w\" --exclude-kernel -N 3 -q/trigger/" \
		-- ./watch >triggered 2>&1
	expect_line 'as triggers of reports, without their registers' '^3 1 0$' <(echo "$(grep -c ' breakpoint: ' triggered)" \
		"$(grep -c 'start => end' triggered)" "$(grep -c 'RIP: ' triggered)")
	expect_line 'one after the other' '^100$' <(grep -E '^ +RAX: ' out | sort -u | wc -l)
else
	skip 'a variable of a program' 'no gcc'
fi

refused '--filter of accesses that are not writes' 2 ".*--filter needs w breakpoints, and 0x1000:rw is not one" breakpoint 0x1000:rw --filter 'data > 1'
refused '--filter of no variable' 2 ".*unknown.* 'dta'" breakpoint 0x1000 --filter 'dta > 1'
refused '--filter of a source' 2 '.*--filter is not supported in a source of events' trace -e "breakpoint/\"0x1000 --filter data>1\"/"
refused 'no place' 2 "breakpoint: 'no_such_symbol' is neither an address" breakpoint no_such_symbol
refused 'a bad length' 2 "bad event 'mem:0x1000/3:w': invalid breakpoint length '3'" breakpoint 4096/3
refused 'too many' 2 'breakpoint: up to 4 breakpoints are supported' breakpoint 1 2 3 4 5
