#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only
# What a run costs: --usage-self tells what it takes itself, and does not add to it; --perfeval-* how many events
# others have for it, --sampling-limit ends it.
. "$(dirname "$0")/../../../lib.sh"
needs_tracepoint sched:sched_switch raw_syscalls:sys_enter
cd "$TMP" || exit 1
line='^[0-9-]{10} [0-9:]{8}\.[0-9]{6} CPU %usr [0-9]+\.[0-9]{2} %sys [0-9]+\.[0-9]{2} MAXRSS [0-9]+k$'

# A thread that sleeps has no events: what wakes the run are its own polls and the lines.
sleep 1000 &
switches() { awk '/^voluntary/ { print $2 }' /proc/$tracer/status; }
"$PROFSCRIPT" trace -e raw_syscalls:sys_enter -t $! --usage-self 25 2>err >out &
tracer=$!
wait_ready $tracer
lines=$(wc -l <err)
woken=$(switches)
sleep 1
woken=$(($(switches) - woken))
lines=$(($(wc -l <err) - lines)) # of a longer time
check "nothing else wakes it ($woken times, $lines lines)" test $woken -le $((lines + 5))
peak=$(awk '/VmHWM/ { print $2 }' /proc/$tracer/status)
kill -INT $tracer
wait $tracer
expect_line 'the line' "$line" err
check 'it is the only one' bash -c "! grep -Ev '$line' err"
awk '{ split($2, t, ":"); now = t[1] * 3600 + t[2] * 60 + t[3]; if (NR == 1) first = now }
	END { exit NR < 3 || NR > (now - first) / 0.025 + 2 }' err
result $? 'as often as asked, never more' err
check 'nothing is said elsewhere' test ! -s out
told=$(tail -n 1 err | sed 's/.*MAXRSS \([0-9]*\)k/\1/')
check "MAXRSS is the kernel's ($told, $peak KiB)" test "$told" -ge $((peak * 3 / 4)) -a "$told" -le $((peak + 16384))

# What is told adds up to what was used, here half of the time.
cat >spin.lua <<'LUA'
return { summary = 'spins', start = function()
  local function spin(ns)
    local till = os.clock() + ns / 1e9
    while os.clock() < till do end
  end
  return { ['sched:sched_switch'] = function() end, interval = function() spin(5e7) end }
end }
LUA
"$PROFSCRIPT" spin.lua -i 100 --usage-self 100 --duration 60 2>err &
tracer=$!
used() { awk -v hz="$(getconf CLK_TCK)" '{ print int(($14 + $15) * 1000 / hz) }' /proc/$tracer/stat; }
wait_ready $tracer
eight() { [ "$(wc -l <err)" -ge 8 ]; }
wait_for 30 eight
kill -STOP $tracer
told=$(awk '{ split($2, t, ":"); now = t[1] * 3600 + t[2] * 60 + t[3]; if (NR > 1) sum += ($5 + $7) / 100 * (now - last); last = now }
	END { print int(sum * 1000) }' err)
used=$(used)
kill -INT $tracer
kill -CONT $tracer
wait $tracer
check "what is told adds up to what is used ($told of $used ms)" test "$told" -le $((used + 30)) -a "$told" -ge $((used / 3))
"$PROFSCRIPT" trace -e raw_syscalls:sys_enter --input "$TOP/tests/recordings/zstd.data" >want
expect_text 'a recording is printed as without' want "$PROFSCRIPT" trace -e raw_syscalls:sys_enter \
	--input "$TOP/tests/recordings/zstd.data" --usage-self 1
"$PROFSCRIPT" exec -q -e sched:sched_switch 'count()' --usage-self 100 --duration 0.55 2>err >out
expect_line 'also with -q' "$line" err

# The kernel's own counts: the calls that a thread makes, seen among those of all.
workload syscalls 5000
"$PROFSCRIPT" exec -m 1024 -e raw_syscalls:sys_enter 'count()' --filter "id == 110" -i 500 --perfeval-pids "$WORKLOAD" \
	--perfeval-cpus "$(</sys/devices/system/cpu/online)" >out 2>err &
tracer=$!
wait_ready $tracer
go
of_pids="perfeval pids\($WORKLOAD\)"
matched() { sed -En "s/.* exec: $of_pids: sampled [0-9]+ events matched ([0-9]+) on [01] instances\$/\1/p" out | awk '{ sum += $1 } END { print sum / 2 + 0 }'; }
all() { [ "$(matched)" -ge 5000 ]; }
wait_for 20 all
kill -INT $tracer
wait $tracer
check "all calls of a thread are counted ($(matched))" test "$(matched)" -eq 5000
check 'nothing else is said' test ! -s err
# getppid is nobody else's: what the processes had is what the CPUs had.
check 'by CPU they are as many' test "$(sed -En 's/.* perfeval cpus\(.*matched ([0-9]+) on .*/\1/p' out | awk '{ sum += $1 } END { print sum / 2 }')" \
	-ge 5000

# More than the limit: the run ends by itself, with what it has found, and says which thread it was.
workload syscalls 100000000
of_pids="perfeval pids\\($WORKLOAD\\)"
"$PROFSCRIPT" exec -m 1024 -e raw_syscalls:sys_enter 'count()' -p "$WORKLOAD" --duration 60 -i 200 --perfeval-pids "$WORKLOAD" \
	--sampling-limit 1000 >out 2>err &
tracer=$!
wait_ready $tracer
echo >&"$workload_go"
wait $tracer
check 'the limit ends the run' test $? -eq 0
expect_line 'the limit' "^[0-9-]+ [0-9:.]+ exec: $of_pids: sampled [0-9]+ events matched [0-9]+ on 1 instances, exceeds the limit, exit\$" out
expect_line 'the thread' "^[0-9-]+ [0-9:.]+ exec: perfeval: tid $WORKLOAD sampled [0-9]+ events\$" out
check 'the workload runs on' kill -0 "$WORKLOAD"
kill "$WORKLOAD"
check_status 'a limit that is not reached ends nothing' 0 timeout 60 "$PROFSCRIPT" exec -e sched:sched_switch 'count()' -i 100 \
	--perfeval-cpus 0 --sampling-limit 1000000000 --duration 0.5
grep -q exceeds "$TMP/.check"
check 'nor says so' test $? -eq 1
