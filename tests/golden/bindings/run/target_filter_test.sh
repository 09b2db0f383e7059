#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only
# -p and -t with recordings: the rows of these threads are the same as without, and there are no others.
. "$(dirname "$0")/../../../lib.sh"

# same NAME THREAD RECORDING PROFILER ARG...: the rows of the thread, which is in the first column after the time
same() {
	table "$3" "$4" "${@:5}"
	grep "^$2," "$TMP/got" >"$TMP/all"
	table "$3" "$4" "${@:5}" -t "$2"
	check "$1 has rows" test -s "$TMP/all"
	check "$1 -t" cmp "$TMP/all" "$TMP/got"
	table "$3" "$4" "${@:5}" -p "$2"
	check "$1 -p" cmp "$TMP/all" "$TMP/got"
}
same 'task-state' 5895 sched task-state --perins
same 'rundelay' 5895 sched rundelay --perins
same 'syscalls' 11739 execs syscalls --perins

counted() { # NAME ROWS ARG...
	table execs exec -e raw_syscalls:sys_enter 'count(ev._tid)' "${@:3}"
	check "$1" test "$(sort "$TMP/got" | xargs)" = "$2"
}
counted 'a process' '11735,1' -p 11733
counted 'a thread' '11735,1' -t 11735
counted 'the threads of processes' '11734,1 11735,1 11739,1' -p 11733,11739,11734
counted 'none' '' -p 99

refused 'a name' 2 'exec: -p takes the numbers of processes of a recording, not sh' exec 'count()' -p sh \
	--input "$DATA/execs.data"
refused 'containers' 2 'exec: raw_syscalls:sys_enter has no control groups in this recording; record it with --all-cgroups' \
	exec 'count(ev._container)' -e raw_syscalls:sys_enter --input "$DATA/execs.data"
refused 'cgroups' 2 'exec: raw_syscalls:sys_enter has no control groups in this recording; record it with --all-cgroups' \
	exec -e raw_syscalls:sys_enter 'count()' --cgroups web --input "$DATA/execs.data"
refused 'cgroups of both tasks of a switch' 2 '--cgroups is not for recordings of switches: they have only the group' \
	rundelay --cgroups web --input "$DATA/sched.data"

refused 'a container without a name' 2 '--container takes names of containers, .* but one is empty' exec \
	-e raw_syscalls:sys_enter 'count()' --container 'web,' --input "$DATA/cgroups.data"

# The tasks of a group, and of groups in it.
in_group() { # NAME COMMS ARG...
	table cgroups exec -v -e raw_syscalls:sys_enter 'count(ev._comm)' "${@:3}"
	expect_line "$1: the recording is read" '^profscript: [1-9][0-9]* events' "$TMP/err"
	check "$1" test "$(cut -d , -f 1 "$TMP/got" | sort | xargs)" = "$2"
}
in_group 'a group with those in it' 'cat ls sh' --cgroups web
in_group 'a group in another one' 'ls sh' --cgroups /web/in
in_group 'groups by an expression' 'ls sh' --cgroups '^w.*/i'
in_group 'a container by its name' 'cat ls sh' --container /web
in_group 'and by wildcards' 'ls sh' --container '/w*/in'
in_group 'all containers' '' --container '*'
in_group 'no such group' '' --cgroups nope
