#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only
# The print formats of this kernel: perf records tracepoints of many kinds, and every line of trace is what perf script
# prints. Left out are those for which libtraceevent is wrong and the kernel's own trace file agrees with us:
# timer:timer_start (flags & (a | b)), block:block_bio_queue (names of classes).
# Runs alone.
. "$(dirname "$0")/../../../lib.sh"
needs_tracepoint sched:sched_switch

events=()
for event in sched:sched_wakeup sched:sched_process_exec sched:sched_process_fork sched:sched_stat_runtime \
	irq:softirq_entry irq:irq_handler_entry timer:timer_expire_entry timer:hrtimer_start timer:tick_stop \
	workqueue:workqueue_queue_work workqueue:workqueue_execute_start kmem:kmalloc kmem:mm_page_alloc \
	rcu:rcu_utilization task:task_newtask signal:signal_generate signal:signal_deliver \
	maple_tree:ma_read block:block_bio_queue ext4:ext4_da_write_begin exceptions:page_fault_user \
	syscalls:sys_enter_openat syscalls:sys_exit_openat; do
	[ -d "/sys/kernel/tracing/events/${event/://}" ] && events+=(-e "$event")
done
perf record -q -m 1024 -a -o "$TMP/data" "${events[@]}" -- sh -c 'ls /usr/include >/dev/null; kill -0 $$
	dd if=/dev/zero of="$0" bs=4k count=20 conv=fsync; sleep 0.02' "$TMP/file" >/dev/null 2>&1
perf script -i "$TMP/data" --ns -G -F +pid 2>/dev/null >"$TMP/peer"
for format in text json csv; do
	"$PROFSCRIPT" trace --input "$TMP/data" --format $format -q >"$TMP/ours"
	check "$(wc -l <"$TMP/peer") events as $format" luajit "$TOP/tests/tools/compare.lua" $format "$TMP/peer" "$TMP/ours"
done
check 'hundreds of events at once' "$PROFSCRIPT" trace -e 'ext4:*,sched:*,kmem:*' --duration 0.1 -o /dev/null
