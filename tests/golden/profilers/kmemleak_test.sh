#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only
# kmemleak: the memory left at the end, compared with perf script's text.
. "$(dirname "$0")/../../lib.sh"

# The allocations that remain are those that perf script's text leaves unfreed.
perf script -i "$DATA/kmem.data" --ns -F event,trace 2>/dev/null | awk '
	{ for (i = 1; i <= NF; i++) if ($i ~ /^ptr=/) ptr = $i; else if ($i ~ /^bytes_alloc=/) bytes = substr($i, 13) }
	/kmalloc:/ { there[ptr] = bytes; allocs++ } /kfree:/ { delete there[ptr]; frees++ }
	END { for (p in there) { n++; sum += there[p] } print allocs + 0, frees + 0, sum + 0, n + 0 }' >"$TMP/want"
"$PROFSCRIPT" kmemleak --alloc kmem:kmalloc --free kmem:kfree --input "$DATA/kmem.data" |
	awk '/^TOTAL/ { a = $3; f = $5 } /^LEAKED [0-9]/ { print a, f, $2, $5 }' >"$TMP/got"
check 'kmemleak: the allocations that remain' diff "$TMP/want" "$TMP/got"
expect_text 'kmemleak --filter' /dev/null "$PROFSCRIPT" kmemleak --alloc kmem:kmalloc --free kmem:kfree \
	--filter 'common_pid == -1' --input "$DATA/kmem.data"
expect_output kmemleak kmem kmemleak --alloc kmem:kmalloc --free kmem:kfree
