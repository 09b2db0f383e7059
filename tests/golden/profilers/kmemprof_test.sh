#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only
# kmemprof: bytes and objects compared with perf script's text.
. "$(dirname "$0")/../../lib.sh"

memory=(-e kmem:kmalloc//stack/ -e kmem:kfree//stack/)
"$PROFSCRIPT" kmemprof "${memory[@]}" --input "$DATA/kmemprof.data" --format json >"$TMP/json"
perf script -i "$DATA/kmemprof.data" -G -F event,trace 2>/dev/null |
	awk '$1 == "kmem:kmalloc:" { match($0, /ptr=[^ ]+/); p = substr($0, RSTART, RLENGTH)
			match($0, /bytes_alloc=[0-9]+/); size[p] = substr($0, RSTART + 12, RLENGTH - 12) }
		$1 == "kmem:kfree:" { match($0, /ptr=[^ ]+/); p = substr($0, RSTART, RLENGTH)
			if (p in size) { n++; sum += size[p]; delete size[p] } }
		END { for (p in size) { left++; bytes += size[p] }
			print "alloc " sum " " n; print "free " sum " " n; if (left) print "left " bytes " " left }' >"$TMP/want"
sed -nE 's/.*"what":"([a-z]+)","bytes":([0-9]+),"objects":([0-9]+),"stack":null.*/\1 \2 \3/p' "$TMP/json" >"$TMP/got"
check 'kmemprof: sums' diff "$TMP/want" "$TMP/got"
for what in alloc free; do
	sed -nE "s/.*\"what\":\"$what\",\"bytes\":([0-9]+),\"objects\":([0-9]+),\"stack\":\[.*/\1 \2/p" "$TMP/json" |
		awk -v what=$what '{ bytes += $1; n += $2 } END { print what, bytes, n }' >"$TMP/got"
	check "kmemprof: the stacks of $what add up" grep -Fxq "$(cat "$TMP/got")" "$TMP/want"
done
for size in bytes_alloc '0+bytes_alloc'; do # without stacks, only a field is kept of an allocation
	"$PROFSCRIPT" kmemprof -e "kmem:kmalloc//size=$size/" -e kmem:kfree --input "$DATA/kmemprof.data" --format json 2>/dev/null |
		sed -nE 's/.*"what":"([a-z]+)","bytes":([0-9]+),"objects":([0-9]+),"stack":null.*/\1 \2 \3/p' >"$TMP/got"
	check "kmemprof: sums without stacks, size=$size" diff "$TMP/want" "$TMP/got"
done
"$PROFSCRIPT" kmemprof "${memory[@]}" --input "$DATA/kmemprof.data" >"$TMP/out"
expect_line 'kmemprof: the sum' '^kmem:kmalloc total alloc [0-9]+ bytes on [0-9]+ objects$' "$TMP/out"
expect_line 'kmemprof: a stack and its part' '^Allocate [0-9]+ \([0-9]+\.[0-9]%\) bytes on [0-9]+ \([0-9]+\.[0-9]%\) objects:$' \
	"$TMP/out"
"$PROFSCRIPT" multi-trace "${memory[@]}" -k ptr --impl kmemprof --input "$DATA/kmemprof.data" >"$TMP/impl"
check 'multi-trace --impl kmemprof is kmemprof' diff "$TMP/out" "$TMP/impl"
"$PROFSCRIPT" kmemprof -e kmem:kmalloc -e kmem:kfree//stack/ --input "$DATA/kmemprof.data" 2>&1 >/dev/null | grep -c 'kmalloc' >"$TMP/n"
check 'kmemprof: one warning for events without stacks' test "$(cat "$TMP/n")" -eq 1
