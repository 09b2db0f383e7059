#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only
# reclaim and oom: a program that writes more than its control group may cache, and one that wants too much memory.
. "$(dirname "$0")/../../lib.sh"
needs_tracepoint vmscan:mm_vmscan_memcg_reclaim_begin vmscan:mm_vmscan_memcg_reclaim_end oom:mark_victim \
	sched:sched_process_exit
groups=/sys/fs/cgroup/memory limit=memory.limit_in_bytes swap=memory.memsw.limit_in_bytes both=16M
if [ ! -d $groups ]; then
	groups=/sys/fs/cgroup limit=memory.max swap=memory.swap.max both=0
	echo +memory >$groups/cgroup.subtree_control 2>/dev/null
fi
group=$groups/reclaim$$
mkdir $group 2>/dev/null && [ -e $group/$limit ] || skip_all 'no control groups with a limit of memory'
echo 16M >$group/$limit
[ ! -e $group/$swap ] || echo $both >$group/$swap

# within COMMAND...: runs it in the group
within() { sh -c 'echo $$ >"$1/cgroup.procs" && shift && exec "$@"' - $group "$@"; }
export -f within
export group

"$PROFSCRIPT" reclaim -m 1024 --csv -- bash -c \
	'within perf stat -x, -o "$1/stat" -e vmscan:mm_vmscan_memcg_reclaim_begin dd if=/dev/zero of="$1/file" bs=1M count=32' \
	- "$TMP" >"$TMP/out" 2>"$TMP/err"
tries=$(sed -nE 's/^([0-9]+),.*/\1/p' "$TMP/stat")
rm -f "$TMP/file"
if [ "$(stat -f -c %T "$TMP")" = tmpfs ]; then
	skip 'the pages of a file' "files in $TMP are not in the page cache"
else
	check "perf stat counts as many: $tries" test "$(awk -F, '$1 == "reclaim" && $3 == "dd" && $5 == "memcg reclaim" { print $6 }' "$TMP/out")" \
		-eq "$tries" -a "$tries" -gt 0
	check 'pages are freed' test "$(awk -F, '$1 == "freed" && $3 == "dd" { print $6 }' "$TMP/out")" -gt 0
fi

"$PROFSCRIPT" oom -m 1024 --csv -- bash -c 'within python3 -c "x = bytearray(64 << 20)"' >"$TMP/out" 2>"$TMP/err"
rmdir $group
rows 'who asked, and who was killed' 'c["asked_by"] ~ "^python3 " && c["killed"] == c["asked_by"] && c["reclaims"] > 0'
grep -q total_vm /sys/kernel/tracing/events/oom/mark_victim/format || { skip 'sizes' 'this kernel does not say them' && exit; }
rows 'how large it was' 'c["anon"] > 8e6 && c["anon"] <= 16777216 && c["virtual"] > 67108864 && c["gone_ns"] > 0'
