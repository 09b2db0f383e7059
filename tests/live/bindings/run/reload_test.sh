#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only
# --watch: a script is reloaded when it is saved. No event is lost if the events stay the same, the state is kept, and a
# mistake leaves the version before running.
. "$(dirname "$0")/../../../lib.sh"
needs_tracepoint raw_syscalls:sys_enter raw_syscalls:sys_exit
cd "$TMP" || exit 1

cat >count.lua <<EOF
local tables = require 'mine'
return {
  summary = 'Count system calls',
  options = { note = { type = 'string', default = 'x', help = 'text' } },
  start = function(opt, out, session)
    local counts = session.state('counts', tables.new)
    return {
      ['raw_syscalls:sys_enter/id == $GETPPID/'] = function(ev) counts.calls = counts.calls + 1 end,
      lost = function(gap) counts.calls = counts.calls + gap.lost end,
      status = function() out:print('version 1', opt.note) end,
      stop = function() out:print('calls', counts.calls, 'versions', counts.versions) end,
    }
  end,
}
EOF
echo "return { new = function() return { calls = 0, versions = 1 } end }" >mine.lua

# said N REGEX: the Nth line about a reload matches
said() { grep -E '^count: (reloaded|the version before)' err | sed -n "$1p" | grep -Eq "$2"; }
# edit SED: saves the script as an editor does that renames
edit() {
	sed "$1" count.lua >count.new
	mv count.new count.lua
}
# expect_said NAME N REGEX
expect_said() {
	wait_for 20 said "$2" "$3"
	result $? "$1: $3" err
}

workload syscalls 1000000 150000
start ./count.lua --watch -p "$WORKLOAD" -m 4096 --note y
echo >&"$workload_go" # it runs during the following
exec {workload_go}>&-
edit "s/version 1/version 2/"
expect_said 'a handler changes' 1 'reloaded in [0-9]+ ms: handlers changed status; state kept: counts$'
sed -i "s/counts.calls + 1 end/1 + counts.calls end/" count.lua
expect_said 'the file is written in place' 2 'reloaded in [0-9]+ ms: handlers changed raw_syscalls:sys_enter/id == [0-9]+/; state'
edit "s/      stop/      interval = function() end,\n      stop/; s/    local counts/    counts_of = 1\n    local counts/"
expect_said 'a mistake' 3 'the version before goes on$'
check 'its line' grep -q "^\./count.lua:6: assignment to undeclared global 'counts_of'" err
edit "/counts_of/d; s/options = {/options = { more = { type = 'flag', help = 'more' },/"
expect_said 'it is mended' 4 'reloaded in [0-9]+ ms: handlers added interval; options added --more; state kept: counts$'
edit "s/opt.note/opt.nite/"
expect_said 'a wrong option' 5 'the version before goes on$'
check 'its line and the right name' grep -q "^\./count.lua:10: no such option 'nite'; did you mean 'note'" err
edit "s/opt.nite/opt.note/"
expect_said 'it is mended, too' 6 'handlers as before; state kept: counts$'
echo "return { new = function() return { calls = 0, versions = 2 } end }" >mine.lua
expect_said 'a module changes' 7 'handlers as before; state kept: counts$'
edit "/^      status/d"
expect_said 'a handler is removed' 8 'handlers removed status; state kept: counts$'
wait "$WORKLOAD"
wait $tracer
check 'no event was lost' grep -qx 'calls.*1000000.*versions.*1' out
check 'nor reported twice' test "$(wc -l <out)" -eq 1

# Other events are opened by opening the session again, if there is no workload that it cannot start again.
cat >count.lua <<EOF
return {
  summary = 'Note which events there are',
  start = function(opt, out, session)
    local seen = session.state('seen', function() return {} end)
    local function see(ev)
      if not seen[ev._event] then out:print(ev._event) end
      seen[ev._event] = true
    end
    return {
      ['raw_syscalls:sys_enter'] = function(ev) see(ev) end,
      stop = function() out:print(seen['raw_syscalls:sys_enter'] and 'entered', seen['raw_syscalls:sys_exit'] and 'left') end,
    }
  end,
}
EOF
start ./count.lua --watch
wait_for 20 grep -q sys_enter out
edit "s/      stop/      ['raw_syscalls:sys_exit'] = function(ev) see(ev) end,\n      stop/"
expect_said 'another event' 1 'events opened: raw_syscalls:sys_exit; state kept: seen; the events of [0-9]+ ms are missing$'
wait_for 20 grep -q sys_exit out
edit "/sys_enter'. =/d"
expect_said 'an event less' 2 'handlers removed raw_syscalls:sys_enter; events not used any more: raw_syscalls:sys_enter; state'
sed "s/'left'/error 'broken'/; s/see(ev) end/error('oops') end/" count.lua >count.new
cp count.lua count.old
mv count.new count.lua
expect_said 'an error in a handler' 4 'the version before goes on$'
check 'its line' grep -q '^\./count.lua:10: oops$' err
stop
check 'the version before goes on, with the state' grep -Eq '^entered.*left$' out

mv count.old count.lua
start ./count.lua --watch -- sleep 100
edit "s/sys_exit/sys_enter/"
expect_said 'with a command' 1 'the version before goes on$'
check 'the reason' grep -q 'with a command, events cannot be opened again: restart the run$' err
stop
refused '--watch and --input' 2 'count: --watch cannot be combined with --input: a recording is read only once$' ./count.lua --watch --input "$DATA/sched.data"

# What goes along with a run goes on: the file of an export, the tables of a query, the address of the metrics.
cat >count.lua <<EOF
local counter = require 'lib.counter'
return {
  summary = 'Count system calls',
  start = function(opt, out, session)
    local calls, letter = session.state('calls', function() return counter.new({ 'id' }, { name = 'calls' }) end), 'a'
    local function report()
      calls:print(out)
      calls:clear()
      out:row({ 'letter', letter }, 'letters')
    end
    return {
      ['raw_syscalls:sys_enter/id == $GETPPID/'] = function(ev) calls:add(1, ev.id) end,
      interval = report,
      stop = report,
    }
  end,
}
EOF
workload syscalls 10000000 20000
start ./count.lua --watch -p "$WORKLOAD" -m 4096 -i 100 --export calls.json \
	--query 'SELECT (SELECT max(letter) FROM letters) || coalesce(sum(count), 0) FROM calls' --prometheus 127.0.0.1:0
port=$(sed -n 's/.*metrics are at http:..127.0.0.1:\([0-9]*\).*/\1/p' err)
echo >&"$workload_go"
exec {workload_go}>&-
wait_for 20 grep -Eq '^a[0-9]' out
edit "s/'a'/'b'/"
expect_said 'with a follower' 1 'reloaded in [0-9]+ ms'
wait_for 20 grep -Eq '^b[0-9]' out
result $? 'a query goes on' out
expect_page() { # NAME REGEX
	wait_for 20 curl -sf "http://127.0.0.1:$port/metrics" -o page
	expect_line "$1" "$2" page
}
expect_page 'so do the metrics' '^profscript_reports_total [1-9]'
kill -KILL "$WORKLOAD"
wait "$WORKLOAD" $tracer 2>/dev/null
calls=$(grep -Eo '^[ab][0-9]+' out | tr -d ab | awk '{ n += $1 } END { print n }')
expect_line 'the export has the events of all versions, too' "^count: exported $calls events to calls.json" err
check 'it is valid' python3 -c "import json; assert len(json.load(open('calls.json'))['traceEvents']) > $calls > 1000"

# Another session: the metrics keep their address and their totals, but an export cannot continue.
start ./count.lua --watch -i 100 --prometheus 127.0.0.1:0
port=$(sed -n 's/.*metrics are at http:..127.0.0.1:\([0-9]*\).*/\1/p' err)
edit "s/sys_enter/sys_exit/"
expect_said 'with metrics' 1 'events opened: raw_syscalls:sys_exit.* are missing$'
wait_for 20 bash -c "curl -sf http://127.0.0.1:$port/metrics | grep -Eq '^profscript_reports_total ([5-9]|[1-9][0-9])'"
result $? 'the metrics go on in another session'
expect_line 'at one address' '^1$' <(grep -c 'metrics are at' err)
stop
start ./count.lua --watch --export calls.json
edit "s/sys_exit/sys_enter/"
expect_said 'with an export' 1 'the version before goes on$'
expect_line 'the reason, with an export' 'with --export, events cannot be opened again: restart the run$' err
stop
expect_line 'the export is complete' 'exported .* to calls.json' err
