#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only
# epoll: waits compared with those computed from perf script's text.
. "$(dirname "$0")/../../lib.sh"
export TZ=UTC

# waits that have begun and ended, their events and ns, and times between two waits of a thread
perf script -i "$DATA/epoll.data" --ns -F tid,time,event,trace 2>/dev/null |
	sed -E 's/^ *([0-9]+) +([0-9]+)\.([0-9]+): +([a-z_:]+): */\1|\2\3|\4|/' |
	awk -F '|' '
		/enter_epoll/ { since[$1] = $2; if (left[$1]) handled++; left[$1] = 0 }
		/exit_epoll/ && since[$1] { n++; ns += $2 - since[$1]; left[$1] = $2
			sub(/^ *0x/, "", $4); if (length($4) == 1) events += $4 }
		END { print n "," events "," ns; print handled }' >"$TMP/want"
csv epoll --input "$DATA/epoll.data"
echo "$(total waits),$(total events),$(total waited_ns)" >"$TMP/got"
csv epoll --input "$DATA/epoll.data" --than 0
grep -c '^handled,' "$TMP/out" >>"$TMP/got"
check 'waits, events, times, and with --than 0 a row for each time that events were handled' diff "$TMP/want" "$TMP/got"
expect_outputs epoll epoll epoll
