#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only
# udp: datagrams and bytes compared with those in perf script's text.
. "$(dirname "$0")/../../lib.sh"
export TZ=UTC

perf script -i "$DATA/udp.data" -F pid,event,trace 2>/dev/null | awk '
	match($0, /length = [0-9]+/) {
		n = substr($0, RSTART + 9, RLENGTH - 9); pids[$1]
		if (/send_length/) { sent[$1]++; out[$1] += n } else { got[$1]++; into[$1] += n }
	}
	END { for (pid in pids) print pid "," sent[pid] "," out[pid] "," got[pid] "," into[pid] }' | sort >"$TMP/want"
csv udp --input "$DATA/udp.data"
sed -nE 's/^udp,[^,]*,[^(]*\(([0-9]+)\),,,([^,]*,[^,]*,[^,]*,[^,]*),.*/\1,\2/p' "$TMP/out" | sort >"$TMP/got"
check 'datagrams and bytes by process' diff "$TMP/want" "$TMP/got"
check 'there are some' test -s "$TMP/want"
expect_outputs udp udp udp
