#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only
# The strings behind the arguments of system calls: each with its own event, also with many threads, filters, targets
# and losses; and what cannot be read.
# Runs alone.
. "$(dirname "$0")/../../../lib.sh"
needs_tracepoint syscalls:sys_enter_faccessat syscalls:sys_exit_faccessat syscalls:sys_enter_execve
cd "$TMP" || exit 1
COUNT=3000

cat >names.lua <<'END'
return {
  summary = 'Count names that belong to the thread, and others',
  start = function(_, out)
    local own, others, enters, exits = 0, 0, 0, 0
    local next_of = {}
    local function see(ev)
      if ev._comm ~= 'names' then return end
      local name = ev:string 'filename'
      local tid, nr = name:match '^/names/(%d+)/(%d+)$'
      if not tid then out:row { 'event', ev._event, 'length', #name, 'name', name } return end
      local key = ev._event .. tid
      if tonumber(tid) == ev._tid and tonumber(nr) >= (next_of[key] or 0) then own = own + 1 else others = others + 1 end
      next_of[key] = tonumber(nr) + 1
      if ev._event:find 'enter' then enters = enters + 1 else exits = exits + 1 end
    end
    return {
      ['syscalls:sys_enter_faccessat'] = see,
      ['syscalls:sys_exit_faccessat'] = see,
      lost = function(gap) out:printf('LOST %d\n', gap.lost) end,
      stop = function() out:printf('own %d others %d enters %d exits %d\n', own, others, enters, exits) end,
    }
  end,
}
END

# complete NAME: no events were lost
complete() {
	grep ' lost [0-9]* events' err >lost
	[ ! -s lost ] || result 1 "$1: nothing is lost" lost
	[ ! -s lost ]
}

names=$TOP/build/workloads/names
"$PROFSCRIPT" names.lua -m 2048 --dry-run -- true >out 2>err
status=$?
unavailable $status 'strings behind pointers' && exit
check 'the strings can be read' test $status -eq 0

"$PROFSCRIPT" names.lua -m 2048 --record names.data -- "$names" $COUNT >out 2>err
check 'a workload' test $? -eq 0
all=$((4 * COUNT))
if complete 'each event has its own string'; then
	expect_line 'each event has its own string' "^own $((2 * all)) others 0 enters $all exits $all$" out
fi
expect_line 'an empty string' '^syscalls:sys_exit_faccessat +0 *$' out
expect_line 'a string of 256 bytes' '^syscalls:sys_exit_faccessat +256 d{256}$' out
expect_line 'a longer one is cut' '^syscalls:sys_exit_faccessat +259 e{256}\.\.\.$' out
expect_line 'a much longer one' '^syscalls:sys_exit_faccessat +259 f{256}\.\.\.$' out
expect_line 'a null pointer' '^syscalls:sys_enter_faccessat +6 <null>$' out
check 'a wild pointer, and a page that is not present' \
	test "$(grep -c '^syscalls:sys_enter_faccessat *12 <unreadable>$' out)" -eq 2
check 'the call has read the page in' test "$(grep -c '^syscalls:sys_exit_faccessat *12 <unreadable>$' out)" -eq 1
expect_line 'what a terminal would obey is escaped' '^syscalls:sys_exit_faccessat +12 /line\\x0a\\x1b\[31m\\xff$' out

"$PROFSCRIPT" names.lua --input names.data >again 2>err
check 'a recording has the strings' cmp out again
perf script -i names.data -F event,trace 2>/dev/null | grep -a '"/names/' | head -n 1 >perf.txt
expect_line "perf prints them" 'faccessat: .*\*filename: "/names/[0-9]*/0"' perf.txt

workload names 500
start names.lua -m 2048 -p "$WORKLOAD"
"$names" 500 # another process, which is not the target
go
wait "$WORKLOAD"
stop
if complete 'a process and its new threads'; then
	expect_line 'a process and its new threads' '^own 4000 others 0 enters 2000 exits 2000$' "$TMP/out"
fi

# Small rings: the losses are known, and what is left is right.
"$PROFSCRIPT" names.lua -m 1 -- "$names" 20000 >out 2>err
lost=$(awk '/^LOST/ { n += $2 } END { print n + 0 }' out)
expect_line 'with losses, strings stay with their events' '^own [0-9]+ others 0 ' out
seen=$(awk '/^own/ { print $2 + $4 } /^syscalls:/ { n++ } END { print n }' ORS=' ' out | awk '{ print $1 + $2 }')
check 'the losses are known' test "$((seen + lost))" -ge 160020

"$PROFSCRIPT" trace -m 2048 -e 'syscalls:sys_exit_faccessat/str(filename) ~ "/names/*/7"/' -- "$names" 100 >out 2>err
check 'str() in a filter' test "$(grep -c '\*filename: "/names/[0-9]*/7"$' out)" -eq 4
"$PROFSCRIPT" exec -m 2048 -e syscalls:sys_exit_faccessat "count(ev:string('filename'), ev._comm)" \
	-- "$names" 1 >out 2>err
check 'a one-liner' test "$(grep -cE '^/names/[0-9]+/0 +names +1$' out)" -eq 4
"$PROFSCRIPT" exec -e syscalls:sys_enter_execve "print(ev:string 'argv')" -- "$names" 1 >out 2>err
expect_line 'argv' "^$names 1\$" out
# shellcheck disable=SC2046 # many arguments
"$PROFSCRIPT" exec -e syscalls:sys_enter_execve "print(ev:string 'argv')" -- bash -c "exec /bin/true $(echo {1..40})" \
	>out 2>err
expect_line 'a long argv is cut' '^/bin/true 1 2 .* 30 31 \.\.\.$' out

refused() {
	local name=$1 want=$2 status=$3
	shift 3
	"$PROFSCRIPT" "$@" >out 2>err
	check "$name: status" test $? -eq "$status"
	expect_line "$name" "$want" err
	check "$name: one line" test "$(wc -l <err)" -eq 1
}
sed "s/string 'filename'/string 'filenam'/" names.lua >typo.lua
refused 'a wrong name' "^profscript: typo.lua:8: events .* no string 'filenam'; did you mean 'filename'\?$" 1 \
	typo.lua -- true
"$PROFSCRIPT" trace -e syscalls:sys_enter_faccessat --record plain.data -- "$names" 1 >/dev/null 2>&1
refused 'a recording without strings' 'has no string .filename.: the recording does not contain it' 1 \
	exec -e syscalls:sys_enter_faccessat 'count(ev:string "filename")' --input plain.data
PROFSCRIPT_PLAIN=$PROFSCRIPT
printf '#!/bin/sh\nexec setpriv --bounding-set -sys_admin,-bpf,-perfmon "%s" "$@"\n' "$PROFSCRIPT_PLAIN" >unable
chmod +x unable
PROFSCRIPT=./unable
refused 'without the right to' "^profscript: names: cannot read what is behind 'filename' of .*not permitted" 3 \
	names.lua --duration 0.1
