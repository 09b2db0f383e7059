#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only
# iostat: a known number of requests for a file on a loop device, which completes them in a kernel thread.
. "$(dirname "$0")/../../lib.sh"
needs_tracepoint block:block_rq_issue block:block_rq_complete ext4:ext4_es_lookup_extent_exit
[ -x /usr/sbin/mkfs.ext4 ] || skip_all 'mkfs.ext4 is not installed'
cd "$TMP" || exit 1
mkdir mnt
truncate -s 16M image
/usr/sbin/mkfs.ext4 -q image
loop=$(losetup -f --show image 2>/dev/null) || skip_all 'no loop device'
if ! mount "$loop" mnt 2>err; then
	losetup -d "$loop"
	skip_all "$(<err)"
fi
dd if=/dev/zero of=mnt/blocks bs=64k count=4 conv=fsync 2>/dev/null
sync
"$PROFSCRIPT" iostat -d "$loop" --by device,op,task,file -i 100s --csv -m 1024 -- \
	dd if=/dev/zero of=mnt/blocks bs=4k count=20 oflag=direct conv=notrunc 2>err >out
umount mnt
losetup -d "$loop"
# Which column is which: table,time,device,op,task,calls,bytes,queue,most,busy_percent,wait_ns,avg_ns,p99_ns,max_ns,file
rows 'requests of a program for a file, one at a time' \
	"c[\"device\"] == \"${loop#/dev/}\" && c[\"op\"] == \"write\" && c[\"task\"] ~ \"^dd \" && c[\"calls\"] == 20 && \
	c[\"bytes\"] == 81920 && c[\"most\"] == 1 && c[\"file\"] == \"$TMP/mnt/blocks\""
