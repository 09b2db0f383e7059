#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only
# tcp: bytes and connections compared with those computed from perf script's text.
. "$(dirname "$0")/../../lib.sh"
export TZ=UTC

# "pid,sent,received" of what processes have sent and received, "pid,connects" of the connections that they open.
perf script -i "$DATA/tcp.data" -F pid,event,trace 2>/dev/null >"$TMP/text"
awk '/sock_(send|recv)_length/ && match($0, /length = [0-9]+/) {
		n = substr($0, RSTART + 9, RLENGTH - 9); seen[$1]; if (/send_length/) sent[$1] += n; else received[$1] += n }
	END { for (pid in seen) if (sent[pid] + received[pid]) print pid "," sent[pid] "," received[pid] }' "$TMP/text" | sort >"$TMP/want"
csv tcp --input "$DATA/tcp.data"
awk -F '[,()]' 'NR > 1 { sent[$4] += $10; received[$4] += $11 }
	END { for (pid in sent) if (sent[pid] + received[pid]) print pid "," sent[pid] "," received[pid] }' "$TMP/out" | sort >"$TMP/got"
check 'bytes by process' diff "$TMP/want" "$TMP/got"
check 'connects' test "$(grep -c 'newstate=TCP_SYN_SENT' "$TMP/text")" -eq "$(awk -F, '$4 == "" { n += $6 } END { print n }' "$TMP/out")"
check 'accepts' test "$(grep -c 'newstate=TCP_SYN_RECV' "$TMP/text")" -eq "$(awk -F, 'NR > 1 && $4 != "" { n += $6 } END { print n }' "$TMP/out")"
check 'resets' test "$(grep -c 'tcp_receive_reset' "$TMP/text")" -eq "$(total resets)"
expect_outputs tcp tcp tcp
expect_output tcp-rows tcp tcp --than 1ms --connects 20us --states
csv tcp --input "$DATA/tcp.data" --top 1 --sort received
check '--sort: the first of all rows' test "$(awk -F, 'NR > 1 { print $3 }' "$TMP/out" | cut -d' ' -f1)" = tcpserver
