#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only
# Sources with a condition: others get the events for which it is true, which the source prints by itself.
. "$(dirname "$0")/../../../lib.sh"

# passes NAME RECORDING SOURCE LAST WORD...: trace prints, of the source, what LAST filters out of what it prints on its own
passes() {
	"$PROFSCRIPT" "${@:5}" --input "$DATA/$2.data" 2>/dev/null | grep -E '^[0-9-]{10} [0-9:.]+ +[^ ]' | eval "$4" >"$TMP/want"
	"$PROFSCRIPT" trace -e "$3" --input "$DATA/$2.data" >"$TMP/got" 2>"$TMP/err"
	check "$1: some" test -s "$TMP/want"
	check "$1: these" diff "$TMP/want" "$TMP/got"
	check "$1: no complaints" test ! -s "$TMP/err"
}
seconds="awk 'NR % 2 == 0'" # of pairs
# An event ends several pairs if they have different keys. It is passed on once.
seconds="awk 'NR % 2 == 0 && \$0 != last { print last = \$0 }'"
calls='-e raw_syscalls:sys_enter -e raw_syscalls:sys_exit -k common_pid'
passes rundelay hogs 'rundelay/--than 9ms/' "$seconds" rundelay --than 9ms
# shellcheck disable=SC2086 # words
passes multi-trace syscalls "multi-trace/$calls --than 3us/" "$seconds" multi-trace $calls --than 3us
# shellcheck disable=SC2086
passes 'multi-trace --lower' syscalls "multi-trace/$calls --lower 500/" "$seconds" multi-trace $calls --lower 500
# The end of a task, which ends its last call, is not an event.
passes syscalls syscalls 'syscalls/--than 3us/' "$seconds | grep -v ': exit: '" syscalls --than 3us
timers='-e irq:softirq_entry,irq:softirq_exit -e timer:timer_expire_entry,timer:timer_expire_exit'
# shellcheck disable=SC2086
passes nested-trace timers "nested-trace/$timers --than 20us/" "$seconds" nested-trace $timers --than 20us
# A state has a line, the event before it if it was seen, and the event that ends it.
passes task-state hogs 'task-state/-D --than 2ms/' "awk '/ task-state: / { if (event != last) print last = event
	event = \"\"; next } { event = \$0 } END { if (event != last) print event }'" task-state -D --than 2ms

# A source of a source: of the switches that end long waits, those that come 1 ms after another.
cat >"$TMP/far.lua" <<'END'
return {
  summary = 'Pass on switches that come 1 ms or more after another',
  start = function(_, out, session)
    local last, pass = 0, session.gate()
    return {
      ['rundelay/--than 1ms/'] = function(ev)
        if ev._time - last > 1e6 then (pass or function() out:print_event(ev) end)(ev) end
        last = ev._time
      end,
      interval = function() error 'not called' end,
      stop = function() if pass then error 'not called' end end,
    }
  end,
}
END
passes 'a source of a source' hogs "\"$TMP/far.lua\"" cat "$TMP/far.lua"
"$PROFSCRIPT" trace -e "\"$TMP/far.lua\"/-N 2/" --input "$DATA/hogs.data" >"$TMP/got"
check 'its -N counts what it passes on' diff <(head -n 2 "$TMP/want") "$TMP/got"
"$PROFSCRIPT" exec -e "\"$TMP/far.lua\",sched:sched_switch" 'count(ev._event)' --format csv --input "$DATA/hogs.data" |
	tail -n 1 >"$TMP/got"
all=$("$PROFSCRIPT" exec -e sched:sched_switch 'count()' --format csv --input "$DATA/hogs.data" | tail -n 1)
check 'the same event without the source is not affected' \
	test "$(cut -d, -f4 "$TMP/got")" -eq $((${all##*,} + $(wc -l <"$TMP/want")))
"$PROFSCRIPT" stat -e 'rundelay/--than 1ms/' --input "$DATA/hogs.data" >"$TMP/out" 2>"$TMP/err"
check 'events that are only counted' test $? -eq 2
expect_line 'cannot have a condition' \
	'^profscript: sched:sched_[a-z]* is only counted, so rundelay cannot decide which of its events to pass on$' "$TMP/err"
