#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only
# pagecache: bytes by task and inode compared with those computed from perf script's text.
. "$(dirname "$0")/../../lib.sh"
export TZ=UTC

# "TID,ADDED,REMOVED,WRITTEN,INODE"; perf prints inodes in hexadecimal, and of ext4 in decimal
perf script -i "$DATA/pagecache.data" -F tid,event,trace 2>/dev/null |
	sed -nE 's/^ *([0-9]+) +([a-z0-9_]+:[a-z0-9_]+): +dev [0-9]+[:,][0-9]+ ino ([0-9a-f]+) .*(order=|pages_written )([0-9]+).*/\1 \2 \3 \5/p' |
	while read -r tid event inode n; do
		case $event in
			*:mm_filemap_add*) echo "$tid,$((4096 << n)),0,0,$((0x$inode))" ;;
			*:mm_filemap_delete*) echo "$tid,0,$((4096 << n)),0,$((0x$inode))" ;;
			*) echo "$tid,0,0,$((4096 * n)),$inode" ;;
		esac
	done | awk -F, -v OFS=, '{ key = $1 "," $5; a[key] += $2; r[key] += $3; w[key] += $4 }
		END { for (key in a) { split(key, part, ","); print part[1], a[key], r[key], w[key], part[2] } }' |
	sort >"$TMP/want"
csv pagecache --input "$DATA/pagecache.data" --top 1000
# Which column is which: table,time,task,faults,added,removed,written,file
tail -n +2 "$TMP/out" | sed -E 's/[^,]*\(([0-9]+)\)/\1/; s/inode ([0-9]+) of [0-9:]+/\1/' |
	awk -F, -v OFS=, '{ print $3, $5, $6, $7, $8 }' | sort >"$TMP/got"
check 'bytes by task and inode' diff "$TMP/want" "$TMP/got"
check 'a file of 1 MiB is written, and removed' bash -c \
	"grep -q ',1048576,0,1048576,' '$TMP/got' && grep -q ',0,1048576,0,' '$TMP/got'"
csv pagecache --input "$DATA/pagecache.data" --by file --sort written
check '--by file: its row is the first' test "$(sed -n 2p "$TMP/out" | cut -d, -f3-6)" = 0,1048576,1048576,1048576
refused 'a column that does not exist' 2 "--by: no column 'files'; did you mean 'file'\?" \
	pagecache --by files --input "$DATA/pagecache.data"
