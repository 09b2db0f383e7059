#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only
# The lines of --json are those that --dry-run=schema describes.
# Only Lua runs here.
. "$(dirname "$0")/../../../lib.sh"
cd "$TMP" || exit 1
mkdir runs

cat >script.lua <<'LUA'
return { summary = 's', start = function(_, out)
  return { ['sched:sched_switch'] = function(ev)
    out:row { 'pid', ev.next_pid, 'wide', 2 ^ 60 + 1ULL }
    out:print(ev.next_comm)
  end }
end }
LUA

names=()
# valid RECORDING ARG...
valid() {
	local n=${#names[@]}
	names+=("${*:2}")
	"$PROFSCRIPT" "${@:2}" --input "$DATA/$1.data" --dry-run=schema >runs/$n.schema 2>/dev/null
	"$PROFSCRIPT" "${@:2}" --input "$DATA/$1.data" --json >runs/$n.json 2>/dev/null
}
wakeups=(-e 'sched:sched_wakeup//key=pid/' -e 'sched:sched_switch//key=next_pid/')
memory=(-e 'kmem:kmalloc//key=ptr/' -e 'kmem:kfree//key=ptr/')
timers=(-e irq:softirq_entry,irq:softirq_exit -e timer:timer_expire_entry,timer:timer_expire_exit)
valid sched trace -e sched:sched_switch,sched:sched_wakeup
valid kmem trace
valid kmemprof trace
valid pipe trace
valid mixed trace
valid nap trace -e raw_syscalls:sys_enter
valid sched multi-trace "${wakeups[@]}" --perins --than 1ms
valid nap multi-trace -e raw_syscalls:sys_enter -e 'raw_syscalls:sys_exit,sched:sched_switch//untraced/' -k common_pid \
	--than 20ms --detail=sametid
valid kmemprof multi-trace "${memory[@]}" --perins
valid kmemprof multi-trace "${memory[@]}" --impl pair
valid kmemprof kmemprof -e 'kmem:kmalloc//size=bytes_alloc/' -e kmem:kfree -k ptr
valid kmem kmemleak --alloc kmem:kmalloc --free kmem:kfree
valid timers nested-trace "${timers[@]}"
valid timers nested-trace "${timers[@]}" --impl call
valid nap syscalls --perins --than 1ms
valid hogs rundelay --perins --than 5ms --detail=samecpu
valid sched task-state --perins
valid sched oncpu
valid kmem top -k ptr
valid kmem num-dist -e kmem:kmalloc//num=bytes_alloc/
valid kmem exec -e kmem:kmalloc 'count(ev.ptr) quantiles(ev.bytes_req, ev.ptr) stats(ev.bytes_req) hist(ev.bytes_alloc)'
valid kmem exec -e kmem:kmalloc 'print(ev.ptr)'
valid kmem expr -e kmem:kmalloc 'ptr'
valid kmem sql -e kmem:kmalloc --query 'SELECT ptr, count(*), 1.5 FROM kmalloc GROUP BY 1; SELECT 1 << 62'
valid lost event-lost
valid migrate sched-migrate --detail
valid signal signal
valid sched script.lua

/usr/bin/python3 "$TOP/tests/tools/schemas.py" runs >valid 2>&1
for n in "${!names[@]}"; do
	grep -qE "^$n [1-9][0-9]*$" valid
	result $? "${names[n]}" valid
done

"$PROFSCRIPT" top -k ptr --query 'SELECT * FROM top' --dry-run=schema --input "$DATA/kmem.data" >out 2>err
check 'another result has another schema' test $? -eq 2
