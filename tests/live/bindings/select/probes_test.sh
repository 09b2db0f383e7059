#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only
# Functions of a library that is not executable, with C++ names.
# Runs alone.
. "$(dirname "$0")/../../../lib.sh"
cd "$TMP" || exit 1

cat >shape.c <<'C'
int area(int x) __asm__("_ZN5shape4areaEi");
int area(int x) { return x * x; }
C
cat >use.c <<'C'
int area(int x) __asm__("_ZN5shape4areaEi");
int main(void)
{
	for (int i = 1; i <= 100; i++)
		area(i);
	return 0;
}
C
if [ -r /sys/bus/event_source/devices/uprobe/type ] && gcc -O1 -shared -fPIC -o libshape.so shape.c 2>/dev/null &&
	gcc -O1 -o use use.c -L. -lshape -Wl,-rpath,"$TMP"; then
	chmod 644 libshape.so
	for name in _ZN5shape4areaEi shape::area 'shape::area(int)'; do
		"$PROFSCRIPT" trace -e "uprobe:\"$name\"@\"$TMP/libshape.so\"" -- ./use >out 2>&1
		echo "$(grep -c "uprobe:$name: " out)" >n
		expect_line "a probe of $name" '^100$' n
	done
	"$PROFSCRIPT" trace -e "uprobe:shape::area@\"$TMP/libshape.so\"(x=%di:s32)/x > 98/" -- ./use >out 2>&1
	expect_line 'with its arguments' 'uprobe:shape::area: .*x=100$' out
	expect_line 'and a filter of them' '^2$' <(grep -c uprobe: out)
	"$PROFSCRIPT" trace -e "uprobe:shape::aera@\"$TMP/libshape.so\"" -- ./use >out 2>&1
	expect_line 'a misspelled one' "no function 'shape::aera' in " out
	# A probe named as an event of perf. The address of main is its place in the file, as of all code in such a program.
	uprobes=/sys/kernel/tracing/uprobe_events
	address=0x$(nm use | awk '$3 == "main" { print $1 }')
	if echo "p:test_$$/faults $TMP/use:$address" >>$uprobes && echo "p:test_$$/read $TMP/use:$address" >>$uprobes; then
		"$PROFSCRIPT" trace -e "test_$$:faults,test_$$:read" -- ./use >out 2>&1
		expect_line 'a probe named as an event of perf' "^.* test_$$:faults: " out
		expect_line 'and one as a raw event' "^.* test_$$:read: " out
		printf '%s\n' "-:test_$$/faults" "-:test_$$/read" >>$uprobes
	fi
	check_status 'a name of perf in a system that does not exist' 2 "$PROFSCRIPT" trace -e x:faults -- ./use
	# A program and its path in a mount namespace that this process is not in.
	{
		printf '#include <unistd.h>\n'
		cat shape.c
		echo 'int main(void) { for (;;) area(usleep(1000) + 3); }'
	} >inside.c
	mkdir inner
	if gcc -O0 -o inside inside.c && unshare -m true 2>/dev/null; then
		unshare -m sh -c 'mount -t tmpfs none inner && cp inside inner && exec inner/inside' &
		inside=$!
		wait_for 20 sh -c "readlink /proc/$inside/exe | grep -q inner"
		for place in "\"$TMP/inner/inside\"" inside; do
			timeout 20 "$PROFSCRIPT" trace -e "uprobe:shape::area@$place" -N 2 -p $inside >out 2>&1
			expect_line "a probe at the target's $place" '^2$' <(grep -c 'inside .*uprobe:shape::area: ' out)
		done
		kill $inside
	fi
	# A program with the mark of Go, whose stacks move.
	printf '__asm__(".section .go.buildinfo,\\"a\\"\\n.ascii \\"x\\"\\n.text");\n' | cat - use.c >go.c
	gcc -O1 -o go go.c -L. -lshape -Wl,-rpath,"$TMP"
	go="$TMP/go is a Go program, which a return probe would crash, .*probe the entry \(uprobe:main\)"
	check_status 'a return probe of a Go program' 2 "$PROFSCRIPT" trace -e "uretprobe:main@\"$TMP/go\"" -- ./go
	expect_line 'is refused' "^profscript: uretprobe:main: $go" "$TMP/.check"
	check_status 'one by its offset' 2 "$PROFSCRIPT" trace -e "uretprobe:0x1000@\"$TMP/go\"" -- ./go
	"$PROFSCRIPT" trace -e "uprobe:main@\"$TMP/go\"" -- ./go >out 2>&1
	expect_line 'one of its entry is not' 'uprobe:main: ' out
else
	skip 'probes of a library' 'no uprobe PMU, or no gcc'
fi
