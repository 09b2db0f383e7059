#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only
# kprobes with and without arguments, on a kernel that has them.
. "$(dirname "$0")/../../../lib.sh"
LIST=/sys/kernel/tracing/kprobe_events
[ -w $LIST ] || skip_all "no kprobe_events in tracefs (CONFIG_KPROBE_EVENTS)"
cd "$TOP" || exit 1

# counts NAME REGEX ARGS...: exec with these arguments prints a line that matches
counts() {
	local name=$1 regex=$2
	shift 2
	"$PROFSCRIPT" exec "$@" >"$TMP/out" 2>&1
	expect_line "$name" "$regex" "$TMP/out"
}

nothing_left() {
	cat $LIST >"$TMP/.left"
	result "$([ -s "$TMP/.left" ]; echo $((! $?)))" "$1: nothing stays in kprobe_events" "$TMP/.left"
}

# refused EVENTS REGEX: stderr has this line
refused() {
	expect_line "refused: $1" "$2" <("$PROFSCRIPT" trace -e "$1" -- true 2>&1)
}

getppid='__x64_sys_getppid'
counts 'a function' '^probed +1000$' -e kprobe:$getppid 'count("probed")' -- build/workloads/syscalls 1000
counts 'its returns' '^returned +1000$' -e kretprobe:$getppid 'count("returned")' -- build/workloads/syscalls 1000
counts 'a returned value' '^true +1000$' -e "kretprobe:$getppid(parent=\$retval:s32)" 'count(ev.parent > 1)' \
	-- build/workloads/syscalls 1000
counts 'arguments' '^/proc/version +-100 +1$' \
	-e 'kprobe:do_sys_openat2(dfd=$arg1:s32, file=+0(%si):ustring)' 'count(ev.file, ev.dfd)' -- cat /proc/version
counts 'a filter on them' '^/proc/version +1$' \
	-e 'kprobe:do_sys_openat2(file=+0(%si):ustring)/file ~ "/proc/v*"/' 'count(ev.file)' -- cat /proc/version /proc/uptime
nothing_left 'after a run'

"$PROFSCRIPT" trace -e kprobe:$getppid -e 'kprobe:do_sys_openat2(file=+0(%si):ustring)' --push "$TMP/pushed" \
	-- build/workloads/syscalls 1000 2>"$TMP/sent"
counts 'pulled' '^kprobe:__x64_sys_getppid +1000$' -e "kprobe:$getppid//pull=\"$TMP/pushed\"/" 'count(ev._event)'
counts 'pulled, with the arguments of the sender' '^/[^ ]*/libc.so.6 +1$' \
	-e "kprobe:do_sys_openat2/file ~ \"/*libc.so.6\"/pull=\"$TMP/pushed\"/" 'count(ev.file)'
nothing_left 'after a run that sends'

# An instruction follows the space that the kernel's function tracer needs at the start of a function.
for plus in 5 9; do
	"$PROFSCRIPT" exec -e kprobe:$getppid+$plus 'count("inside")' -- build/workloads/syscalls 1000 && break
done >"$TMP/out" 2>&1
expect_line 'a place inside' '^inside +1000$' "$TMP/out"

if modprobe null_blk irqmode=0 2>"$TMP/err"; then
	# A kernel thread may call it, so all CPUs are traced.
	start exec -e 'kprobe:null_blk:null_queue_rq(hctx=%di),kprobe:null_blk:null_queue_rq' 'count(ev._event)'
	dd if=/dev/zero of=/dev/nullb0 bs=4k count=100 oflag=direct 2>/dev/null
	stop
	expect_line 'functions of a module, with and without arguments' '^kprobe:null_blk:null_queue_rq +200$' "$TMP/out"
	refused kprobe:null_blk:null_queue_rp "no function 'null_queue_rp' in the kernel's module 'null_blk'"
else
	skip 'functions of a module' 'no null_blk'
fi

twice=$(awk '$2 ~ /[tT]/ && !/\[/ { print $3 }' /proc/kallsyms | sort | uniq -d | grep -m 1 '^[a-z_]*$')
refused "kprobe:$twice" "the kernel has [0-9]+ functions '$twice'"
refused kprobe:vfs_raed "no function 'vfs_raed' in the kernel; did you mean 'vfs_read'\?"
refused 'kprobe:vfs_read(a=%zz)' "kprobe:vfs_read: .*: '%zz'"
refused kprobe:exc_int3 '^profscript: .*kprobe:exc_int3: '
refused kretprobe:vfs_read+1 'a return probe takes no offset'
nothing_left 'after refusals'

"$PROFSCRIPT" trace -e 'kprobe:vfs_read(a=%di)' >/dev/null 2>&1 &
tracer=$!
check 'probes exist while they are traced' wait_for 20 grep -q "profscript_${tracer}_" $LIST
kill -KILL $tracer
wait $tracer 2>/dev/null
check 'SIGKILL leaves them' grep -q "profscript_${tracer}_" $LIST
counts 'the next run' '^probed +1000$' -e "kprobe:$getppid(a=%di)" 'count("probed")' -- build/workloads/syscalls 1000
nothing_left 'the next run'

# Nested functions: timers within the function of their softirq, within softirqs.
"$PROFSCRIPT" nested-trace -e irq:softirq_entry,irq:softirq_exit -e timer:timer_expire_entry,timer:timer_expire_exit \
	-e kprobe:run_timer_softirq,kretprobe:run_timer_softirq --impl call-delay --duration 3s >"$TMP/out" 2>"$TMP/err"
expect_line 'softirqs' '^softirq_entry +[0-9]+ +[0-9.]+ ' "$TMP/out"
expect_line 'the function within' '^  \|-run_timer_softirq +[1-9]' "$TMP/out"
expect_line 'timers within that' '^  \|   \|-timer_expire_entry +[1-9]' "$TMP/out"
