#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only
# Kernel records about BPF programs, cgroups and tasks that the test creates; live, in recordings, and as events of
# other profilers.
# Runs alone.
. "$(dirname "$0")/../../lib.sh"
needs_tracepoint sched:sched_switch
cd "$TMP" || exit 1
cgroup2=$(awk '$3 == "cgroup2" { print $2; exit }' /proc/mounts)
name=profscript-misc-$$

# A known process loads a program that filters samples, for a moment.
load() {
	"$PROFSCRIPT" profile --nr-running-min 1 -F 99 --duration 0.1 >load.out 2>&1 &
	loader=$!
	wait $loader
}

start misc
load
has_bpf=$?
stop
check 'misc ends on Ctrl-C, without a message' test ! -s err
if [ $has_bpf -eq 0 ]; then
	expect_line 'a BPF program is code' \
		" profscript +$loader .* misc:ksymbol: bpf reg ffffffff[0-9a-f]{8}/[0-9]+ bpf_prog_[0-9a-f]{16}_filter\$" out
	expect_line 'and is removed' ' misc:ksymbol: bpf unreg ffffffff[0-9a-f]{8}/[0-9]+ bpf_prog_[0-9a-f]{16}_filter$' out
	tag=$(sed -n "s/.* $loader .*misc:ksymbol: bpf reg .* bpf_prog_\([0-9a-f]*\)_filter\$/\1/p" out | head -n 1)
	expect_line 'its load' " $loader .* misc:bpf_event: prog load id [0-9]+ tag $tag\$" out
	expect_line 'its unload' " misc:bpf_event: prog unload id [0-9]+ tag $tag\$" out
	# From one event to the other: how long programs were loaded.
	start multi-trace -e misc:bpf_event/type==1/key=id/ -e misc:bpf_event/type==2/key=id/
	load
	stop
	expect_line 'pairs of records' '^bpf_event => bpf_event +[1-9]' out
else
	skip 'BPF programs' "$(head -n 1 load.out)"
fi

if [ -n "$cgroup2" ] && mkdir "$cgroup2/$name" 2>/dev/null; then
	rmdir "$cgroup2/$name"
	start misc --records cgroup -N 1 --format json
	mkdir "$cgroup2/$name"
	inode=$(stat -c %i "$cgroup2/$name")
	rmdir "$cgroup2/$name"
	check '-N ends it' wait_for 20 bash -c "! kill -0 $tracer"
	expect_line 'a cgroup, with its inode' \
		"^{\"event\":\"misc:cgroup\",.*\"comm\":\"mkdir\",.*\"id\":$inode,\"path\":\"/$name\"}\$" out
	"$PROFSCRIPT" trace -e "misc/--records cgroup/,sched:sched_process_exec" \
		-- sh -c "exec mkdir $cgroup2/$name" >out 2>err
	rmdir "$cgroup2/$name"
	expect_line 'as a source' " mkdir .* misc:cgroup: id [0-9]+ /$name\$" out
	check 'in time order' bash -c "grep -n 'filename=.*mkdir\|misc:cgroup' out | sed 's/.*misc.*/m/; s/.*exec.*/e/' |
		tr -d '\n' | grep -q 'em'"
	perf record -q -a -e dummy --all-cgroups --namespaces -o all.data -- \
		sh -c "mkdir $cgroup2/$name; rmdir $cgroup2/$name; unshare -u true" 2>/dev/null
	"$PROFSCRIPT" misc --input all.data >out 2>err
	expect_line 'a recording' " mkdir .* misc:cgroup: id [0-9]+ /$name\$" out
	check 'earlier mappings are not events' bash -c "! grep 'misc:cgroup: id 1 ' out"
	expect_line 'a filter' "^[0-9]+,/$name\$" <("$PROFSCRIPT" exec -e "misc:cgroup/path==\"/$name\"/" --input all.data \
		'print(ev.id .. "," .. ev.path)')
	inode=$(perf script --show-namespace-events -i all.data 2>/dev/null |
		sed -n '/ unshare .*NAMESPACES/,/cgroup/s/.*uts: [0-9]*\/0x\([0-9a-f]*\),.*/\1/p' | tail -n 1)
	expect_line 'a namespace that perf shows' " unshare .*misc:namespaces: .* uts $((16#$inode)) " \
		<("$PROFSCRIPT" misc --records namespaces --input all.data)
else
	skip cgroups 'a cgroup2 that can be written to'
fi

# Tasks: the workload's own.
"$PROFSCRIPT" misc --records comm,fork,exit,mmap,namespaces -- sh -c '/bin/true; exit 0' >out 2>err
expect_line 'a name' ' misc:comm: true [0-9]+/[0-9]+ exec$' out
expect_line 'a fork' ' misc:fork: ([0-9]+)/\1 by ([0-9]+)/\2$' out
expect_line 'an end' ' misc:exit: ([0-9]+)/\1 of ([0-9]+)/\2$' out
expect_line 'code that is mapped' ' misc:mmap: [0-9]+/[0-9]+ [0-9a-f]+/[0-9a-f]+ @ [0-9a-f]+ .*/libc' out
"$PROFSCRIPT" misc --records namespaces --format csv -- unshare -u true >out 2>err
if [ "$(tail -n 1 out | tr , '\n' | grep -c .)" -gt 5 ]; then
	expect_line 'namespaces' '^event,.*,net,.*,uts,' out
	check "another one's" test "$(awk -F, 'NR == 1 { for (i = 1; i <= NF; i++) if ($i == "uts") at = i; next }
		{ print $at }' out | tail -n 1)" != "$(stat -Lc %i /proc/self/ns/uts)"
else
	skip 'namespaces' 'unshare -u'
fi

# The table of a task contains the names that it had, whether or not its records are events too.
perf record -q -e sched:sched_process_exit -o tasks.data -- sh -c '/bin/true; exit 0' 2>/dev/null
"$PROFSCRIPT" trace -e sched:sched_process_exit,misc:comm --input tasks.data >out
expect_line 'names of a recording that are events' '^.* true +[0-9]+ .* sched:sched_process_exit: comm=true ' out
check 'each record once' test "$(grep -c 'misc:comm: true [0-9/]* exec$' out)" = 1

# Records that do not exist.
check_status 'a recording without them' 1 "$PROFSCRIPT" misc --records text_poke --input tasks.data
check_status 'no such record' 2 "$PROFSCRIPT" misc --records namespace
expect_line 'and the known ones' "'namespace' is not one of namespaces, " .check
check_status 'no such event' 2 "$PROFSCRIPT" trace -e misc:cgruop
expect_line 'the nearest' "did you mean 'misc:cgroup'" .check
check_status 'they have no stack' 2 "$PROFSCRIPT" trace -e misc:cgroup//stack/
check_status 'they are not counted' 2 "$PROFSCRIPT" stat -e misc:cgroup
expect_line 'list' '^misc:cgroup +\[record\]$' <("$PROFSCRIPT" list misc:)
"$PROFSCRIPT" list --help=all | sed -n 's/^  \(.*faults *\[.*\)/\1/p' >want
check 'list --help=all shows what list prints' diff want <("$PROFSCRIPT" list faults)
