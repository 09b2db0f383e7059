#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only
# repl on a recording: it is read when `run` says so, each time with the programs and events that there are then.
. "$(dirname "$0")/../../lib.sh"
export XDG_STATE_HOME=$TMP/state
mkdir "$TMP/state"
cd "$TMP" || exit 1

# expected EVENT CODE: what exec prints for it
expected() { "$PROFSCRIPT" exec --input "$DATA/sched.data" -e "$1" "$2"; }
expected sched:sched_switch 'count(ev.next_comm)' >switches
expected sched:sched_wakeup 'count(ev.pid)' >wakeups

echo 'count(ev.next_comm)' | "$PROFSCRIPT" repl --input "$DATA/sched.data" -e sched:sched_switch >out 2>err
result $? 'a pipe without run reads it once' err
check 'all events' diff <(sed 1,2d out) switches

cat >lines <<'EOF'
count(ev.next_comm)
run
?sched_switch.prev_pid
foo
remov 1
= { b = 1, a = 2 }
+sched:sched_wakup
+sched:sched_wakeup/pid ==/
+sched:sched_wakeup
+sched:sched_wakeup
sched_wakeup: count(ev.pid)
run
list
EOF
"$PROFSCRIPT" repl --input "$DATA/sched.data" -e sched:sched_switch <lines >out 2>err
result $? 'it is read twice' err
check 'without a word about a gap' test ! -s err
mapfile -t first < <(grep -n '^1: ' out | cut -d: -f1)
n=$(wc -l <switches)
check 'the first time' diff <(sed -n "$((first[1] + 1)),$((first[1] + n))p" out) switches
check 'the second time: nothing is counted twice' diff <(sed -n "$((first[2] + 1)),$((first[2] + n))p" out) switches
second=$(grep -n '^2: ' out | sed -n 2p | cut -d: -f1)
check 'an event that was added' diff <(sed -n "$((second + 2)),$((second + $(wc -l <wakeups)))p" out) <(sed 1d wakeups)
expect_line 'a word that is no command' "^no such command 'foo'; .help. lists what can be typed\$" out
expect_line 'a wrong command' "^no such command 'remov'; did you mean 'remove'\?\$" out
expect_line 'a table, by key' '^a +2$' out
expect_line 'a wrong event' "^repl: the recording contains no event 'sched:sched_wakup'; did you mean 'sched:sched_wakeup'\?$" out
expect_line 'an event that is there' '^sched:sched_wakeup has been added already$' out
expect_line 'a wrong filter' "^bad filter of sched:sched_wakeup 'pid ==': expected a value, found the end" out
expect_line 'a field with its values' '^  prev_pid +pid_t: signed, 4 bytes; such as [0-9 ]+$' out
check 'both programs stay' test "$(tail -2 out | cut -c1-8 | paste -sd' ')" = '1: count 2: count'

cat >steps <<'EOF'
< > 
> count(ev.next_comm)\r
< 1: count
> run\r
< sched-pipe +199\r\n
< > 
> remove 1\r
> count(ev.prev_pid)\r
< 2: count
> run\r
< prev_pid count
< > 
> \x04
EOF
python3 "$TOP/tests/tools/prompt.py" "$PROFSCRIPT" repl --input "$DATA/sched.data" -e sched:sched_switch <steps >out 2>&1
result $? 'a prompt on a terminal' out
check 'a program that was removed does not run again' test "$(grep -c 'sched-pipe  *199' out)" -eq 1
