#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only
# Functions of a library that is not executable, with C++ names.
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
else
	skip 'probes of a library' 'no uprobe PMU, or no gcc'
fi
