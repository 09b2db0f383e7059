#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only
# sched-migrate: numbers compared with those of the recorded programs or with perf script's text, outputs with
# *.expect files.
. "$(dirname "$0")/../../lib.sh"

# On that machine two CPUs share an L2 cache, and four an L3 cache.
table migrate sched-migrate
check 'sched-migrate: all, and those within a cache' test "$(cut -d, -f1,2,4 "$TMP/got")" = 12,9,5
perf script -i "$DATA/migrate.data" -F trace 2>/dev/null | sed -nE 's/.*orig_cpu=([0-9]) dest_cpu=([0-9])$/\1 \2/p' |
	awk '{ llc += int($1 / 4) == int($2 / 4); l2 += int($1 / 2) == int($2 / 2) } END { print NR "," llc "," l2 }' >"$TMP/want"
check 'sched-migrate: the migrations of perf script' diff "$TMP/want" <(cut -d, -f1,2,4 "$TMP/got")
"$PROFSCRIPT" sched-migrate --detail --input "$DATA/migrate.data" | sed -nE 's/.*orig_cpu=([0-9]) dest_cpu=([0-9])$/\1 \2/p' >"$TMP/got"
check 'sched-migrate --detail: from one L3 cache to another' diff <(printf '%s\n' '0 4' '6 2' '1 5') "$TMP/got"
table nap sched-migrate
check 'sched-migrate: another machine, whose CPUs share the L3 cache only' test "$(cut -d, -f1,2,4 "$TMP/got")" = 8,8,0
"$PROFSCRIPT" sched-migrate --csv --input - <"$DATA/migrate.data" >"$TMP/got"
expect_text 'sched-migrate: on standard input' "$HERE/sched-migrate-csv.expect" cat "$TMP/got"
table migrate sched-migrate --filter 'dest_cpu < 4'
check 'sched-migrate --filter: the count of perf script' test "$(cut -d, -f1 "$TMP/got")" = \
	"$(perf script -i "$DATA/migrate.data" -F trace 2>/dev/null | grep -c 'dest_cpu=[0-3]$')"
expect_outputs sched-migrate migrate sched-migrate
