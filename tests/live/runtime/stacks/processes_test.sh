#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only
# The function that makes a system call has its name, whatever happened to the program: libraries that are loaded and
# unloaded, programs that start others, files that are deleted or replaced, other roots and namespaces, code generated
# at run time, names of other languages.
# Runs alone.
. "$(dirname "$0")/../../../lib.sh"
needs_tracepoint raw_syscalls:sys_enter
[ "$(uname -m)" = x86_64 ] || skip_all 'the programs are written for x86-64'

# getpriority(2): no shell calls it.
event=raw_syscalls:sys_enter/id==140/
# The call is in the function itself: that frame needs no frame pointers.
cat >"$TMP/call.h" <<'EOF'
#define CALLER(name) __attribute__((noinline, visibility("default"))) long name(void) \
	{ long n; __asm__ volatile("syscall" : "=a"(n) : "0"(140L) : "rcx", "r11", "memory"); return n; }
EOF
compile() { # OUTPUT OPTIONS: the program on stdin
	local output=$1
	shift
	{ echo '#include "call.h"'; cat; } >"$TMP/$output.c"
	(cd "$TMP" && gcc -w -O1 -I. "$@" -o "$output" "$output.c" -ldl) || exit 1
}
# If that is permitted, nothing keeps the tracer from reading a program while it exists.
soon=()
chrt -f 1 true 2>/dev/null && soon=(-r 1)
# callers COMMAND...: the innermost functions of user space, with the count of each
callers() {
	"$PROFSCRIPT" trace -e "$event" -g --no-kernel-callchain --watermark 90 "${soon[@]}" -- "$@" |
		awk '/^    [0-9a-f]+ / { if (!seen++) { sub(/\+0x.*/, "", $2); n[$2]++ } next } { seen = 0 }
			END { for (name in n) print n[name], name }' | sort -k2
}
expect_callers() { # NAME EXPECTED COMMAND...
	local name=$1
	printf '%s\n' "$2" >"$TMP/expected"
	shift 2
	callers "$@" >"$TMP/callers"
	check "$name" diff "$TMP/expected" "$TMP/callers"
}

# A library that is loaded late, and unloaded, so that another one takes its place.
compile one.so -shared -fPIC <<<'CALLER(in_one)'
compile two.so -shared -fPIC <<<'CALLER(in_two)'
compile loader <<'EOF'
#include <dlfcn.h>
int main(int argc, char **argv)
{
	for (int i = 1; i + 1 < argc; i += 2) {
		void *library = dlopen(argv[i], RTLD_NOW);
		((long (*)(void))dlsym(library, argv[i + 1]))();
		dlclose(library);
	}
}
EOF
expect_callers 'libraries that come and go' $'2 in_one\n1 in_two' \
	"$TMP/loader" "$TMP/one.so" in_one "$TMP/two.so" in_two "$TMP/one.so" in_one

# A chain of programs in one process, and many processes.
compile chain <<'EOF'
#include <unistd.h>
#include <sys/wait.h>
CALLER(in_chain)
int main(int argc, char **argv)
{
	in_chain();
	if (argc > 1)
		execv(argv[1], argv + 1);
}
EOF
cp "$TMP/chain" "$TMP/link"
expect_callers 'a chain of programs' '4 in_chain' "$TMP/chain" "$TMP/link" "$TMP/chain" "$TMP/link"
compile storm -static <<'EOF'
#include <unistd.h>
#include <sys/wait.h>
CALLER(in_child)
int main(void)
{
	for (int i = 0; i < 500; i++)
		if (!fork()) {
			in_child();
			_exit(0);
		} else if (i % 16 == 0) {
			while (waitpid(-1, 0, WNOHANG) > 0)
				;
		}
	while (wait(0) > 0)
		;
}
EOF
expect_callers 'many children of a static program' '500 in_child' "$TMP/storm"

# Files that no longer exist when the stack is printed, but did when the event was read: at least ten times per
# second.
compile before <<'EOF'
#include <unistd.h>
CALLER(in_old)
int main(int argc, char **argv)
{
	in_old();
	if (argc > 1)
		rename(argv[1], argv[0]) == 0 || unlink(argv[0]);
	usleep(500000);
}
EOF
compile after <<<'CALLER(in_new) int main(void) { in_new(); }'
cp "$TMP/before" "$TMP/deleted"
expect_callers 'a deleted program' '1 in_old' "$TMP/deleted" nothing
cp "$TMP/before" "$TMP/replaced"
expect_callers 'a replaced program' $'1 in_new\n1 in_old' \
	sh -c "cp $TMP/after $TMP/copy; $TMP/replaced $TMP/copy; $TMP/replaced"

# Another root, and a private file system.
compile static -static <<<'CALLER(in_root) int main(void) { in_root(); usleep(500000); }'
mkdir -p "$TMP/root/bin"
cp "$TMP/static" "$TMP/root/bin/prog"
expect_callers 'another root' '1 in_root' chroot "$TMP/root" /bin/prog
if unshare -m true 2>/dev/null; then
	mkdir "$TMP/mount"
	expect_callers 'another mount namespace' '1 in_root' \
		unshare -m sh -c "mount -t tmpfs none $TMP/mount && cp $TMP/static $TMP/mount/prog && $TMP/mount/prog"
else
	skip 'another mount namespace' 'unshare -m is not allowed'
fi

# Code that the program generates, listed in /tmp/perf-PID.map of its own namespaces.
compile jit <<'EOF'
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include <sys/mman.h>
int main(void)
{
	static const unsigned char code[] = {0xb8, 140, 0, 0, 0, 0x0f, 0x05, 0xc3};
	void *at = mmap(0, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	char path[64];
	FILE *map;

	snprintf(path, sizeof(path), "/tmp/perf-%d.map", getpid());
	map = fopen(path, "w");
	fprintf(map, "%lx %zx made_here\n", (long)at, sizeof(code));
	fclose(map);
	((long (*)(void))memcpy(at, code, sizeof(code)))();
	sleep(1); /* the list is read when it is asked for */
	unlink(path);
}
EOF
expect_callers 'code made at run time' '1 made_here' "$TMP/jit"
if unshare -mpf true 2>/dev/null; then
	expect_callers 'code made in a container' '1 made_here' \
		unshare -mpf sh -c "mkdir $TMP/tmp && mount -t tmpfs none $TMP/tmp && cp $TMP/jit $TMP/tmp/ && mount --bind $TMP/tmp /tmp && /tmp/jit"
else
	skip 'code generated in a container' 'unshare -mpf is not allowed'
fi

# Names as Go, Rust and C++ write them.
compile names <<'EOF'
long rust_new(void) __asm__("_RNvNtCs1234_7mycrate3foo3bar");
long rust_old(void) __asm__("_ZN7mycrate3foo17h0123456789abcdefE");
long cpp(void) __asm__("_ZNSt6vectorIiSaIiEE9push_backEOi");
CALLER(go_like)
CALLER(rust_new)
CALLER(rust_old)
CALLER(cpp)
int main(void) { go_like(), rust_new(), rust_old(), cpp(); }
EOF
objcopy --redefine-sym 'go_like=example.com/pkg/v2.(*Type[go.shape.int]).Method.func1' "$TMP/names" || exit 1
expect_callers 'names of other languages' "1 example.com/pkg/v2.(*Type[go.shape.int]).Method.func1
1 mycrate::foo
1 mycrate::foo::bar
1 std::vector<int," "$TMP/names"
