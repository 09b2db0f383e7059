#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only
# kmemleak: pages that a program keeps; malloc and calloc of a program that keeps every tenth object, by probes.
# Runs alone.
. "$(dirname "$0")/../../lib.sh"
needs_tracepoint sched:sched_switch
leak=$TOP/build/workloads/leak

if [ -d /sys/kernel/tracing/events/kmem/mm_page_alloc ]; then
	workload pages 3000
	trace_workload kmemleak -m 1024 --format csv --alloc "kmem:mm_page_alloc/migratetype==1/ptr=pfn/size='4096<<order'/" \
		--free kmem:mm_page_free/pfn==0/ptr=pfn/ -p $WORKLOAD
	rows 'pages that are not freed' 'c["objects"] == 3000 && c["bytes"] == 3000 * 4096'
else
	skip 'pages' 'kmem:mm_page_alloc'
fi
if [ "$(uname -m)" = x86_64 ] && [ -e /sys/bus/event_source/devices/uprobe ]; then
	probes=(--size 'uprobe:malloc@libc.so.6(n=%di)//size=n/' --free 'uprobe:free@libc.so.6(p=%di)//ptr=p/'
		--alloc 'uretprobe:malloc@libc.so.6(p=$retval)//ptr=p/,uretprobe:calloc@libc.so.6(p=$retval)//ptr=p/')
	csv kmemleak -m 1024 -g "${probes[@]}" -- "$leak" 500
	rows 'exactly what leaks' 'c["bytes"] == 50000 && c["objects"] == 50 && c["stack"] ~ / main\+/'
	check 'and nothing else' test "$(column objects)" = 50
	csv kmemleak -m 1024 -g --malloc -- "$leak" 500
	rows '--malloc: the same' 'c["bytes"] == 50000 && c["objects"] == 50 && c["stack"] ~ / main\+/'
	check '--malloc: and nothing else' test "$(column objects)" = 50
	"$PROFSCRIPT" kmemleak -m 1024 --comm -g --srcline "${probes[@]}" -- "$leak" 500 >"$TMP/out"
	expect_line 'all of it' '^TOTAL alloc 1000 free 950$' "$TMP/out"
	expect_line 'by stack' '^Leak of 50000 bytes in 50 objects allocated from:' "$TMP/out"
	expect_line '--comm' '^    comms: leak\(50000/50\)$' "$TMP/out"
	expect_line '--srcline' ' main\+0x[0-9a-f]+ \(.*/leak\) leak\.c:[0-9]+$' "$TMP/out"
	"$PROFSCRIPT" kmemleak -m 1024 --flame-graph "$TMP/leak.folded" "${probes[@]}" -- "$leak" 500 >"$TMP/out" 2>"$TMP/err"
	expect_line '--flame-graph: leaked bytes' '^leak;(.*;)?main 50000$' "$TMP/leak.folded"
	check '--flame-graph: and no others' test "$(awk '{ n += $NF } END { print n }' "$TMP/leak.folded")" = 50000
	csv kmemleak "${probes[@]:2}" -- "$leak" 100
	expect_line 'an unknown size' '^kmemleak: no size= for uretprobe:malloc, uretprobe:calloc: ' "$TMP/err"
	csv kmemleak --than 60s "${probes[@]}" -- "$leak" 100
	check '--than: no allocation is that old' test ! -s "$TMP/out"
else
	skip 'malloc and calloc' 'the uprobe PMU, or x86_64 registers'
fi
start kmemleak --alloc kmem:kmalloc --free kmem:kfree -e sched:sched_switch -m 1024
# shellcheck disable=SC2317 # wait_for calls it
counts() { kill -USR1 $tracer && grep -Eq '^TOTAL alloc [1-9][0-9]* free [1-9][0-9]*$' "$TMP/out"; }
check 'SIGUSR1 prints what was allocated and freed' wait_for 20 counts
expect_line 'and what there is' '^ALLOC LIST num [0-9]+ mem [0-9]+$' "$TMP/out"
stop
expect_line '-e' '^kmemleak: -e has no effect; select events with --alloc and --free$' "$TMP/err"
"$PROFSCRIPT" kmemleak --alloc kmem:kmalloc//ptr=ptr/ --free kmem:kfree help >"$TMP/out"
expect_line 'help: the command line' '^  profscript kmemleak --alloc kmem:kmalloc//ptr=ptr/ --free kmem:kfree ' "$TMP/out"
expect_line 'help: the fields' '^bytes_alloc ' "$TMP/out"
check_status 'it needs events' 2 "$PROFSCRIPT" kmemleak --free kmem:kfree -- true
check_status 'it needs an address' 2 "$PROFSCRIPT" kmemleak --alloc sched:sched_switch --free kmem:kfree -- true
ends_on_ctrl_c kmemleak --alloc kmem:kmalloc --free kmem:kfree
