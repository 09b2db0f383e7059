#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only
# iostat: requests compared with those computed from perf script's text.
. "$(dirname "$0")/../../lib.sh"
export TZ=UTC

# "TASK,REQUESTS,BYTES,WAIT_NS,TOTAL_NS" of requests that were queued; those without data have sector 2^64 - 1
perf script -i "$DATA/blocks.data" --ns -F tid,time,event,trace 2>/dev/null | sed -E 's/\.//' |
	awk '$6 == 0 { next }
		{ sector = ""; for (i = 5; i < NF; i++) if ($i == "+") { sector = $(i - 1); n = $(i + 1) } }
		$3 ~ /insert/ { task[sector] = $1; since[sector] = $2 + 0; next }
		$3 ~ /issue/ && sector in since { waited[sector] = $2 - since[sector] }
		$3 ~ /complete/ && sector in since { t = task[sector]; calls[t]++; bytes[t] += n * 512
			wait[t] += waited[sector]; ns[t] += $2 - since[sector]; delete since[sector] }
		END { for (t in calls) print t "," calls[t] "," bytes[t] "," wait[t] "," ns[t] }' | sort >"$TMP/want"
csv iostat --input "$DATA/blocks.data" --by task -i 100s
# Which column is which: table,time,task,calls,bytes,queue,most,busy_percent,wait_ns,avg_ns,p99_ns,max_ns
tail -n +2 "$TMP/out" | sed -E 's/[^,]*\(([0-9]+)\)/\1/' |
	awk -F, '$5 { printf "%d,%d,%d,%.0f,%.0f\n", $3, $4, $5, $9 * $4, $10 * $4 }' | sort >"$TMP/got"
check 'requests, bytes and times by task' diff "$TMP/want" "$TMP/got"
check 'there are 20 of one task' grep -q ',20,1310720,' "$TMP/got"
csv iostat --input "$DATA/blocks.data" --by file,op -i 100s
rows 'the file of 20 requests, by its inode' \
	'c["op"] == "write" && c["calls"] == 20 && c["most"] == 1 && c["file"] ~ "^inode 1147240 of "'
rows 'metadata' 'c["op"] == "write" && c["calls"] == 2 && c["bytes"] == 8192 && c["file"] == "[metadata]"'
rows 'one request of another file' 'c["calls"] == 1 && c["bytes"] == 262144 && c["file"] ~ "^inode 1147241 of "'
csv iostat --input "$DATA/blocks.data" -i 10ms
check 'intervals add up' test "$(total calls)" -eq 24
refused 'a column that does not exist' 2 "--by: no column 'devices'; did you mean 'device'\?" \
	iostat --by devices --input "$DATA/blocks.data"
