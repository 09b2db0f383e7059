#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only
# udp: a known number of datagrams of a server and its client.
. "$(dirname "$0")/../../lib.sh"
needs_tracepoint sock:sock_send_length sock:sock_recv_length
[ -r /sys/kernel/btf/vmlinux ] || skip_all 'the kernel has no BTF'

"$PROFSCRIPT" udp -m 1024 --csv -- "$TOP/build/workloads/tcp" udp 40 >"$TMP/out" 2>"$TMP/err"
expect_line 'the client, with its peer' '^udp,[0-9.]+,tcpclient \([0-9]+\),,127.0.0.1:[0-9]+,40,40000,40,12000,[0-9]+,[0-9]+$' "$TMP/out"
expect_line 'the server, with its port' '^udp,[0-9.]+,udpserver \([0-9]+\),[0-9]+,,40,12000,40,40000,[0-9]+,[0-9]+$' "$TMP/out"
"$PROFSCRIPT" udp -m 1024 --csv --capture perf -- "$TOP/build/workloads/tcp" udp 40 >"$TMP/out" 2>"$TMP/err"
expect_line '--capture perf: without the ends' '^udp,[0-9.]+,tcpclient \([0-9]+\),,,40,40000,40,12000,' "$TMP/out"
