#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only
# --usage-self prints what a run itself uses, and does not add to it.
# Runs on an idle machine.
. "$(dirname "$0")/../../../lib.sh"
needs_tracepoint sched:sched_switch raw_syscalls:sys_enter
cd "$TMP" || exit 1

line='^[0-9-]{10} [0-9:]{8}\.[0-9]{6} CPU %usr [0-9]+\.[0-9]{2} %sys [0-9]+\.[0-9]{2} MAXRSS [0-9]+k$'

# A sleeping thread has no events: only the run's own polls and lines wake it.
sleep 1000 &
switches() { awk '/^voluntary/ { print $2 }' /proc/$tracer/status; }
start trace -e raw_syscalls:sys_enter -t $! --usage-self 25
lines=$(wc -l <err)
woken=$(switches)
sleep 1
woken=$(($(switches) - woken))
lines=$(($(wc -l <err) - lines)) # for a longer time
check "nothing else wakes it ($woken times, $lines lines)" test $woken -le $((lines + 5))
peak=$(awk '/VmHWM/ { print $2 }' /proc/$tracer/status)
stop
expect_line 'the line' "$line" err
check 'it is the only one' bash -c "! grep -Ev '$line' err"
awk '{ split($2, t, ":"); now = t[1] * 3600 + t[2] * 60 + t[3]; if (NR == 1) first = now }
	END { exit NR < 3 || NR > (now - first) / 0.025 + 2 }' err
result $? 'at the requested interval, not more often' err
check 'no messages elsewhere' test ! -s out
reported=$(tail -n 1 err | sed 's/.*MAXRSS \([0-9]*\)k/\1/')
check "MAXRSS is the kernel's ($reported, $peak KiB)" test "$reported" -ge $((peak * 3 / 4)) -a "$reported" -le $((peak + 16384))

# The printed values add up to what was used, here half of the time.
cat >spin.lua <<'LUA'
return { summary = 'spins', start = function(_, _, session)
  local function spin(ns)
    local till = session.now() + ns
    while session.now() < till do end
  end
  return { ['sched:sched_switch'] = function() end, interval = function() spin(5e7) end }
end }
LUA
start spin.lua --lost ignore -i 100 --usage-self 100 # a busy machine loses events while it spins
used() { awk -v hz="$(getconf CLK_TCK)" '{ print int(($14 + $15) * 1000 / hz) }' /proc/$tracer/stat; }
lines() { [ "$(wc -l <err)" -ge "$1" ]; }
wait_for 30 lines 1
before=$(used) # mostly by the start, which is not reported
wait_for 30 lines 10
kill -STOP $tracer
reported=$(awk '{ split($2, t, ":"); now = t[1] * 3600 + t[2] * 60 + t[3]; if (NR > 1) sum += ($5 + $7) / 100 * (now - last); last = now }
	END { print int(sum * 1000) }' err)
used=$(used)
kill -INT $tracer
kill -CONT $tracer
wait $tracer
check "the reported values add up to what is used ($reported of $used ms)" test "$reported" -le $((used + 30)) -a \
	"$reported" -ge $(((used - before) / 3))
"$PROFSCRIPT" trace -e raw_syscalls:sys_enter --input "$DATA/zstd.data" >want
expect_text 'a recording is printed as without the option' want "$PROFSCRIPT" trace -e raw_syscalls:sys_enter \
	--input "$DATA/zstd.data" --usage-self 1
"$PROFSCRIPT" exec -q -e sched:sched_switch 'count()' --usage-self 100 --duration 0.55 2>err >out
expect_line 'also with -q' "$line" err
