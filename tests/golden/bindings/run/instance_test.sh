#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only
# A recording that lacks an event that a profiler can do without is used, and a line says what is missing.
. "$(dirname "$0")/../../../lib.sh"

# lacks NAME RECORDING PROFILER ARG...: succeeds with a result, and $TMP/lacks has what is missing
lacks() {
	local name=$1 recording=$2
	shift 2
	"$PROFSCRIPT" "$@" --input "$DATA/$recording.data" --csv >"$TMP/out" 2>"$TMP/err"
	result $? "$name: it is used" "$TMP/err"
	sed -n "s/^$(basename "$1" .lua): the recording has no //p" "$TMP/err" | sort >"$TMP/lacks"
}
new='sched:sched_wakeup_new: the first wait of each new task is missing'

lacks rundelay nap rundelay
check 'rundelay: one line' diff <(echo "$new") "$TMP/lacks"
wakeups=$(awk -F, '$3 == "sched_wakeup" { print $5 }' "$TMP/out")
"$PROFSCRIPT" multi-trace --input "$DATA/nap.data" --csv -e sched:sched_wakeup//key=pid/ -e sched:sched_switch//key=next_pid/ \
	>"$TMP/pairs" 2>"$TMP/err"
check 'rundelay: wakeups and what they wait for' awk -F, -v n="$wakeups" '$3 == "sched_wakeup" { ok = n > 0 && n <= $5 }
	END { exit !ok }' "$TMP/pairs"
lacks 'rundelay, complete' hogs rundelay
check 'rundelay, complete: no line' test ! -s "$TMP/lacks"

lacks task-state nap task-state
check 'task-state: one line' diff <(echo "$new") "$TMP/lacks"
check 'task-state: rows' test "$(wc -l <"$TMP/out")" -gt 3
lacks 'task-state of switches' mixed task-state
check 'task-state of switches: two lines' diff - "$TMP/lacks" <<END
sched:sched_wakeup: sleeps last until the task runs, with the wait for a CPU; with -S or -D there are none
$new
END
lacks 'a source' nap multi-trace -e raw_syscalls:sys_enter -e 'raw_syscalls:sys_exit,rundelay//untraced/'
expect_line 'a source: its line' '^rundelay: the recording has no sched:sched_wakeup_new: ' "$TMP/err"

# What the user names must be there, and what a profiler cannot do without.
"$PROFSCRIPT" rundelay --input "$DATA/nap.data" -e sched:sched_wakeup_new,sched:sched_switch \
	-e sched:sched_switch >"$TMP/out" 2>"$TMP/err"
check 'events of -e are not optional' test $? = 2
expect_line 'events of -e: what is missing' "rundelay: the recording contains no event 'sched:sched_wakeup_new'" "$TMP/err"
"$PROFSCRIPT" task-state --input "$DATA/syscalls.data" >"$TMP/out" 2>"$TMP/err"
check 'a recording with none of the events' test $? -ne 0
expect_line 'none of the events: one is named' "task-state: the recording contains no event system 'sched'" "$TMP/err"

cat >"$TMP/mine.lua" <<'END'
return {
  summary = 'optional events of a script',
  optional = { ['sched:sched_process_exec'] = 'no execs', ['sched:sched_wakeup_new'] = 'no births' },
  start = function(_, out, session)
    local exec = session.event { 'sched:sched_process_exec' }
    return { ['sched:sched_switch'] = function() end, ['sched:sched_wakeup_new'] = function() end,
      stop = function() out:print(exec == nil) end }
  end,
}
END
lacks mine sched "$TMP/mine.lua"
check 'a script: session.event() returns nil' grep -q true "$TMP/out"
check 'a script: its lines' diff - "$TMP/lacks" <<'END'
sched:sched_process_exec: no execs
sched:sched_wakeup_new: no births
END
sed -i "s/optional = .*/optional = { 'sched:sched_process_exec' },/" "$TMP/mine.lua"
"$PROFSCRIPT" "$TMP/mine.lua" --input "$DATA/sched.data" >"$TMP/out" 2>"$TMP/err"
expect_line 'a script: a wrong declaration' "optional: '1' is not a tracepoint with a text" "$TMP/err"
