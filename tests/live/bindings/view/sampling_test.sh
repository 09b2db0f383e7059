#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only
# perf events that a script opens with parameters: the contents of their samples, live and from a recording, and the
# parameters that are refused.
# Runs alone.
. "$(dirname "$0")/../../../lib.sh"
needs_tracepoint sched:sched_switch

cat >"$TMP/faults.lua" <<'END'
return { summary = 'page faults', unsupported = { 'event' },
  start = function(opt, out, session)
    local fault = session.event {
      'page-faults', period = 1, exclude_kernel = true, resolve = true,
      sample = not opt.input and { 'regs_user', 'weight' } or nil,
    }
    return { [fault] = function(ev)
      local kept = ev:keep()
      local ip, regs = 'none', session.registers(kept)
      for _, register in ipairs(regs or {}) do
        if register.name == 'RIP' or register.name == 'PC' then ip = tonumber(register.value) end
      end
      local frame = session.address(ev, ev._ip)
      out:printf('%d %d %s %s %d\n', tonumber(ev._addr), ev._period, frame and frame.symbol or '?',
        tostring(ip == 'none' or ip == tonumber(kept._ip)), regs and 1 or 0)
    end }
  end }
END
cat >"$TMP/touch.c" <<'END'
#include <stdio.h>
#include <sys/mman.h>
__attribute__((noinline)) void touch(volatile char *p) { for (int i = 0; i < 64; i++) p[i * 4096] = 1; }
int main(void)
{
	char *p = mmap(NULL, 64 * 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	madvise(p, 64 * 4096, MADV_NOHUGEPAGE);
	fprintf(stderr, "%ld\n", (long)p);
	touch(p);
	return 0;
}
END
gcc -O1 -o "$TMP/touch" "$TMP/touch.c" || exit 1

# The 64 pages that touch() writes to, each as its own address.
pages() { # FILE OF OUTPUT
	local base
	base=$(cat "$TMP/base")
	awk -v base="$base" '$1 >= base && $1 < base + 64 * 4096 { n++; if ($3 == "touch") in_touch++ }
		END { print n + 0, in_touch + 0 }' "$1"
}
check 'a script with its own events' "$PROFSCRIPT" "$TMP/faults.lua" -o "$TMP/out" -- sh -c 'exec "$0" 2>"$1"' "$TMP/touch" "$TMP/base"
expect_line 'all 64 faults have their address and function' '^64 64$' <(pages "$TMP/out")
check 'the registers are those of the fault' awk '$4 != "true" || $5 != 1 { exit 1 }' "$TMP/out"

perf record -q -d -e page-faults:u -c 1 -o "$TMP/data" -- sh -c 'exec "$0" 2>"$1"' "$TMP/touch" "$TMP/base"
check 'the same script on a recording' "$PROFSCRIPT" "$TMP/faults.lua" --input "$TMP/data" -o "$TMP/out2"
expect_line 'recorded addresses' '^64 64$' <(pages "$TMP/out2")
perf record -q -e page-faults:u -c 1 -o "$TMP/plain" -- "$TMP/touch" 2>/dev/null
check_status 'a recording without addresses is refused' 1 "$PROFSCRIPT" "$TMP/faults.lua" --input "$TMP/plain"
expect_line 'and says which field' "no field '_addr'" "$TMP/.check"

# One-liners and filters see these parts too.
"$PROFSCRIPT" exec -e page-faults/_addr==1/ 'count()' -q -- "$TMP/touch" >"$TMP/out" 2>/dev/null
expect_line 'a filter over the address' '^$' <(cat "$TMP/out"; echo)
"$PROFSCRIPT" exec -e cpu-clock -F 200 --exclude-user 'if ev._ip < 2^63 then print "user" end count()' --duration 0.2 >"$TMP/out"
check '--exclude-user samples the kernel only' sh -c '! grep -q user "$0"' "$TMP/out"
"$PROFSCRIPT" exec -e context-switches --period 1 'print(ev._period)' -N 1 >"$TMP/out"
expect_line '--period is that of the event' '^1$' "$TMP/out"

for bad in "{ 'cpu-clock', frequency = 1 }|unknown parameter 'frequency'" "{ 'cpu-clock', freq = '1' }|freq is a string" \
	"{ 'cpu-clock', freq = 1, period = 1 }|period and freq are mutually exclusive" "{ freq = 1 }|no event name" \
	"{ 'cpu-clock', sample = { 'regs' } }|unknown part of a sample 'regs'" "{ 'cpu-clock,page-faults' }|is not a single event" \
	"{ 'sched:sched_switch', sample = { 'weight' } }|sched:sched_switch: sample applies to" "{ 'cpu-cloc' }|unknown event 'cpu-cloc'" \
	"{ 'cpu-clock', resolve = 'dat' }|resolve is true, false or 'data', not 'dat'"; do
	echo "return { summary = 'x', start = function(o, out, session) return { [session.event ${bad%|*}] = print } end }" >"$TMP/bad.lua"
	"$PROFSCRIPT" "$TMP/bad.lua" >"$TMP/out" 2>&1
	expect_line "refused: ${bad%|*}" "${bad##*|}" "$TMP/out"
done
check_status '-F without an event to sample' 2 "$PROFSCRIPT" trace -e sched:sched_switch -F 99

# Group, container and node, as samples have them and as programs count them.
for how in perf bpf; do
	"$PROFSCRIPT" exec -e "raw_syscalls:sys_enter/id==$GETPPID/" 'count(ev._node, ev._container, ev._cgroup)' --capture $how \
		--format csv -- "$TOP/build/workloads/syscalls" 500 2>"$TMP/err" | tail -n +2 | sed 's/^".*",[0-9.]*,//' >"$TMP/of.$how"
	grep -q 'not possible' "$TMP/err" && skip 'group, container and node' "$(head -n 1 "$TMP/err")" && how=perf && break
	expect_line "group, container and node, $how" '^[0-9]+,[^,]+,[0-9]+,500$' "$TMP/of.$how"
done
check 'are the same' cmp "$TMP/of.perf" "$TMP/of.$how"
expect_line 'and conditions' '^500$' <("$PROFSCRIPT" exec -e "raw_syscalls:sys_enter/id==$GETPPID && _container==\"$(
	cut -d, -f2 "$TMP/of.perf")\" && _node==$(cut -d, -f1 "$TMP/of.perf")/" 'count()' --csv -- \
	"$TOP/build/workloads/syscalls" 500 2>/dev/null | tail -n 1 | sed 's/.*,//')

# The control group of the thread, with tracepoints and with clocks.
root=$(awk '$3 == "cgroup2" { print $2; exit }' /proc/self/mounts)
group=$root/profscript-test-$$
if [ -n "$root" ] && mkdir "$group" 2>/dev/null; then
	cat >"$TMP/groups.lua" <<'END'
return { summary = 'groups', start = function(_, out, session)
  local seen = {}
  local function see(ev)
    local line = ev._event .. ' ' .. session.cgroup_name(ev._cgroup)
    if not seen[line] then out:print(line) end
    seen[line] = true
    assert(ev:keep()._cgroup == ev._cgroup)
  end
  return {
    [session.event { 'raw_syscalls:sys_enter', sample = { 'cgroup' } }] = function(ev)
      see(ev)
      assert(ev.id >= 0 and #ev.args == 6)
    end,
    [session.event { 'cpu-clock', freq = 999, sample = { 'cgroup' } }] = see,
  }
end }
END
	for stack in '' -g; do
		# shellcheck disable=SC2086,SC2016
		"$PROFSCRIPT" "$TMP/groups.lua" $stack -- \
			bash -c 'echo $$ >"$1/cgroup.procs"; for i in {1..50000}; do :; done; echo $$ >"$2/cgroup.procs"' \
			_ "$group" "$root" >"$TMP/out" 2>"$TMP/err"
		for event in raw_syscalls:sys_enter cpu-clock; do
			expect_line "$event${stack:+ with stacks} has the group" "^$event /${group##*/}\$" "$TMP/out"
		done
	done
	rmdir "$group"
else
	echo "ok $((++tests_run)) - control groups # SKIP none of version 2 can be made"
fi
