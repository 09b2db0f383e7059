#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only
# signal: numbers compared with those of the recorded programs or with perf script's text, outputs with
# *.expect files.
. "$(dirname "$0")/../../lib.sh"

table signal signal
check 'signal: senders, receivers and counts' diff <(cut -d, -f1,3,5- "$TMP/got") - <<-'END'
	USR1,states,states,delivered,12
	USR1,states,states,delivered,5
	TERM,sh,sleep,delivered,1
	RT5,sh,sleep,delivered,1
END
check 'signal: to itself' test "$(awk -F, '$2 == $4' "$TMP/got" | grep -c USR1)" = 2
table signal signal --filter 'sig == 15'
check 'signal --filter: and no others' diff <(cut -d, -f1,7 "$TMP/got") <(echo TERM,1)
expect_outputs signal signal signal
expect_outputs signal-print signal signal --print --filter 'pid != common_pid'
