#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only
# What the system refuses is reported in one line: permissions, memory, descriptors, tracefs.
# Runs alone.
. "$(dirname "$0")/../../../lib.sh"
switch=sched:sched_switch
needs_tracepoint $switch
cd "$TMP" || exit 1

# under WORLD NAME ...: refused, run by a wrapper
printf '#!/bin/sh\nexec setpriv --bounding-set -perfmon,-sys_admin,-sys_ptrace "%s" "$@"\n' "$PROFSCRIPT" >nocaps
printf '#!/bin/sh\nulimit -v %s; exec "%s" "$@"\n' 1000000 "$PROFSCRIPT" >nomemory
printf '#!/bin/sh\nulimit -n 6; exec "%s" "$@"\n' "$PROFSCRIPT" >nofiles
printf '#!/bin/sh\nexec unshare -m sh -c '\''mount -t tmpfs none /sys/kernel && exec "$@"'\'' - "%s" "$@"\n' "$PROFSCRIPT" >notracefs
for dir in proc sys; do # an empty file system in its place
	printf '#!/bin/sh\nexec unshare -m sh -c '\''mount -t tmpfs none /%s && exec "$@"'\'' - "%s" "$@"\n' $dir "$PROFSCRIPT" >no$dir
done
chmod +x nocaps nomemory nofiles notracefs noproc nosys
under() {
	local world=$1 real=$PROFSCRIPT
	shift
	PROFSCRIPT=$TMP/$world
	refused "$@"
	PROFSCRIPT=$real
}
if [ "$(cat /proc/sys/kernel/perf_event_paranoid)" -ge 2 ]; then
	under nocaps 'no permission' 3 "no permission to open $switch: run as root or with CAP_PERFMON" trace -e $switch -N 1
else
	skip 'no permission' 'kernel.perf_event_paranoid allows everything'
fi
event=irq_vectors:irq_work_exit
if [ -e /sys/kernel/tracing/events/${event/://} ]; then
	refused 'what nobody may sample' 3 "the kernel allows nobody to sample $event .Operation not permitted." trace -e $event -N 1
else
	skip 'what nobody may sample' "$event"
fi
# Some kernels allow it, but only without user stacks.
if [ -e /sys/kernel/tracing/events/ftrace/function/id ]; then
	timeout 20 "$PROFSCRIPT" trace -e ftrace:function -g -p $$ --duration 1ms >out 2>err
	status=$?
	[ $status -eq 0 ] || one_line $status 3 'the kernel allows nobody to sample ftrace:function .Operation' >wrong
	[ ! -s wrong ]
	result $? 'each function' err
else
	skip 'each function' 'ftrace:function'
fi
refused 'a ring of 4 GiB' 1 'cannot map rings of 1048576 pages: Cannot allocate memory' trace -e $switch -m 1048576 --duration 0.1
under nomemory 'a ring without memory' 1 'cannot map rings of 262144 pages: Cannot allocate memory' trace -e $switch -m 262144
under nofiles 'no descriptors' 1 '[0-9]+ file descriptors needed, but only 6 allowed' trace -e $switch -N 1 --capture perf
under notracefs 'no tracefs' 3 'tracefs is not mounted; mount it with: mount -t tracefs' trace -e $switch -N 1
for command in "trace -e $switch -N 1" 'profile -F 100 -N 1' 'oncpu -N 1' 'page-faults -N 1 -- true' --check; do
	# shellcheck disable=SC2086 # a profiler and its options
	{
		under noproc "no proc: $command" 3 'proc is not mounted; mount it with: mount -t proc proc /proc$' $command
		under nosys "no sysfs: $command" 3 'sysfs is not mounted; mount it with: mount -t sysfs sysfs /sys$' $command
	}
done
for world in noproc nosys; do
	"$PROFSCRIPT" trace --input "$DATA/sched.data" >whole
	expect_text "$world: a recording needs neither" whole ./$world trace --input "$DATA/sched.data"
done

# Another user, who may not read tracefs.
chmod 755 "$TMP"
cp -r "$TOP/bindings" "$TOP/scripts" "$PROFSCRIPT" "$TMP" 2>/dev/null
printf '#!/bin/sh\nexec setpriv --reuid 65534 --regid 65534 --clear-groups "%s/profscript" "$@"\n' "$TMP" >nobody
chmod +x nobody
if ! ./nobody -h >/dev/null 2>&1; then
	skip 'as nobody' 'setpriv cannot become nobody'
elif setpriv --reuid 65534 --regid 65534 --clear-groups cat /sys/kernel/tracing/events/sched/sched_switch/id >/dev/null 2>&1; then
	under nobody 'as nobody' 3 "no permission to open $switch" trace -e $switch -N 1
else
	under nobody 'as nobody' 3 'tracefs is not readable for this user' trace -e $switch -N 1
	echo "return { summary = 'x', start = function() return { ['$switch'] = function() end } end }" >nobody.lua
	under nobody 'a script as nobody' 3 'tracefs is not readable for this user' ./nobody.lua
fi
# But anybody may sample their own programs in user mode. perf can, too.
if ./nobody -h >/dev/null 2>&1 && setpriv --reuid 65534 --regid 65534 --clear-groups \
	perf record -q -e cpu-clock:u -o /dev/null true 2>/dev/null; then
	cp "$TOP/build/workloads/burn" .
	check_status 'as nobody, --exclude-kernel' 0 ./nobody trace -e cpu-clock --exclude-kernel -N 1 -- ./burn 1
else
	skip 'as nobody, --exclude-kernel' 'perf cannot do it either'
fi

# Why symbols are missing depends on what hides them.
if [ "$(cat /proc/sys/kernel/kptr_restrict)" = 0 ] && [ "$(cat /proc/sys/kernel/perf_event_paranoid)" -gt 1 ]; then
	setpriv --bounding-set -syslog "$PROFSCRIPT" trace -e $switch -g -N 3 >out 2>err
	expect_line 'hidden symbols' 'their addresses are hidden from this user; use CAP_SYSLOG, or set .*paranoid to 1$' err
else
	skip 'hidden symbols' 'kernel.kptr_restrict or kernel.perf_event_paranoid are not the default'
fi
