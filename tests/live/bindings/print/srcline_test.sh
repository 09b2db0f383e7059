#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only
# --srcline: file and line of frames, and inlined functions, from debugging information in the program itself and in a
# separate file.
. "$(dirname "$0")/../../../lib.sh"
needs_tracepoint raw_syscalls:sys_enter
[ "$(uname -m)" = x86_64 ] || skip_all 'stacks are unwound on x86-64 only'

cat >"$TMP/prog.c" <<'EOF'
#include <unistd.h>
#include <sys/syscall.h>
static inline __attribute__((always_inline)) long innermost(void)
{
	return syscall(SYS_getppid); /* line 5 */
}
static inline __attribute__((always_inline)) long inlined(void)
{
	return innermost() + 1; /* line 9 */
}
__attribute__((noinline)) long caller(void)
{
	return inlined() + 2; /* line 13 */
}
int main(void)
{
	return caller() == 1; /* line 17 */
}
EOF
gcc -O2 -g -o "$TMP/prog" "$TMP/prog.c" || exit 1
frames() { # PROGRAM [OPTION...]
	local program=$1
	shift
	"$PROFSCRIPT" trace -e raw_syscalls:sys_enter/id==110/ --call-graph dwarf --no-kernel-callchain "$@" -- "$program" |
		sed -n 's/^ *[0-9a-f]* \([a-z]*\)\(+0x[0-9a-f]*\)* (\([^)]*\)) prog.c\(:[0-9]*\)$/\1 \3 \4/p' | sed 's,/.*/,,'
}
printf '%s\n' 'innermost inlined :5' 'inlined inlined :9' 'caller prog :13' 'main prog :17' >"$TMP/expected"
expect_text 'lines and inlined functions' "$TMP/expected" frames "$TMP/prog" --srcline
: >"$TMP/nothing"
expect_text 'not without --srcline' "$TMP/nothing" frames "$TMP/prog"

"$PROFSCRIPT" trace -e raw_syscalls:sys_enter/id==110/ --call-graph dwarf --srcline --format json -- "$TMP/prog" >"$TMP/json"
check 'in JSON' grep -Eq '"innermost \(inlined\) prog.c:5","inlined \(inlined\) prog.c:9","caller\+0x[0-9a-f]+ \([^)]*\) prog.c:13"' "$TMP/json"

# Stripped, with a link to a debug file next to it.
cp "$TMP/prog" "$TMP/whole"
(cd "$TMP" && objcopy --only-keep-debug prog prog.debug && strip prog && objcopy --add-gnu-debuglink=prog.debug prog)
expect_text 'from a debug file' "$TMP/expected" frames "$TMP/prog" --srcline
rm "$TMP/prog.debug"
expect_text 'nothing without debugging information' "$TMP/nothing" frames "$TMP/prog" --srcline

# The same as addr2line for every frame of a program with debugging information.
deep=$TOP/build/workloads/deep
"$PROFSCRIPT" trace -e raw_syscalls:sys_enter/id==110/ --call-graph dwarf --no-kernel-callchain --srcline -- "$deep" 2 |
	sed -n "s,^ *[0-9a-f]* \([a-z_0-9]*\)+\(0x[0-9a-f]*\) ($deep) deep.c:\([0-9]*\)\$,\1 \2 \3,p" | sort -u >"$TMP/lines"
while read -r symbol plus line; do
	address=$(($(nm "$deep" | sed -n "s/^\([0-9a-f]*\) . $symbol\$/0x\1/p") + plus - 1))
	echo "$symbol $plus $(addr2line -e "$deep" "$(printf %x $address)" | sed 's/.*:\([0-9]*\).*/\1/')"
done <"$TMP/lines" >"$TMP/theirs"
check 'there are frames to compare' test "$(wc -l <"$TMP/lines")" -ge 12
check 'the lines of addr2line' diff "$TMP/lines" "$TMP/theirs"
