#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only
# The progress line: on a terminal, while a recording is read or its results are computed for more than a second; erased
# before other output and at the end. What makes it last that long is a reader of the output that sleeps.
. "$(dirname "$0")/../../../lib.sh"
slow="{ head -c 1; sleep 1.5; cat; } >/dev/null" # from the first byte on
on_terminal() { # each line that was on the terminal, with its control sequences as <ERASE>
	python3 "$TOP/tests/tools/terminal.py" /bin/sh -c "$1" | sed 's/\x1b\[K/<ERASE>/g; s/\r$//' | tr '\r' '\n' >"$TMP/out"
}

on_terminal "'$PROFSCRIPT' trace --input '$DATA/zstd.data' | $slow"
expect_line 'percent, bytes, events, rate, time left' \
	'^trace: [0-9]+% of 38\.0 KiB, [0-9.]+ kevents, [0-9.]+ [KM]?i?B/s, [0-9]+ s left<ERASE>$' "$TMP/out"
check 'it is erased at the end' test "$(tail -n 1 "$TMP/out")" = '<ERASE>'
check 'nothing else is shown' test "$(grep -cv '^trace: .*<ERASE>$\|^<ERASE>$\|^$' "$TMP/out")" = 0

on_terminal "'$PROFSCRIPT' trace --input '$DATA/zstd.data' 2>'$TMP/err' | $slow"
check 'none if stderr is not a terminal' test ! -s "$TMP/err" -a ! -s "$TMP/out"
on_terminal "'$PROFSCRIPT' trace -q --input '$DATA/zstd.data' | $slow"
check 'none with -q' test ! -s "$TMP/out"
for _ in {1..20}; do # a busy machine may let it wait for longer than that second
	began=${EPOCHREALTIME/./}
	on_terminal "'$PROFSCRIPT' trace --input '$DATA/sched.data' >/dev/null"
	[ $((${EPOCHREALTIME/./} - began)) -ge 1000000 ] || break
done
check 'none if it does not last' test ! -s "$TMP/out"

on_terminal "'$PROFSCRIPT' export '$DATA/zstd.data' -o chrome:- | $slow"
expect_line 'a conversion' '^export: ([0-9]+% of 38\.0 KiB|writing -)' "$TMP/out"
expect_line 'it is erased before a message' '^<ERASE>export: exported 4800 events' "$TMP/out"
on_terminal "'$PROFSCRIPT' sql --input '$DATA/zstd.data' -e raw_syscalls:sys_enter --query 'SELECT * FROM sys_enter; SELECT 2' | $slow"
expect_line 'a query that comes late is announced' '^sql: query 2 of 2<ERASE>$' "$TMP/out"

# What has no end in sight: bytes and rate. The writers wait for the reader, and then sleep.
mkfifo "$TMP/fifo"
on_terminal "{ cat '$DATA/pipe.data'; sleep 3; } >'$TMP/fifo' & '$PROFSCRIPT' trace --input '$TMP/fifo' >/dev/null"
expect_line 'a pipe: what came, without a time left' '^trace: 16\.3 KiB, [0-9.k ]*events, [0-9.]+ [KM]?i?B/s<ERASE>$' "$TMP/out"

awk 'BEGIN { for (i = 0; i < 20000; i++) print "main;f" i % 100 ";g 1" }' >"$TMP/x.folded"
on_terminal "{ cat '$TMP/x.folded'; sleep 1.5; cat '$TMP/x.folded'; } >'$TMP/fifo' & '$PROFSCRIPT' flamegraph '$TMP/fifo' '$TMP/x.svg'"
expect_line 'folded stacks from a pipe' "^flamegraph: reading $TMP/fifo: [0-9]+ KiB, [0-9.]+ [KM]iB/s<ERASE>$" "$TMP/out"
check 'it is erased' test "$(grep . "$TMP/out" | tail -n 1)" = '<ERASE>'
check 'from the first stack on' grep -q 'f0 (400 samples' "$TMP/x.svg"
on_terminal "{ cat '$TMP/x.folded'; sleep 1.5; cat '$TMP/x.folded'; } >'$TMP/fifo' & '$PROFSCRIPT' flamegraph -q '$TMP/fifo' '$TMP/x.svg'"
check 'folded stacks: none with -q' test ! -s "$TMP/out"
