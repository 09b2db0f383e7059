#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only
# `profscript new` writes a script that runs at once and counts its events; `profscript test` tests it on recordings.
. "$(dirname "$0")/../../lib.sh"
cd "$TMP" || exit 1
sched=$DATA/sched.data

"$PROFSCRIPT" new mine -e 'sched:sched_switch/prev_pid > 0/' -e sched:sched_wakeup --input "$sched" >out 2>err
check 'new: a script' test $? -eq 0 -a -s mine.lua
sudo=$([ "$(id -u)" = 0 ] || echo 'sudo ')
expect_line 'new: it says how to run it, as it was called' "^    $sudo$PROFSCRIPT ./mine.lua -i 1s\$" out
expect_line 'new: it lists strings' '^ *--   ev.prev_comm +string \(char\[16\]\)$' mine.lua
expect_line 'new: and numbers' '^ *--   ev.next_pid +number \(pid_t\)$' mine.lua
check 'new: the script passes the check' "$PROFSCRIPT" check mine.lua
"$PROFSCRIPT" ./mine.lua --input "$sched" --csv --top 100000 >out 2>err
for event in switch wakeup; do
	want=$(perf script -i "$sched" 2>/dev/null | grep "sched:sched_$event:" | grep -vc 'prev_pid=0 ')
	check "new: it counts sched_$event" test "$(awk -F, -v event=sched_$event '$3 == event { n += $5 } END { print n }' out)" -eq "$want"
done
cp mine.lua before
refused 'new: a script that exists' 2 'new: mine.lua exists already' new mine -e sched:sched_switch --input "$sched"
check 'new: it is not changed' cmp mine.lua before
refused 'new: no events' 2 'new: no events; select some with -e' new other
refused 'new: a wrong event' 2 ".*did you mean '(sched:)?sched_switch'" \
	new other -e sched:sched_swich --input "$sched"
refused 'new: a wrong name' 2 "new: 'a b' is not a name" new 'a b' -e sched:sched_switch --input "$sched"
check 'new: nothing is left of them' test ! -e other.lua

refused 'test: no tests' 2 'test: mine.lua has no tests: there is neither mine.CASE.data nor' test mine.lua
cp "$sched" mine.all.data
echo "--top 1 --input $sched" >mine.top.args
"$PROFSCRIPT" test mine.lua >out 2>err
check 'test: without expected output it fails' test $? -eq 1
expect_line 'test: and says so' '^# ./mine.all.expect is missing: --update writes it$' out
check 'test: --update' "$PROFSCRIPT" test --update mine.lua
check 'test: it is what the script prints' bash -c 'TZ=UTC "$0" ./mine.lua --input mine.all.data | diff - mine.all.expect' "$PROFSCRIPT"
check 'test: the arguments are used' test "$(wc -l <mine.top.expect)" -eq 4
check 'test: both pass, also from another folder' bash -c 'cd / && "$0" test "$1/mine.lua"' "$PROFSCRIPT" "$TMP"
sed -i 's/^sched_switch \(.*\)1/sched_switch \12/' mine.top.expect
"$PROFSCRIPT" test mine.lua >out 2>err
check 'test: a difference is a failure' test $? -eq 1
expect_line 'test: it is shown' '^# line 4$' out
expect_line 'test: the others are not concerned' '^ok 1 - mine.all$' out
expect_line 'test: and counted' '^profscript: 1 of 2 tests failed$' err
sed -i "s/count:add(1, 'sched_switch'/error 'broken' count:add(1, 'sched_switch'/" mine.lua
check 'test: an error of the script is output, too' bash -c '"$0" test --update mine.lua && grep -q "mine.lua:[0-9]*: broken" mine.all.expect &&
	grep -qx "status 1" mine.all.expect && "$0" test mine.lua' "$PROFSCRIPT"
