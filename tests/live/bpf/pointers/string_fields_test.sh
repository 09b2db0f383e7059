#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only
# Numbers in the memory of a program, behind arguments of system calls: those that the program has put there, or that
# the kernel has written.
. "$(dirname "$0")/../../../lib.sh"
needs_tracepoint syscalls:sys_enter_clock_nanosleep syscalls:sys_exit_wait4

# prints NAME REGEX COMMAND... -- ARGS...: exec with these arguments prints a line that matches
prints() {
	local name=$1 regex=$2
	shift 2
	"$PROFSCRIPT" exec "$@" >"$TMP/out" 2>&1
	expect_line "$name" "$regex" "$TMP/out"
}

ends=(-- bash -c '(exit 7); (exit 3); :')
nap=(-- sleep 0.02)
prints 'a member of a structure' $'^0\t20000000$' -e syscalls:sys_enter_clock_nanosleep \
	'print(user("struct timespec64.tv_sec", ev.rqtp), ev:user("struct timespec64.tv_nsec", "rqtp"))' "${nap[@]}"
prints 'in filters and keys' '^ *20000000 +1$' \
	-e 'syscalls:sys_enter_clock_nanosleep/user("struct timespec64.tv_nsec", rqtp) == 20000000/' \
	'count(user("struct timespec64.tv_nsec", rqtp))' "${nap[@]}"
prints 'what the kernel has written, and a null pointer' $'^1792\tnil$' -e 'syscalls:sys_exit_wait4/ret > 0/' \
	'print(user("u32", stat_addr), user("u64", ru))' "${ends[@]}"
expect_line 'of the next one' $'^768\tnil$' "$TMP/out"
prints 'an expression without a value is no match' 'rejected all [0-9]+ syscalls:sys_exit_wait4' \
	-e 'syscalls:sys_exit_wait4/user("u64", ru) >= 0/' 'count()' "${ends[@]}"
prints 'in lines of events' 'sys_exit_wait4: 0x[0-9a-f]+, u16 \*stat_addr: 1792$' --begin 'n = 0' \
	-e 'syscalls:sys_exit_wait4/ret > 0/' 'if user("u16", ev.stat_addr) == 1792 then out:print_event(ev) end' "${ends[@]}"
prints 'signed and smaller numbers' $'^7\t1792$' -e 'syscalls:sys_exit_wait4/user("s16", stat_addr) == 1792/' \
	'print(bit.rshift(user("u16", stat_addr), 8), user("s32", stat_addr))' "${ends[@]}"
refused 'an unknown type' 2 "a type is u8 to u64, s8 to s64, or 'struct NAME.MEMBER'" \
	exec -e syscalls:sys_exit_wait4 'print(user("u31", ru))'
refused 'an unknown member' 2 "struct timespec64 has no member 'tv_nsc'; did you mean 'tv_nsec'\?" \
	exec -e syscalls:sys_enter_clock_nanosleep 'print(user("struct timespec64.tv_nsc", rqtp))'
