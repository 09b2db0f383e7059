#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only
# drops: what perf script counts of each reason, peer and state.
. "$(dirname "$0")/../../lib.sh"
export TZ=UTC

perf script -i "$DATA/drops.data" -F event,trace 2>/dev/null >"$TMP/text"
csv drops --input "$DATA/drops.data" --top 1000

# counts_are NAME TABLE FIELDS: the rows of a table, as FIELDS and the count, are the lines on stdin, as often as there are
counts_are() {
	sort | uniq -c | awk '{ n = $1; sub(/^ *[0-9]+ /, ""); print $0 "," n }' | sort >"$TMP/want"
	grep "^$2," "$TMP/out" | cut -d, -f"$3" | sort >"$TMP/got"
	check "$1" diff "$TMP/want" "$TMP/got"
	check "$1: there are some" test -s "$TMP/want"
}
# Not where: that is a symbol of the kernel that runs now.
counts_are 'drops by reason' drops 3,5,6 < <(sed -nE 's/.*kfree_skb.* protocol=([0-9]+) .* reason: (.*)/\2,\1/p' "$TMP/text" |
	sed 's/,2048$/,IPv4/; s/,34525$/,IPv6/')
counts_are 'retransmits by peer' retransmits 3,5 < <(
	sed -nE 's/.*retransmit_skb.* dport=([0-9]+) .* daddr=([0-9.]+) .*/\2:\1/p' "$TMP/text")
counts_are 'resets' resets 3-7 < <(
	sed -nE 's/.*send_reset.* src=([^ ]+) dest=\[?([^ ]+[^]])\]?:[0-9]+ .* reason=(.*)/sent,\1,\2,\3/p' "$TMP/text"
	sed -nE 's/.*receive_reset.*family=AF_INET .* dport=([0-9]+) .* daddr=([0-9.]+) .*/received,\2:\1,,/p
		s/.*receive_reset.*family=AF_INET6 .* dport=([0-9]+) .* daddrv6=([^ ]+) .*/received,[\2]:\1,,/p' "$TMP/text")
check '--each: a row for each' test "$("$PROFSCRIPT" drops --each --csv --input "$DATA/drops.data" | grep -c ^packet,)" -eq "$(wc -l <"$TMP/text")"
"$PROFSCRIPT" record --input "$DATA/drops.data" -e skb:kfree_skb -o "$TMP/part.data" 2>/dev/null
"$PROFSCRIPT" drops --csv --input "$TMP/part.data" >"$TMP/part" 2>"$TMP/err"
check 'a recording of drops alone' diff <(grep ^drops, "$TMP/out" | cut -d, -f3-) <(grep ^drops, "$TMP/part" | cut -d, -f3-)
expect_line 'it says that there are no resets' 'the recording has no tcp:tcp_send_reset: resets that were sent are missing' "$TMP/err"
