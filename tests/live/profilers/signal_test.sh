#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only
# signal: an exact number of signals that a program sends to itself.
# Runs alone.
. "$(dirname "$0")/../../lib.sh"
needs_tracepoint signal:signal_generate
states=$TOP/build/workloads/states

csv signal -- "$states" signal 40
rows 'all of them' \
	'c["signal"] == "USR1" && c["count"] == 40 && c["sender"] == c["receiver"] && c["sender_comm"] == "states"'
"$PROFSCRIPT" signal --print --filter 'sig == 10' -- "$states" signal 3 >"$TMP/out"
check '--print' test "$(grep -c 'signal_generate: sig=10 .*comm=states' "$TMP/out")" = 3
csv signal --filter 'sig == 9' -- "$states" signal 3
check '--filter: and no others' test ! -s "$TMP/out"
csv signal --filter 'st?tes,nobody' -- "$states" signal 4
rows '--filter with names' 'c["signal"] == "USR1" && c["count"] == 4 && c["receiver_comm"] == "states"'
csv signal --filter nobody -- "$states" signal 3
check '--filter with a name of no task' test ! -s "$TMP/out"
ends_on_ctrl_c signal
