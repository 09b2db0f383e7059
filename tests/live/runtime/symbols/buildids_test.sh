#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only
# The files of a recording are those with the recorded build id, wherever they are now: replaced in place, in perf's
# cache, or on a server. Another file of the same name gives no names.
# Runs alone.
. "$(dirname "$0")/../../../lib.sh"
needs_tracepoint raw_syscalls:sys_enter
[ "$(uname -m)" = x86_64 ] || skip_all 'stacks are unwound on x86-64 only'

program() { # NAME: a program whose function of that name makes the call
	printf '%s\n' '#include <unistd.h>' '#include <sys/syscall.h>' \
		"__attribute__((noinline)) long $1(void) { return syscall(SYS_getppid) + 1; }" \
		"int main(void) { return $1() == 1; }" >"$TMP/$1.c"
	gcc -O1 -g -Wl,--build-id -o "$TMP/$1" "$TMP/$1.c"
}
program first_name && program other_name || exit 1
mkdir "$TMP/home" "$TMP/empty" "$TMP/server"
cp "$TMP/first_name" "$TMP/prog"
if ! HOME=$TMP/home perf record -q --buildid-all --call-graph dwarf -o "$TMP/data" -e raw_syscalls:sys_enter -- "$TMP/prog" 2>/dev/null; then
	skip_all 'perf cannot record stacks here'
fi
id=$(perf buildid-list -i "$TMP/data" | awk -v prog="$TMP/prog" '$2 == prog { print $1 }')
check 'the recording has a build id' test "${#id}" = 40

names() { # HOME: of the frames of the call
	HOME=$1 "$PROFSCRIPT" trace -e raw_syscalls:sys_enter -g --input "$TMP/data" 2>"$TMP/err" |
		sed -n "s,^ *[0-9a-f]* \([A-Za-z_]*\)\(+0x[0-9a-f]*\)* ($TMP/prog)\$,\1,p" | sort | uniq -c | awk '{ print $2 }' | tr '\n' ' '
}
check 'the file still exists' test "$(names "$TMP/empty")" = '_start first_name main '
cp "$TMP/other_name" "$TMP/copy" && mv "$TMP/copy" "$TMP/prog"
check 'another file is not taken for it' test "$(names "$TMP/empty")" = 'Unknown '
check "perf's cache has a copy" test "$(names "$TMP/home")" = '_start first_name main '
cp "$TMP/first_name" "$TMP/copy" && mv "$TMP/copy" "$TMP/prog"
check 'the same file at another inode' test "$(names "$TMP/empty")" = '_start first_name main '
cp "$TMP/other_name" "$TMP/prog"
check 'another file at the same inode' test "$(names "$TMP/empty")" = 'Unknown '
rm "$TMP/prog"

# A server, which is asked only if the variable names one.
mkdir -p "$TMP/server/buildid/$id"
cp "$TMP/first_name" "$TMP/server/buildid/$id/executable"
check 'no server is asked by default' test "$(names "$TMP/empty")" = 'Unknown '
if ldconfig -p | grep -q libdebuginfod.so.1; then
	export DEBUGINFOD_URLS=file://$TMP/server DEBUGINFOD_CACHE_PATH=$TMP/cache
	check 'a program from a server' test "$(names "$TMP/empty")" = '_start first_name main '
	# Its debug file, for a program without symbols.
	objcopy --strip-all "$TMP/first_name" "$TMP/prog"
	objcopy --only-keep-debug "$TMP/first_name" "$TMP/server/buildid/$id/debuginfo"
	check 'a debug file from a server' test "$(names "$TMP/empty")" = '_start first_name main '
	DEBUGINFOD_URLS=file://$TMP/empty DEBUGINFOD_CACHE_PATH=$TMP/cache2
	check 'a server without it' test "$(names "$TMP/empty")" = 'Unknown '
else
	skip 'files from servers' 'libdebuginfod is not installed'
fi
