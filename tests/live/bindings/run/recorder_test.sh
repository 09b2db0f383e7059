#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only
# The flight recorder of scripts: dumps have all events of the moment, in order and once.
# Runs alone.
. "$(dirname "$0")/../../../lib.sh"
needs_tracepoint raw_syscalls:sys_enter sched:sched_process_exit
cd "$TMP" || exit 1
name=kept$$ # others may run the same workload
syscalls=$TMP/$name
cp "$TOP/build/workloads/syscalls" "$syscalls"

# A dump when a workload ends. Its calls are counted; `each` checks their order.
cat >moment.lua <<END
return {
  summary = 'Count the kept system calls when a process ends',
  options = {
    keep = { type = 'string', default = '64M', help = 'memory' },
    before = { type = 'string', default = '1h', help = 'time' },
  },
  start = function(opt, out, session)
    local recorder = session.recorder { events = 'raw_syscalls:sys_enter/id==$GETPPID&&comm=="$name"/', keep = opt.keep }
    local last, disorder, early, mine = 0, 0, 0, 0
    return {
      ['sched:sched_process_exit'] = function(ev)
        if ev._comm ~= '$name' then return end
        local tid, at = ev._tid, ev._time
        local accepted = recorder:dump {
          at = at, before = opt.before, after = '1ms',
          where = function(one) return one._tid == tid end,
          each = function(one)
            if one._time < last then disorder = disorder + 1 end
            if one._time > at then early = early + 1 end
            if one.id == $GETPPID then mine = mine + 1 end
            last = one._time
          end,
          done = function(dump)
            out:printf('dump: %d events, %d mine, %d in disorder, %d after the end\n', dump.events, mine, disorder, early)
            mine = 0
          end,
        }
        out:printf('accepted: %s, %s\n', tostring(accepted), tostring(recorder:dump()))
      end,
    }
  end,
}
END
# BPF programs write the events, if they can.
for how in perf auto; do
	"$PROFSCRIPT" moment.lua --capture $how -- "$syscalls" 5000 >out 2>err
	result $? "$how: a run" err
	expect_line "$how: one dump at a time" '^accepted: true, false$' out
	expect_line "$how: all events of the moment" '^dump: 5000 events, 5000 mine, 0 in disorder, 0 after the end$' out
	check "$how: nothing to complain about" test ! -s err

	"$PROFSCRIPT" moment.lua --capture $how -- bash -c "$syscalls 3000
		for i in {1..600}; do grep -q ^dump out && break; sleep 0.05; done
		$syscalls 4000" >out 2>err
	expect_line "$how: several dumps" '^dump: 3000 events, 3000 mine, 0 in disorder' out
	expect_line "$how: another one" '^dump: 4000 events, 4000 mine, 0 in disorder' out

	"$PROFSCRIPT" moment.lua --capture $how --keep 32K -- "$syscalls" 20000 >out 2>err
	check "$how: old events are overwritten" awk '/^dump/ { found = $2 < 20000 } END { exit !found }' out
	expect_line "$how: it says how far the memory reaches" '^moment: the recorder holds only the last [0-9.]+ ms' err
done
captures=0
if "$PROFSCRIPT" trace -e raw_syscalls:sys_enter --overwrite --capture bpf --duration 1ms >/dev/null 2>&1; then
	start trace -e raw_syscalls:sys_enter --overwrite --capture bpf
	captures=$(cat /proc/$tracer/fdinfo/* | grep -c ^prog_id)
	stop
fi
start moment.lua
check 'a program for the event, if programs can' test "$(cat /proc/$tracer/fdinfo/* | grep -c ^prog_id)" = "$captures"
stop
"$PROFSCRIPT" moment.lua --keep 1ms -- "$syscalls" 5000 1000 >out 2>err
check 'a time limits it, too' awk '/^dump/ { found = $2 < 100 } END { exit !found }' out

cat >print.lua <<END
return {
  summary = 'Print what is kept, at the end of an interval and on a signal',
  start = function(_, _, session)
    local recorder = session.recorder { events = { 'raw_syscalls:sys_enter/id==$GETPPID&&comm=="$name"/' } }
    local function mine(ev) return ev._comm == '$name' end
    return {
      ['sched:sched_process_exit'] = function(ev) if mine(ev) then recorder:dump { where = mine } end end,
    }
  end,
}
END
"$PROFSCRIPT" print.lua --json -- "$syscalls" 10 >out 2>err
check 'events are printed as any others' test "$(grep -c '"event": *"raw_syscalls:sys_enter"' out)" -eq 10
"$PROFSCRIPT" print.lua -- "$syscalls" 10 >out 2>err
check 'as text' test "$(grep -c "$name .* raw_syscalls:sys_enter: NR $GETPPID " out)" -eq 10

# A dump as a recording: perf and profscript read in it what the script printed, and only that. The workload has ended
# when the file is written, and its stacks are those of a program that starts another one.
cat >file.lua <<END
return {
  summary = 'Write what was kept to a file',
  options = {
    file = { type = 'string', default = 'moment.data', help = 'file' },
    also = { type = 'string', default = ',sched:sched_process_exec//stack/', help = 'events' },
  },
  start = function(opt, out, session)
    local recorder = session.recorder { events = 'raw_syscalls:sys_enter/id==$GETPPID&&comm=="$name"/stack/' .. opt.also }
    return {
      ['sched:sched_process_exit'] = function(ev)
        if ev._comm ~= '$name' then return end
        recorder:dump {
          at = ev._time, before = '1h', file = opt.file,
          where = function(one) return one._comm == '$name' end,
          each = function(one) out:print_event(one) end,
          done = function(dump) io.stderr:write(('%d events\n'):format(dump.events)) end,
        }
      end,
    }
  end,
}
END
"$PROFSCRIPT" file.lua -o printed -- sh -c "exec $syscalls 500" 2>err
expect_line 'all events of the moment' '^501 events$' err
"$PROFSCRIPT" trace -g --input moment.data -o read 2>err
check 'the recording has the same events and stacks' cmp printed read
check 'the stacks reach into the program' test "$(grep -c '(.*/libc\.so\.6)' read)" -ge 500
perf script -i moment.data >perf.txt 2>perf.err
check 'perf reads them' test "$(grep -c "^$name .* raw_syscalls:sys_enter: NR $GETPPID " perf.txt)" -eq 500
check 'and nothing else' test "$(grep -c '^[^[:space:]]' perf.txt)" -eq 501
check 'and the stacks' grep -q do_syscall_64 perf.txt
captured=(file.lua --also '' --no-user-callchain --file captured.data)
"$PROFSCRIPT" "${captured[@]}" -v -- "$syscalls" 1 >out 2>err
[ "$captures" = 0 ] || check 'programs write events with stacks of the kernel' bash -c '! grep "recorder reads" err'
"$PROFSCRIPT" "${captured[@]}" -o printed -- "$syscalls" 500 2>err
"$PROFSCRIPT" trace -g --no-user-callchain --input captured.data -o read 2>err
check 'the recording of captured events has the same ones' cmp printed read
perf script -i captured.data >perf.txt 2>perf.err
check 'perf reads them, too' test "$(grep -c "^$name .* raw_syscalls:sys_enter: NR $GETPPID " perf.txt)" -eq 500
"$PROFSCRIPT" file.lua --file no/such/file -- "$syscalls" 10 >out 2>err
check 'a file that cannot be written' test $? -eq 1
expect_line 'says so' '^profscript: file.lua:12: recorder:dump: .*no/such/file.*No such file or directory' err
"$PROFSCRIPT" file.lua --file unix:no/such -- "$syscalls" 10 >out 2>err
check 'a file is not an address' test $? -eq 1

# A file as the trigger: it is created, written, replaced; others beside it do not matter.
cat >saved.lua <<END
return {
  summary = 'Say when a file is saved',
  options = { file = { type = 'string', default = 'now', help = 'file' } },
  start = function(opt, out, session)
    local recorder, n = session.recorder { events = 'raw_syscalls:sys_enter/id==$GETPPID&&comm=="$name"/', keep = '1M' }, 0
    local function mine(ev) return ev._comm == '$name' end
    session.on_file(opt.file, function()
      n = n + 1
      recorder:dump { where = mine, each = function() end,
        done = function(dump) out:printf('%d: %d events\n', n, dump.events) end }
    end)
    return {}
  end,
}
END
"$PROFSCRIPT" saved.lua -- bash -c "said() { for i in {1..600}; do grep -q ^\$1: out && break; sleep 0.05; done; }
	$syscalls 10; echo >other; echo >now; said 1
	$syscalls 20; echo >>now; said 2
	$syscalls 30; mv other now; said 3" >out 2>err
result $? 'a run until a file is saved' err
check 'each time it is saved' diff <(printf '%s\n' '1: 10 events' '2: 20 events' '3: 30 events') out
# Nothing else wakes this run.
start saved.lua
echo >now
wait_for 20 grep -q ^1: "$TMP/out"
result $? 'while there are no events' "$TMP/err"
stop
"$PROFSCRIPT" saved.lua --file no/such/file >out 2>err
check 'a folder that does not exist' test $? -eq 1
expect_line 'says so' '^profscript: saved.lua:7: session.on_file: no/such: No such file or directory$' err
"$PROFSCRIPT" saved.lua --input "$DATA/mixed.data" >out 2>err
check 'not on a recording' test $? -eq 2
"$PROFSCRIPT" saved.lua --file '' >out 2>err
expect_line 'a file has a name' '^profscript: saved.lua:7: session.on_file takes the path of a file, which is empty$' err
for folder in . no/such/; do
	"$PROFSCRIPT" saved.lua --file $folder >out 2>err
	expect_line 'a folder is not a file' "^profscript: saved.lua:7: session.on_file takes .*, but '$folder' is a folder$" err
done

# Another profiler's condition as the trigger: a clock that is late by the least jitter, and never by an hour.
cat >late.lua <<END
return {
  summary = 'Dump when interrupts were off, and when a process has ended',
  options = { than = { type = 'string', default = '1000001ns', help = 'time without interrupts' } },
  start = function(opt, out, session)
    local recorder, n = session.recorder { events = 'raw_syscalls:sys_enter/id==$GETPPID&&comm=="$name"/', keep = '4M' }, 0
    return {
      [('irq-off/--period 1ms --than %s/'):format(opt.than)] = function(ev)
        n = n + 1
        recorder:dump {
          at = ev._time, before = '1h', each = function() end,
          done = function(dump)
            if dump.events > 0 then session.stop() end
          end,
        }
      end,
      stop = function() out:printf('%s clocks\n', n > 0 and 'late' or 'no late') end,
    }
  end,
}
END
"$syscalls" 1000000000 10000 &
timeout 60 "$PROFSCRIPT" late.lua >out 2>err
result $? 'a run until a profiler has found something' err
kill $!
expect_line 'it has' '^late clocks$' out
"$PROFSCRIPT" late.lua --than 1h --duration 0.3 >out 2>err
expect_line 'which is its condition' '^no late clocks$' out
"$PROFSCRIPT" late.lua --than 1ms >out 2>err
expect_line 'what is wrong with its options' "^profscript: late.lua:[0-9]+: bad event 'irq-off/.*': irq-off: --than must be longer than --period" err

# refused REGEX CODE: the call of session.recorder or the dump is refused with this line
refused() {
	cat >bad.lua <<-END
		return { summary = 'Bad', start = function(_, out, session)
		  local recorder
		  $2
		  return { ['raw_syscalls:sys_enter'] = function() $3 end }
		end }
	END
	"$PROFSCRIPT" bad.lua -- "$syscalls" 10 >out 2>err
	check "refused: $2$3" test $? -ne 0
	expect_line 'says' "$1" err
	check 'one line' test "$(wc -l <err)" -eq 1
}
refused "^profscript: bad.lua:3: session.recorder: keep is a size .* not 'much'$" \
	"session.recorder { events = 'sched:sched_switch', keep = 'much' }" ''
refused "^profscript: bad.lua:3: session.recorder: keep = '10' is less than a page \(4096 bytes\)$" \
	"session.recorder { events = 'sched:sched_switch', keep = '10' }" ''
refused "^profscript: bad.lua:3: session.recorder: keep = '0s' keeps nothing$" \
	"session.recorder { events = 'sched:sched_switch', keep = '0s' }" ''
for size in 128G 1024T; do # more than a ring can have, and more pages than 32 bits
	refused '^profscript: cannot map rings of [0-9]+ pages: Cannot allocate memory$' \
		"session.recorder { events = 'sched:sched_switch', keep = '$size' }" ''
done
refused "^profscript: bad.lua:3: session.recorder: unknown setting 'kep'; did you mean 'keep'\?$" \
	"session.recorder { events = 'sched:sched_switch', kep = '1M' }" ''
refused "^profscript: bad.lua:3: session.recorder takes \{ events = ... \}$" 'session.recorder {}' ''
refused "^profscript: bad: session.recorder cannot keep sched:sched_switch: the kernel cannot evaluate its filter" \
	"session.recorder { events = 'sched:sched_switch/prev_pid == next_pid + 1/' }" ''
refused "^profscript: bad.lua:4: recorder:dump: before: invalid duration 'soon'" \
	"recorder = session.recorder { events = 'sched:sched_switch' }" "recorder:dump { before = 'soon' }"
refused '^profscript: bad.lua:4: recorder:dump: at is not a number$' \
	"recorder = session.recorder { events = 'sched:sched_switch' }" "recorder:dump { at = 0/0 }"
refused "^profscript: bad.lua:3: session.recorder takes a table, not 'sched:sched_switch'\$" \
	"session.recorder 'sched:sched_switch'" ''
refused "^profscript: bad.lua:4: recorder:dump: unknown setting 'befor'; did you mean 'before'\?$" \
	"recorder = session.recorder { events = 'sched:sched_switch' }" "recorder:dump { befor = '1s' }"
"$PROFSCRIPT" print.lua --input "$DATA/mixed.data" >out 2>err
expect_line 'not on a recording' '^profscript: print: session.recorder is for live events of this machine$' err
