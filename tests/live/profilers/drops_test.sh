#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only
# drops: refused connections, and requests for connections that are sent again because nobody accepts.
. "$(dirname "$0")/../../lib.sh"
needs_tracepoint skb:kfree_skb tcp:tcp_retransmit_skb tcp:tcp_send_reset

"$PROFSCRIPT" drops -m 1024 --csv --top 1000 -- "$TOP/build/workloads/tcp" netns full 4 >"$TMP/out" 2>"$TMP/err"
read -r _ port _ sent_again < <(grep '^port' "$TMP/out")
expect_line 'what is sent again, in interrupts, is what the kernel counts' "^retransmits,[0-9.]+,127.0.0.1:$port,SYN_SENT,$sent_again$" "$TMP/out"
"$PROFSCRIPT" drops -m 1024 --csv --top 1000 --each -- "$TOP/build/workloads/tcp" netns refused 30 >"$TMP/out" 2>"$TMP/err"
expect_line 'resets of refused connections' '^resets,[0-9.]+,received,127.0.0.1:[0-9]+,,,30$' "$TMP/out"
expect_line 'with the end that sends them' '^resets,[0-9.]+,sent,127.0.0.1:[0-9]+,127.0.0.1,[A-Z_]*,30$' "$TMP/out"
check 'drops with reason and place' test "$(grep -cE '^packet,drop,NO_SOCKET,tcp_v4_rcv\+0x[0-9a-f]+,IPv4' "$TMP/out")" -ge 30
