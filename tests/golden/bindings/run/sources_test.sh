#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only
# Profilers as sources of events for others, on recordings.
. "$(dirname "$0")/../../../lib.sh"
cd "$DATA" || exit 1

mkdir "$TMP/scripts"
export PROFSCRIPT_PATH=$TOP/examples:$TMP/scripts

# A source that describes its wakeups in its own way; its handlers must not run.
cat >"$TMP/scripts/woken.lua" <<'LUA'
return {
  summary = 'Says who is woken',
  options = { verb = { type = 'string', default = 'wakes', help = 'how to say it' } },
  start = function(opt, out)
    local function never() out:write('a handler of a source has run\n') end
    return {
      ['sched:sched_wakeup'] = never,
      ['sched:sched_switch'] = never,
      interval = never,
      stop = never,
      describe = function(ev)
        if ev._event == 'sched:sched_wakeup' then return ('%s\t%s'):format(opt.verb, ev.comm) end
      end,
    }
  end,
}
LUA
cat >"$TMP/scripts/asks.lua" <<'LUA'
return {
  summary = 'A handler for the events of a source',
  start = function(_, out)
    local n, fields = 0, 0
    return {
      ['wakeups/--top 1 -N 5/'] = function(ev) n, fields = n + 1, fields + #ev.comm end,
      stop = function() out:printf('%d %s\n', n, fields > 0) end,
    }
  end,
}
LUA

run() { "$PROFSCRIPT" "$@" --input sched.data; }
lines() { run trace -e "$1" 2>&1; }
body() { sed 's/.*\] [0-9.]*: //'; }

lines sched:sched_wakeup >"$TMP/wakeups"
expect_text 'a source has the events that it names' "$TMP/wakeups" lines wakeups
expect_text 'also if its file is given by a path' "$TMP/wakeups" lines '"../../examples/wakeups.lua"'
lines sched:sched_wakeup,sched:sched_switch >"$TMP/both"
expect_text 'in the order of all events' "$TMP/both" lines sched:sched_switch,wakeups
head -n 3 "$TMP/wakeups" >"$TMP/three"
expect_text 'its -N ends the source' "$TMP/three" lines 'wakeups/-N 3/'
{ head -n 3 "$TMP/wakeups"; lines sched:sched_switch; } | sort >"$TMP/sorted"
lines 'wakeups/-N 3/,sched:sched_switch' | sort >"$TMP/with"
check 'and only the source' diff "$TMP/sorted" "$TMP/with"
lines 'wakeups/-N 2/,wakeups/-N 4/' | sort | uniq -c | sed 's/^ *\([0-9]*\) .*/\1/' | sort | uniq -c >"$TMP/twice"
check 'a source given twice is two sources' diff - "$TMP/twice" <<-'END'
	      2 1
	      2 2
END
run trace -e 'trace/-e sched:sched_switch -N 7/' -N 4 | wc -l >"$TMP/n"
expect_line 'the -N of the target counts them too' '^4$' "$TMP/n"
lines "trace/-e 'sched:sched_wakeup,sched:sched_switch' --filter 'common_pid == 0'/,sched:sched_wakeup" >"$TMP/filtered"
expect_line 'the filter of a source applies to its events' \
	"^$(($(grep -c . "$TMP/wakeups") + $(grep -c ' swapper  *0 ' "$TMP/both")))\$" <(grep -c . "$TMP/filtered")

lines 'woken/--verb "does wake"/' | body >"$TMP/described"
check 'a source describes its events' diff <(sed 's/.*comm=\(.*\) pid=.*/does wake\\x09\1/' "$TMP/wakeups") \
	<(grep '^does wake' "$TMP/described")
check 'or uses their own print format' diff <(lines sched:sched_switch | body) \
	<(grep -v '^does wake' "$TMP/described")
run multi-trace -i 1 -e sched:sched_wakeup//key=pid/ -e sched:sched_switch//key=next_pid/ >"$TMP/plain"
run multi-trace -i 1 -e sched:sched_wakeup//key=pid/ -e sched:sched_switch//key=next_pid/,woken >"$TMP/context"
check 'for pairs a source is context' diff "$TMP/plain" "$TMP/context"
run multi-trace -e wakeups//key=pid/ -e sched:sched_switch//key=next_pid/ >"$TMP/keyed"
run multi-trace -e sched:sched_wakeup//key=pid/ -e sched:sched_switch//key=next_pid/ >"$TMP/plain"
check 'but one with a key is paired' diff "$TMP/plain" "$TMP/keyed"
run multi-trace -e wakeups//key=pid/alias=woken/ -e sched:sched_switch//key=next_pid/ >"$TMP/alias"
expect_line 'and may have an alias' '^ *woken => sched_switch ' "$TMP/alias"
# perf-prof's name for a profiler works too.
lines "event-lost/-e sched:sched_wakeup/" >"$TMP/event-lost"
expect_text 'a source by its perf-prof name' "$TMP/event-lost" lines 'event-care/-e sched:sched_wakeup/'
check 'which has events' cmp "$TMP/wakeups" "$TMP/event-lost"
expect_line 'a handler may be for a source' '^5 true$' <(run asks)
run exec -e 'wakeups,trace/-e sched:sched_switch -N 1/' 'count(ev._event)' >"$TMP/counted"
expect_line 'any profiler takes sources' "sched:sched_wakeup +$(grep -c . "$TMP/wakeups")\$" "$TMP/counted"
expect_line 'any profiler takes sources' 'sched:sched_switch +1$' "$TMP/counted"
lines "trace/-e 'trace/-e sched:sched_switch -N 9/' -N 2/,wakeups/-N 1/" | wc -l >"$TMP/n"
expect_line 'a source may have sources' '^3$' "$TMP/n"

# refused NAME LINE CARET_COLUMN SELECTOR: the selector is refused with this line and caret
refused() {
	check_status "$1" 2 run trace -e "$4"
	run trace -e "$4" 2>"$TMP/refused"
	expect_line "$1" "$2" "$TMP/refused"
	[ -z "$3" ] || expect_line "$1: caret" "^ {$(($3 + 1))}\\^\$" "$TMP/refused"
}
refused 'an option that it lacks' "wakeups: unknown option '--topp'; did you mean '--top'\\?" 9 'wakeups/--topp 3/'
refused 'an invalid value' "wakeups: option '--top': 'x' is not an integer" 21 'wakeups/-N 5 --top  x/'
refused 'a missing value' "option '--top' needs a value" 9 'wakeups/--top/'
refused 'an unclosed quote' 'unclosed quote' 14 "woken/--verb '/"
refused 'an option of the whole run' 'wakeups: --pids is not valid for a source' 9 'wakeups/-p 1/'
refused 'a workload' "wakeups: a source only takes options, not 'ls'" 14 'wakeups/-N 3 ls/'
refused 'a tool' "'list' has no events" 1 'list'
refused 'another tool' "'usdt' has no events" 20 'sched:sched_wakeup,usdt'
refused 'a profiler without events' "'exec' has no events of its own; select some" 1 "exec/'count(1)'/"
refused 'a misspelled perf-prof name' "perf event or profiler; did you mean 'event-care'\\?" '' event-car
refused 'a misspelled name' "perf event or profiler; did you mean 'wakeups'\\?" '' wakeup
refused 'a sampling rate' "set the sampling rate of 'wakeups' with its options" 10 'wakeups//period=3/'
echo "return { summary = 'x', options = { event = { default = { 'loop' } } }, start = function() return {} end }" \
	>"$TMP/scripts/loop.lua"
refused 'a source of itself' "'loop' is its own source" '' loop

"$PROFSCRIPT" trace -e woken help --input sched.data >"$TMP/help"
expect_line 'help: the summary' '^woken, a profiler as an event source: Says who is woken$' "$TMP/help"
expect_line 'help: its options' "^  -e 'woken/\\[-e EVENT\\] .*\\[--filter FILTER\\] .*\\[-g " "$TMP/help"
expect_line 'help: its options' "\\[--verb TEXT\\]" "$TMP/help"
expect_line 'help: attributes follow' "\\[-N N\\]/ATTRIBUTE/.../'\$" "$TMP/help"
expect_line 'help: its events' '^      events: sched:sched_switch, sched:sched_wakeup$' "$TMP/help"
expect_line 'help: their fields' '^prev_comm ' "$TMP/help"

# The options of a source are private to it.
run exec -i 3 -e sched:sched_wakeup 'count()' --format csv >"$TMP/plain"
run exec -i 3 -e 'sched:sched_wakeup,wakeups/-i 1 --top 1 -N 1 --filter pid<0/' 'count()' --format csv >"$TMP/with"
check 'the interval of a source is not that of the run' diff "$TMP/plain" "$TMP/with"
