#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only
# --container: events of the tasks in a container, which is made after the run has begun. Here a systemd unit is one.
. "$(dirname "$0")/../../../lib.sh"
needs_tracepoint raw_syscalls:sys_enter cgroup:cgroup_mkdir
hierarchy=$(awk '$3 == "cgroup2" { print $2; exit }' /proc/mounts)
unit=box$$.service
mkdir "$hierarchy/$unit" 2>/dev/null && rmdir "$hierarchy/$unit" || skip_all 'no control group of version 2 can be made'
busy=
at_end() {
	local status=$?
	[ -z "$busy" ] || kill $busy
	rmdir "$hierarchy/$unit/in" "$hierarchy/$unit" 2>/dev/null
	(exit $status)
	finish
}
trap at_end EXIT
"$PROFSCRIPT" exec 'count()' -e raw_syscalls:sys_enter --container "$unit" -N 1 --duration 0.01 2>"$TMP/err"
grep -q 'cannot follow' "$TMP/err" && skip_all "$(head -n 1 "$TMP/err")"
expect_line 'there is none yet' "^exec: no container $unit yet" "$TMP/err"

# seen NAME PATTERN ARG...: the profiler prints a row with PATTERN, and nothing of other containers
seen() {
	start "${@:3}" --container 'box*.service' -i 200 --format csv
	mkdir -p "$hierarchy/$unit/in"
	bash -c 'echo $$ >"$0/cgroup.procs"; while :; do : </dev/null; done' "$hierarchy/$unit/in" &
	busy=$!
	wait_for 20 grep -Eq "$2" "$TMP/out"
	result $? "$1" "$TMP/err"
	stop
	check "$1: nothing else" awk -v pattern="$2" 'NR > 1 && $0 !~ pattern { exit 1 }' "$TMP/out"
	{ kill $busy && wait $busy; } 2>/dev/null
	busy=
	wait_for 20 rmdir "$hierarchy/$unit/in" && rmdir "$hierarchy/$unit"
}
for how in auto perf; do
	seen "counted, $how" "(^|,)$unit(,|$)" exec 'count(ev._container)' -e raw_syscalls:sys_enter --capture $how
	seen "tasks, $how" ',bash,' oncpu --capture $how
done
seen 'a clock' "(^|,)$unit(,|$)" exec 'count(ev._container)' -e cpu-clock -F 499

# A profiler of all tasks that does not ask which tasks its events are about.
cat >"$TMP/any.lua" <<'LUA'
return {
  summary = 'Count system calls',
  everywhere = true,
  start = function(_, out, session)
    local n, call = 0, session.event { 'raw_syscalls:sys_enter' }
    return { [call] = function() n = n + 1 end, stop = function() out:print(n .. ' calls') end }
  end,
}
LUA
mkdir "$hierarchy/$unit"
for how in auto perf; do
	"$PROFSCRIPT" "$TMP/any.lua" --cgroups "$unit" --capture $how --duration 100ms >"$TMP/got" 2>&1
	expect_line "none of an empty group, $how" '^0 calls$' "$TMP/got"
done
rmdir "$hierarchy/$unit"

# A group that is gone when its name is printed.
start exec 'count(ev._container)' -e raw_syscalls:sys_enter
mkdir "$hierarchy/$unit"
bash -c 'echo $$ >"$0/cgroup.procs"; for i in {1..100}; do : </dev/null; done' "$hierarchy/$unit"
wait_for 20 rmdir "$hierarchy/$unit"
stop
expect_line 'the name of one that is gone' "^$unit +[0-9]" "$TMP/out"

refused 'counts of none' 3 'stat: no container box.*the kernel counts events only of containers that exist' stat -e context-switches \
	--container "$unit"
refused 'two kinds of groups' 2 'exec: --container and --cgroups are mutually exclusive' exec 'count()' -e cpu-clock \
	--container "$unit" --cgroups a
