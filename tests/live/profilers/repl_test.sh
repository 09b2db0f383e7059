#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only
# repl: programs come and go while events flow, from a pipe and at a prompt on a terminal.
. "$(dirname "$0")/../../lib.sh"
needs_tracepoint raw_syscalls:sys_enter sched:sched_switch
export XDG_STATE_HOME=$TMP/state
mkdir "$TMP/state"
cd "$TMP" || exit 1

# From a pipe: exact counts of a workload. said REGEX: a line of the output matches.
said() { wait_for 20 grep -Eq -- "$1" out; }
mkfifo lines
workload syscalls 20000
"$PROFSCRIPT" repl -e "raw_syscalls:sys_enter/common_pid == $WORKLOAD/" -e sched:sched_switch -m 1024 <lines >out 2>err &
tracer=$!
exec {lines_to}>lines
tell() { printf '%s\n' "$@" >&"$lines_to"; }
tell "if ev.id == $GETPPID then count(ev.id) end" 'sched_switch: count(ev.prev_state)' 'most = math.max(most or 0, ev.id)'
said '^3: most = math.max\(most or 0, ev.id\)  \(raw_syscalls:sys_enter\)$'
result $? 'a program runs for the events that have its fields' out
check 'or for those that it names' grep -qx '2: count(ev.prev_state)  (sched:sched_switch)' out
tell 'cuont(1)' 'count(ev.nxt)' 'sched_swich: count()' 'count(' '9: count()' 'remove' '?coumt'
said "^no such event, field or function 'coumt'; did you mean 'count'\?$"
result $? '?: the nearest name' out
check 'an undeclared global' grep -qx "undeclared global 'cuont'; did you mean 'count'?" out
check 'a wrong field' grep -qx "events raw_syscalls:sys_enter, sched:sched_switch have no field 'nxt'" out
check 'a wrong event' grep -qx "no such event 'sched_swich'; did you mean 'sched_switch'?" out
check 'wrong syntax' grep -qx "line 1: the '(' after count is not closed" out
check 'a wrong number' grep -qx 'there is no program 9' out
go
# shellcheck disable=SC2317 # wait_for calls it
all_seen() { tell events; sleep 0.1; grep -Eq '^raw_syscalls:sys_enter +20001$' out; } # and exit_group
wait_for 20 all_seen
result $? 'events: how many there were' out
tell 'show 1' '= most' '3: count(ev._comm)' 'remove 2' 'list' '?sys_enter.id' '?args' 'clear 1' 'show 1' 'error "oops"'
said '^4: error "oops"'
result $? 'all commands are executed' out
check 'show: each call is counted once' grep -Eq "^ *$GETPPID +20000$" out
check '= prints a variable' awk '/^[0-9]+$/ && $1 >= '"$GETPPID"' { found = 1 } END { exit !found }' out
check 'N: replaces a program' grep -qx '3: count(ev._comm)  (raw_syscalls:sys_enter, sched:sched_switch)' out
check 'remove' test "$(tac out | sed '/^3: count/q' | grep -c '^2: ')" -eq 0
check 'explain a field' grep -Eq '^  id +long: signed, 8 bytes' out
check 'explain an array' grep -Eq '^  args +unsigned long\[6\]: array of 6, 8 bytes each' out
tell quit
exec {lines_to}>&-
wait $tracer
check 'quit ends the run' test $? -eq 0

# An error in a program removes it, and the others go on.
echo 'error "oops"
count(ev._comm)' | "$PROFSCRIPT" repl -e raw_syscalls:sys_enter --duration 0.5 >out 2>err
check 'the run goes on after the end of the pipe' test $? -eq 0
expect_line 'an error' '^1: removed: oops$' out
expect_line 'the other program is reported at the end' '^2: count\(ev._comm\)' out
check 'without programs, the end of the pipe ends the run' timeout 20 "$PROFSCRIPT" repl -e sched:sched_switch </dev/null
echo 'count(stack)' | "$PROFSCRIPT" repl -e sched:sched_switch >out 2>err
expect_line 'stacks need -g' '^for stacks, start the prompt with -g$' out

# On a terminal.
cat >steps <<'EOF'
< > 
> cou\t
< count\(
> ev.next_c\t
< next_comm
> )\r
< 1: count\(ev.next_comm\)  \(sched:sched_switch\)
> sched_switch: if not once then once = 1 print(ev) end\r
< sched:sched_switch: .* ==> 
> remove 2\r
< > 
> ?sched_switch.prev_st\t\r
< prev_state +long: signed, 8 bytes, bits of a state; such as
> ev.prev_\t
< ev.prev_comm  ev.prev_pid  ev.prev_prio  ev.prev_state
> \x15show\r
< next_comm +count
> \x1b[A\x1b[A\r
< prev_state +long
> cou
< > cou
! USR2
< \r\nprofscript: [0-9]+ events, 0 lost
< > cou
> \x15+sched:sched_wakup\r
< no such event 'sched:sched_wakup'; did you mean 'sched:sched_wakeup'
> +sched:sched_wakeup/pid > 0/\r
< opened sched:sched_wakeup/pid > 0/, and the programs begin anew; the events of [0-9]+ ms are missing
> sched_wakeup: count(ev.pid)\r
< 3: count\(ev.pid\)  \(sched:sched_wakeup\)
> list\r
< 1: count.*\r\n3: count
> sched_switch: if not twice then twice = 1 print(ev) end\r
< sched:sched_switch: .* ==> 
> \x04
< next_comm +count
EOF
python3 "$TOP/tests/tools/prompt.py" "$PROFSCRIPT" repl -m 4096 -e sched:sched_switch <steps >out 2>&1
result $? 'a prompt with completion and history' out
check 'the history is kept' grep -q '^show$' state/profscript/repl.history
