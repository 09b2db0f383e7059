#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only
# --symbols: addresses of a process and of a file are symbolized as nm does; needs no tracing.
. "$(dirname "$0")/../../lib.sh"
cd "$TMP" || exit 1
deep=$TOP/build/workloads/deep
symbols=("$PROFSCRIPT" --symbols "$deep")

# The functions of the program, at the addresses it was linked for and in its file.
nm --defined-only "$deep" | awk '$2 ~ /^[tT]$/ && $3 ~ /^(main|deep_[0-9]|on_signal)$/ { print $1, $3 }' >functions
check 'nm lists them' test "$(wc -l <functions)" -eq 12
read -r _ _ _ text text_at _ < <(readelf -SW "$deep" | sed -n 's/.*\(\] \.text\)/\1/p')
# ] .text PROGBITS vma offset
while read -r address name; do
	printf '0x%x\n' $((0x$address - 0x$text + 0x$text_at))
done <functions >want
expect_text 'a function is in its place in the file' want "${symbols[@]}" < <(cut -d' ' -f2 functions)
while read -r address name; do echo "$name+0x0"; done <functions >want
expect_text 'an address as nm prints it' want "${symbols[@]}" < <(awk '{ print "0x" $1 }' functions)
while read -r address name; do echo "$name+0x3"; done <functions >want
expect_text 'and three bytes on' want "${symbols[@]}" < <(
	while read -r address name; do printf '0x%X\n' $((0x$address + 3)); done <functions)

# A process: its mappings decide. They may be short, as in profiles.
workload deep 1
wait_for 20 grep -q pipe "/proc/$WORKLOAD/wchan" # everything is loaded when it waits
cp "/proc/$WORKLOAD/maps" maps
go
base=$(awk -v path="$deep" '$6 == path && $3 == "00000000" { split($1, a, "-"); print a[1]; exit }' maps)
ask() { while read -r address name; do printf '0x%x\n' $((0x$base + 0x$address + 1)); done <functions; }
while read -r address name; do echo "$name+0x1"; done <functions >want
expect_text 'addresses of a process' want "${symbols[@]}" < <(cat maps; ask)
expect_text 'the same by its name among the commands' want "$PROFSCRIPT" symbols "$deep" < <(cat maps; ask)
last=$(awk -v path="$deep" '$6 == path { split($1, a, "-"); last = a[2] } END { print last }' maps)
expect_text 'of short mappings' want "${symbols[@]}" < <(printf '%s-%s: %s\n' "$base" "$last" "$deep"; ask)
libc=$(awk '$6 ~ /libc\.so\.6$/ { print $6; exit }' maps)
at=$(awk '$6 ~ /libc\.so\.6$/ && $3 == "00000000" { split($1, a, "-"); print a[1]; exit }' maps)
address=$(nm -D --defined-only "$libc" | awk '$3 ~ /^qsort@/ { print $1 }')
echo qsort+0x0 >want
expect_text 'of a library' want "${symbols[@]}" < <(cat maps; printf '0x%x\n' $((0x$at + 0x$address)))
echo '??' >want
expect_text 'a file that was deleted gives no other names' want "${symbols[@]}" \
	< <(sed 's/$/ (deleted)/' maps; ask | head -n 1)
expect_text 'nor does anonymous memory' want "${symbols[@]}" < <(cat maps; awk '/\[stack\]/ { split($1, a, "-"); print "0x" a[1] }' maps)

# Each line has one answer.
printf '%s\n' '' ' ' 0x 0xg 0xffffffffffffffff 0x1 no_such_function 'main extra' -1 $'\e[31m' 0123 % >odd
sed 's/.*/??/' odd >want
expect_text 'unknown addresses' want "${symbols[@]}" <odd
: >want
expect_text 'no input' want "${symbols[@]}" </dev/null
yes 0x1 | head -n 100000 >many
check 'many' test "$("${symbols[@]}" <many | wc -l)" -eq 100000
expect_line 'a program by its name' '^0x[0-9a-f]+$' <(echo malloc | "$PROFSCRIPT" --symbols=libc.so.6)
cp "$deep" here
expect_line 'in the current folder' '^main\+0x0$' <(awk '$2 == "main" { print "0x" $1 }' functions | "$PROFSCRIPT" --symbols here)

# refused NAME STATUS REGEX ARG...: fails with one line
refused() {
	local name=$1 want=$2 regex=$3 status
	shift 3
	"$PROFSCRIPT" "$@" >out 2>err
	status=$?
	[ $status -eq "$want" ] && [ ! -s out ] && [ "$(grep -vc '^try ' err)" -eq 1 ] && grep -Eq -- "^profscript: $regex" err
	result $? "$name" err
}
refused 'no program' 2 "option '--symbols' needs a value" --symbols
refused 'a missing file' 1 'cannot read /no/file: No such file' --symbols /no/file
refused 'not an ELF file' 1 '/etc/passwd is not an ELF file' --symbols /etc/passwd
refused 'a directory' 1 '/ is not a regular file' --symbols /
refused 'an unknown name' 1 "no library or program 'nosuch'" --symbols nosuch
refused 'too much' 2 "symbols: unexpected argument 'trace'" --symbols "$deep" trace
refused 'a stdin that cannot be read' 1 '.*Is a directory' --symbols "$deep" </
