#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only
# oom and reclaim: a kill in a control group, and the tries to free pages before it, compared with perf script's text.
. "$(dirname "$0")/../../lib.sh"
export TZ=UTC

perf script -i "$DATA/oom.data" --ns -F tid,time,event,trace 2>/dev/null | sed -E 's/^ *([0-9]+) +([0-9]+)\.([0-9]+): +[a-z]+:([a-z_]+): /\1 \2\3 \4 /' >"$TMP/events"
# Sizes are in kB: total-vm=82104kB anon-rss=16128kB file-rss:6640kB shmem-rss:0kB uid=0 pgtables=92kB oom_score_adj=0
sed -nE 's/.*mark_victim pid=([0-9]+) .*total-vm[=:]([0-9]+)kB anon-rss[=:]([0-9]+)kB,? file-rss[=:]([0-9]+)kB,? shmem-rss[=:]([0-9]+)kB.* pgtables[=:]([0-9]+)kB.* oom_score_adj[=:]([0-9-]+).*/\1 \2 \3 \4 \5 \6 \7/p' \
	"$TMP/events" >"$TMP/victim"
read -r pid virtual anon file shmem tables adj <"$TMP/victim"
tries=$(awk '$3 == "mark_victim" { print n } $3 ~ /reclaim_end/ { n++ }' "$TMP/events")
gone=$(awk -v pid="$pid" '$3 == "mark_victim" { since = $2 } $3 ~ /exit/ && $1 == pid && since { print $2 - since }' "$TMP/events")
csv oom --input "$DATA/oom.data"
# Which column is which: table,time,asked_by,order,reclaims,freed,killed,virtual,anon,file,shmem,tables,adj,gone_ns
check 'who asked, who was killed, and how large it was' test "$(sed -n 2p "$TMP/out" | cut -d, -f3-)" = \
	"python3 ($pid),0,$tries,0,python3 ($pid),$((virtual * 1024)),$((anon * 1024)),$((file * 1024)),$((shmem * 1024)),$((tables * 1024)),$adj,$gone"
check 'one row' test "$(wc -l <"$TMP/out")" -eq 2

csv reclaim --input "$DATA/oom.data"
# Which column is which: table,time,comm,pid,wait,count,total,min,p50,p95,p99,max
check 'the time of all tries' test "$(sed -n 2p "$TMP/out" | cut -d, -f3-7)" = \
	"python3,$pid,memcg reclaim,$(awk '$3 ~ /begin/ { since = $2 } $3 ~ /reclaim_end/ { n++; ns += $2 - since } END { print n "," ns }' "$TMP/events")"
