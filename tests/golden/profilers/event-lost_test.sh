#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only
# event-lost: the delivered and lost events of a recording.
. "$(dirname "$0")/../../lib.sh"

# A recording has no counts, but reports its losses.
"$PROFSCRIPT" event-lost --input "$DATA/lost.data" --format json >"$TMP/json"
perf script -i "$DATA/lost.data" -F event 2>/dev/null | sed 's/.*:\(.*\): *$/\1/' | sort | uniq -c | awk '{ print $2, $1 }' >"$TMP/want"
perf script -i "$DATA/lost.data" --show-lost-events 2>/dev/null | awk '/PERF_RECORD_LOST/ { n += $NF } END { print "lost", n }' \
	>>"$TMP/want"
sed -n 's/.*"event":"\([a-z_]*\)","delivered":\([0-9]*\)}$/\1 \2/p; s/.*"event":"lost","lost":\([0-9]*\),.*/lost \1/p' \
	"$TMP/json" >"$TMP/got"
check 'event-lost of a recording' diff "$TMP/want" "$TMP/got"
