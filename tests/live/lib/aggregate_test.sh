#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only
# All aggregates, in the kernel's programs and in Lua: the same numbers, and the same errors.
. "$(dirname "$0")/../../lib.sh"
needs_tracepoint syscalls:sys_enter_lseek syscalls:sys_exit_lseek sched:sched_process_exec
seeks=$TOP/build/workloads/seeks
ENTER=syscalls:sys_enter_lseek EXIT=syscalls:sys_exit_lseek EXEC=sched:sched_process_exec

# both NAME ARGUMENT...: with programs and without them
both() {
	local name=$1
	shift
	for way in auto perf; do
		"$PROFSCRIPT" "$@" --capture $way -m 1024 -- "$seeks" 3 2>&1 | sed -E '/^[0-9]{4}-[0-9]{2}-[0-9]{2} [0-9:.]+ *$/d' \
			>"$TMP/$way"
	done
	cmp -s "$TMP/auto" "$TMP/perf"
	result $? "$name" "$TMP/auto" "$TMP/perf"
}

both 'a first one' exec -e $ENTER "count(ev.whence)"
expect_line 'has numbers' '^ +1 +21$' "$TMP/auto"
"$PROFSCRIPT" explain exec -e $ENTER 'count(ev.whence)' >"$TMP/out" 2>&1
expect_line 'programs count it' 'counted' "$TMP/out"

exact='if ev.whence == 0 then %s end'
for kind in sum hist quantiles; do
	for value in ev.offset ev.whence ev.fd ev._comm '"text"' '"5"' nil true ev._cpu==-1 -7 1.5 'ev.offset / 4096' \
		ev.__syscall_nr ev._pid-ev._tid; do
		# shellcheck disable=SC2059 # the format
		both "$kind($value)" exec -e $ENTER "$(printf "$exact" "$kind($value)")"
		both "$kind($value) by key" exec -e $ENTER "$(printf "$exact" "$kind($value, ev.whence, ev._comm)")"
	done
	both "$kind of all offsets" exec -e $ENTER "if ev.offset ~= 1 then $kind(ev.whence, ev.offset) end"
	both "$kind of a result" exec -e $EXIT "$kind(ev.ret)"
	both "$kind of names" exec -e $EXEC "$kind(ev.filename)"
	both "$kind(ev._comm) alone" exec -e $EXEC "$kind(ev._comm)"
done
for kind in avg min max stats lhist; do
	bounds=
	[ $kind != lhist ] || bounds=', -10, 100, 10'
	for value in ev.offset ev._comm -7; do
		# shellcheck disable=SC2059
		both "$kind($value) of some" exec -e $ENTER "$(printf "$exact" "$kind($value$bounds)")"
	done
	both "$kind(ev.whence) alone" exec -e $ENTER "$kind(ev.whence$bounds, ev.fd)"
	both "$kind of a result" exec -e $EXIT "$kind(ev.ret$bounds)"
done
for kind in hist quantiles; do both "$kind of 64 bits" exec -e $ENTER "$kind(ev.offset)"; done
for key in ev.offset ev.whence ev._comm '"text"' nil true 'ev.whence == 1' -7 1.5 ev.offset%7 ev._event; do
	both "count($key)" exec -e $ENTER "count($key)"
	both "count($key, ev.fd)" exec -e $ENTER "count($key, ev.fd)"
done
for condition in 'ev.offset == 9007199254740993' 'ev.offset > 9007199254740992' 'ev.offset < 0' 'ev.offset > -9007199254740994' \
	'ev.offset > -9223372036854775809' 'ev.offset < 18446744073709551616' 'ev._comm == 5' 'ev.whence == "1"' 'ev.whence > "1"' \
	'ev._comm < "t"' 'ev.fd == 4294967295' 'ev.offset ~= -1'; do
	both "if $condition" exec -e $ENTER "if $condition then count(ev.offset) end"
done

cat >"$TMP/all.lua" <<'EOF'
local aggregate = require 'lib.aggregate'
local counter = require 'lib.counter'
local hist = require 'lib.hist'
return {
  summary = 'All aggregates of the library',
  options = { value = { type = 'string', required = true, help = 'offset, name, negative or word' } },
  start = function(opt, out)
    local sum, bars = aggregate.new('sum', { 'whence' }), aggregate.new('hist', { 'whence' })
    local times, count = aggregate.new('quantiles', {}), aggregate.new('count', { 'offset', 'comm' })
    local counts, values = counter.new { 'whence' }, hist.new()
    local handlers = {
      offset = function(ev)
        sum:add(ev.fd, ev.whence) bars:add(ev.offset, ev.whence) times:add(ev.offset) count:add(ev.offset, ev._comm)
        counts:add(1, ev.whence) values:add(ev.offset)
      end,
      negative = function(ev)
        sum:add(-3, ev.whence) bars:add(-3, ev.whence) times:add(-3) count:add(-3, ev._comm) counts:add(-3, ev.whence)
        values:add(-3)
      end,
      sum = function(ev) sum:add(ev._comm, ev.whence) end,
      hist = function(ev) bars:add(ev._comm, ev.whence) end,
      quantiles = function(ev) times:add(ev._comm) end,
      counter = function(ev) counts:add(ev._comm, ev.whence) end,
      plain = function(ev) values:add(ev._comm) end,
      missing = function(ev) count:add(ev._comm, nil) end,
    }
    return {
      ['syscalls:sys_enter_lseek'] = handlers[opt.value],
      stop = function()
        for _, one in ipairs { sum, bars, times, count, counts } do one:print(out) end
        local stats = values:stats()
        out:row { 'n', stats.count, 'sum', stats.sum, 'min', stats.min, 'max', stats.max, 'negative', stats.negative }
      end,
    }
  end,
}
EOF
for value in offset negative sum hist quantiles counter plain missing; do
	both "a script: $value" "$TMP/all.lua" --value $value
done
