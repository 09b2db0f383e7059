#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only
# Kernel functions with typed arguments, which the host's kernel may not let programs trace.
. "$(dirname "$0")/../../../lib.sh"
cd "$TOP" || exit 1
echo "# $(uname -r)"
write=(dd if=/dev/zero "of=$TMP/written" bs=4096 count=50)

# counts NAME REGEX ARGS...: exec with these arguments, beside 50 writes of 4096 bytes, prints a line that matches
counts() {
	local name=$1 regex=$2
	shift 2
	"$PROFSCRIPT" exec "$@" -- "${write[@]}" >"$TMP/out" 2>&1
	expect_line "$name" "$regex" "$TMP/out"
}

counts 'the call of a function' '^dd +4096 +50$' -e fentry:vfs_write 'count(ev._comm, ev.count)'
counts 'its end' '^ *4096 +4096 +50$' -e fexit:vfs_write 'count(ev.count, ev.retval)'
counts 'other names' '^ *4096 +50$' -e 'kretfunc:vfs_write/retval > 4000/' 'count(ev.retval)'
counts 'a kprobe whose arguments are read by name' '^ *50$' -e 'kprobe:vfs_write/count == 4096/' 'count()'
counts 'a kretprobe' '^ *50$' -e kretprobe:vfs_write 'if ev.retval == ev.count and ev.count > 100 then count() end'
counts 'several functions' '^kprobe:vfs_write +50$' -e 'kprobe:vfs_wri*' 'if ev.count == 4096 then count(probe) end'
# With the lines that dd prints.
counts 'which of several functions, by one program where the kernel can do that' '^vfs_write +5[1-3]$' \
	-e 'kprobe:vfs_wri*' 'count(func)'
counts 'and at the end of each' '^vfs_write +5[1-3]$' -e 'kretprobe:vfs_wri*' '@[func] = count()'
counts 'beside arguments' '^vfs_write +4096 +50$' -e 'kprobe:vfs_wri*' 'count(func, ev.count)'
: >"$TMP/written"
inode=$(stat -c %i "$TMP/written")
counts 'members behind pointers' "^ *$inode +$inode +50$" -e 'fentry:vfs_write/count == 4096/' \
	'count(ev.file.f_inode.i_ino, ev.file.f_path.dentry.d_inode.i_ino)'
modprobe null_blk irqmode=0
for function in null_queue_rq null_blk:null_queue_rq; do
	start exec -e "fentry:$function" 'count(ev.bd.rq.__data_len)'
	dd if=/dev/zero of=/dev/nullb0 bs=4k count=100 oflag=direct 2>/dev/null
	stop
	expect_line "$function of a module" '^ *4096 +100$' "$TMP/out"
done
refused 'a member that does not exist' 2 "bad expression .* struct inode has no member 'i_inoo' at column 23; did you mean" \
	exec -e fentry:vfs_write 'count(ev.file.f_inode.i_inoo)'
refused 'a function that does not exist' 2 "fentry:vfs_wrte: the kernel's BTF has no function 'vfs_wrte'; did you mean" \
	exec -e fentry:vfs_wrte 'count()'
refused 'too many functions' 2 "'kprobe:\*' matches [0-9]+ events, which are more than 200" exec -e 'kprobe:*' 'count()'
