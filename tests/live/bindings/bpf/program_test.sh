#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only
# BPF programs of scripts: how they attach, the contents of their maps and records, and the messages if something is
# wrong. What is compiled here is kept for guests, which have no compiler.
# Runs alone.
. "$(dirname "$0")/../../../lib.sh"
export XDG_CACHE_HOME=$TOP/build/cache
here=$TOP/tests/scripts/bpf
# Programs see the whole machine: the workload has its own name.
comm=bpf$$
syscalls=$TMP/$comm
cp "$TOP/build/workloads/syscalls" "$syscalls"
needs_tracepoint syscalls:sys_enter_getppid
"$PROFSCRIPT" --check | grep -q '^ok  BPF filters' || skip_all "$("$PROFSCRIPT" --check | grep '^--  BPF filters')"
command -v clang >/dev/null || [ -d "$XDG_CACHE_HOME/profscript/bpf" ] || skip_all 'no clang to compile BPF programs with'

# program NAME: writes $TMP/NAME.lua. Its C code is read from stdin and follows the includes; START is the code that
# follows loading it, and REST its handlers
program() {
	local name=$1
	{
		echo "return { summary = 'x', start = function(opt, out, session)"
		echo "local program = session.bpf { ${PARAMETERS-} source = [["
		printf '#include <linux/bpf.h>\n#include <bpf/bpf_helpers.h>\n'
		cat
		echo 'char LICENSE[] SEC("license") = "GPL";'
		echo "]] }"
		echo "${START-}"
		echo "return { ${REST-} } end }"
	} >"$TMP/$name.lua"
}

# says NAME STATUS REGEX ARG...: the run prints a matching line and exits with this status
says() {
	local name=$1 status=$2 regex=$3 got
	shift 3
	timeout 30 "$PROFSCRIPT" "$@" >"$TMP/out" 2>&1
	got=$?
	[ $got -eq "$status" ] || echo "exit status $got, expected $status" >>"$TMP/out"
	grep -Eq -- "$regex" "$TMP/out" && [ $got -eq "$status" ] && ! grep -q 'stack traceback' "$TMP/out"
	result $? "$name: $regex" "$TMP/out"
}

# Records --------------------------------------------------------------------------------------------

"$PROFSCRIPT" "$here/records.lua" --comm $comm -m 4096 -- "$syscalls" 10000 >"$TMP/records" 2>&1
expect_line 'records' '^ring	10000	array	10000	tracepoint	10000$' "$TMP/records"
expect_line 'records in order, with all their fields' '^wrong	0	backwards	0$' "$TMP/records"
"$PROFSCRIPT" "$here/records.lua" --comm $comm -m 4096 --every 100 -- "$syscalls" 10000 >"$TMP/records" 2>&1
expect_line 'records that the program selects' '^ring	100	array	100	tracepoint	10000$' "$TMP/records"
expect_line 'records that the program selects' '^wrong	0	backwards	0$' "$TMP/records"

# A map has as many entries as `entries` says.
PARAMETERS='entries = { few = 3 },' START="local few, n = program:map 'few', 0
for i = 1, 5 do if pcall(few.set, few, i, i) then n = n + 1 end end
out:print('kept', n)" program entries <<'C'
struct { __uint(type, BPF_MAP_TYPE_HASH); __uint(max_entries, 1); __type(key, __u32); __type(value, __u32); } few SEC(".maps");
SEC("raw_tp") int nothing(void *ctx) { return 0; }
C
says 'entries' 0 '^kept	3$' "$TMP/entries.lua" --duration 1ms

# Each lost record is reported, of small rings and of a full ring buffer.
"$PROFSCRIPT" "$here/records.lua" --comm $comm -q -m 1 -- "$syscalls" 200000 >"$TMP/records" 2>&1
check 'lost records are counted' awk '$1 == "calls" { calls = $2 } $1 == "ring" { got = $2 + $4 + $6 }
	$1 == "lost" { lost = $2 } END { exit !(calls == 200000 && lost > 0 && got + lost == 3 * calls) }' "$TMP/records"
PARAMETERS="constants = { wanted = '$comm' }," START='program:attach()' \
	REST="[program:events 'ring'] = function(ev) out:print_event(ev) end" program lines <<'C'
struct record { __u64 ktime; __u32 pid; __s64 big; char text[8]; };
struct { __uint(type, BPF_MAP_TYPE_RINGBUF); __uint(max_entries, 4096); __type(value, struct record); } ring SEC(".maps");
const volatile char wanted[16] = {};
SEC("tracepoint/syscalls/sys_enter_getppid")
int once(void *ctx)
{
	char comm[16] = {};
	struct record *r;

	bpf_get_current_comm(comm, sizeof(comm));
	for (int i = 0; i < 16; i++)
		if (comm[i] != wanted[i])
			return 1;
	r = bpf_ringbuf_reserve(&ring, sizeof(*r), 0);
	if (!r)
		return 1;
	r->ktime = bpf_ktime_get_ns();
	r->pid = bpf_get_current_pid_tgid() >> 32;
	r->big = -5000000000;
	__builtin_memcpy(r->text, "a\tb", 4);
	bpf_ringbuf_submit(r, 0);
	return 1;
}
C
says 'a line' 0 '^20.* +[0-9]+ \.{5} \[---\] +[0-9]+\.[0-9]{6}: bpf:ring: ktime=[0-9]+ pid=[0-9]+ big=-5000000000 text=a\\x09b$' \
	"$TMP/lines.lua" -N 1 -- "$syscalls" 1
says 'as JSON' 0 '"event":"bpf:ring".*"big":-5000000000,"text":"a.u0009b"' "$TMP/lines.lua" --format json -N 1 -- "$syscalls" 1

# The path from a record to its handler is compiled.
"$PROFSCRIPT" --lua "$TOP/tests/tools/jitv.lua" "$TMP/report" "$here/count.lua" -- "$syscalls" 300000 >"$TMP/out" 2>&1
expect_line 'records are dispatched by compiled code' '^\[TRACE +[0-9]+ dispatch:[0-9]+ loop\]$' "$TMP/report"
given_up_traces dispatch "$TMP/report" >"$TMP/given_up"
check 'nothing runs in the interpreter' diff /dev/null "$TMP/given_up"

# Programs for guests, which cannot compile; the verifier here checks them too.
"$PROFSCRIPT" "$here/hotplug.lua" --comm $comm -- taskset 1 "$syscalls" 1000 >"$TMP/out" 2>&1
expect_line 'records and perf events by CPU' '^calls	0	1000$' "$TMP/out"
expect_line 'records and perf events by CPU' '^faults	0	[1-9]' "$TMP/out"
timeout 30 "$PROFSCRIPT" "$here/hang.lua" --duration 0.1 >"$TMP/out" 2>&1
if grep -q 'rejects program' "$TMP/out"; then
	skip 'the program that hangs a CPU of guests' 'no bpf_loop() before 5.17'
else
	expect_line 'the program that hangs a CPU of guests' '^hung	0$' "$TMP/out"
fi

# Maps -----------------------------------------------------------------------------------------------

"$PROFSCRIPT" "$here/maps.lua" --comm $comm -- "$syscalls" 1000 >"$TMP/maps" 2>&1
for line in 'hash	even	500	0	1000	-7	5	17' 'hash	odd	500	0	1000	-7	5	17' 'pairs	2	3	true	false' 'taken	3	500	0' 'runs	true' \
	'array	0	1000' 'cleared	0' 'percpu_hash	1000' 'percpu_array	1000' 'percpu_array	5	5' \
	'between CPUs	no CPU 0.5' \
	'lru	-7	0	1000' 'lru_percpu	1000' 'stack	syscall'; do
	expect_line 'maps' "^$line\$" "$TMP/maps"
done
"$PROFSCRIPT" "$here/maps.lua" --comm $comm -C 0 -- "$syscalls" 1000 >"$TMP/maps" 2>&1
expect_line 'a program that runs on CPU 0' '^runs	true$' "$TMP/maps"

# Attaching ------------------------------------------------------------------------------------------

COUNT='__u64 calls;'
BODY='{ __sync_fetch_and_add(&calls, 1); return RETURN; }'
PRINT="stop = function() out:print('calls', program:get 'calls') end"

program_for() {
	REST=$PRINT program "$1" <<<"$COUNT SEC(\"$2\") int count(void *ctx) ${BODY/RETURN/$(( ${3-1} ))}"
}

START="program:attach('count', { type = 'software', config = 'page-faults', sample_period = 1 })" program_for faults perf_event
says 'a perf event by its names' 0 '^calls	[1-9][0-9]+$' "$TMP/faults.lua" --duration 0.5 -- "$syscalls" 1
START="program:attach('count', { config = 'cpu-clock', sample_freq = 1000 })" program_for clock perf_event
says 'a perf event by frequency' 0 '^calls	[1-9][0-9]+$' "$TMP/clock.lua" --duration 0.5
START="program:attach('count', 'uprobe:probed_twice@$TOP/build/workloads/probes')" program_for uprobe uprobe
says 'a uprobe' 0 '^calls	500$' "$TMP/uprobe.lua" -- "$TOP/build/workloads/probes" 500
START="program:attach('count', 'uretprobe:probed_twice@$TOP/build/workloads/probes')" program_for uretprobe uprobe
says 'a uretprobe' 0 '^calls	500$' "$TMP/uretprobe.lua" -- "$TOP/build/workloads/probes" 500
START="program:attach('count', 'usdt:lab:plain@$TOP/build/workloads/probes')" REST=$PRINT program usdt <<C
#include <stdbool.h>
#include <linux/ptrace.h>
#include <bpf/usdt.bpf.h>
$COUNT SEC("usdt") int count(struct pt_regs *ctx) ${BODY/RETURN/0}
C
"$PROFSCRIPT" "$TMP/usdt.lua" -- "$TOP/build/workloads/probes" 1 >"$TMP/out" 2>"$TMP/err"
unavailable $? 'a usdt probe' || says 'a usdt probe' 0 '^calls	500$' "$TMP/usdt.lua" -- "$TOP/build/workloads/probes" 500
START="program:attach('count', 'usdt:plain@$TOP/build/workloads/probes')" program_for plain_usdt usdt
says 'a usdt probe without its provider' 1 'cannot attach program .count. to usdt:plain@' "$TMP/plain_usdt.lua"
for kind in ksyscall kretsyscall; do
	START="program:attach('count', '$kind:getppid')" program_for $kind kprobe 0
	if [ -e /sys/bus/event_source/devices/kprobe ]; then
		says "a $kind" 0 '^calls	[1-9][0-9]*$' "$TMP/$kind.lua" -- "$syscalls" 500
	else
		says "a $kind, on a kernel without kprobes" 1 "cannot attach program 'count' to $kind:getppid: " "$TMP/$kind.lua"
	fi
done
START="program:attach('count', 'raw_tracepoint:sched_process_exec')" program_for raw raw_tp
says 'a raw tracepoint' 0 '^calls	[1-9][0-9]*$' "$TMP/raw.lua" -- /bin/true
START="program:attach('count', 'sched:sched_process_exec'):detach()" program_for detached tracepoint
says 'detached' 0 '^calls	0$' "$TMP/detached.lua" -- /bin/true
START="program:attach 'count'" program_for fentry fentry/do_nanosleep 0
if "$PROFSCRIPT" --check | grep -q '^ok  BPF fentry'; then
	says 'fentry' 0 '^calls	[1-9][0-9]*$' "$TMP/fentry.lua" -- sleep 0.1
else
	says 'fentry is refused' 3 "^profscript: fentry.lua: .* 'count' .*fentry/do_nanosleep.*: Operation not permitted .needs root" \
		"$TMP/fentry.lua" -- sleep 0.1
fi

# An iterator over programs, which also shows that no program is left.
START="out:write(program:iterate 'programs')" REST='' program iterator <<'C'
struct bpf_prog_aux { char name[16]; } __attribute__((preserve_access_index));
struct bpf_prog { struct bpf_prog_aux *aux; } __attribute__((preserve_access_index));
struct bpf_iter_meta { struct seq_file *seq; } __attribute__((preserve_access_index));
struct bpf_iter__bpf_prog { struct bpf_iter_meta *meta; struct bpf_prog *prog; } __attribute__((preserve_access_index));
SEC("iter/bpf_prog")
int programs(struct bpf_iter__bpf_prog *ctx)
{
	struct bpf_prog *prog = ctx->prog;
	char name[18] = {};

	if (!prog)
		return 0;
	bpf_probe_read_kernel_str(name, 16, prog->aux->name);
	for (int i = 0; i < 16; i++)
		if (!name[i]) {
			name[i] = '\n';
			bpf_seq_write(ctx->meta->seq, name, i + 1);
			break;
		}
	return 0;
}
C
says 'an iterator' 0 '^programs$' "$TMP/iterator.lua" --duration 0.1
START='program:attach()' REST="[program:events 'ring'] = function() end" program left_over <<'C'
struct record { __u64 ktime; };
struct { __uint(type, BPF_MAP_TYPE_RINGBUF); __uint(max_entries, 4096); __type(value, struct record); } ring SEC(".maps");
SEC("raw_tp/sys_enter") int left_over_prog(void *ctx) { return 0; }
C
listed() {
	"$PROFSCRIPT" "$TMP/iterator.lua" --duration 0.1 | grep -q '^left_over_prog$'
}
"$PROFSCRIPT" "$TMP/left_over.lua" 2>/dev/null &
killed=$!
check 'a program exists while it runs' wait_for 10 listed
kill -KILL $killed
wait $killed 2>/dev/null
not_listed() { ! listed; }
check 'and gone after SIGKILL' wait_for 10 not_listed
check 'with nothing pinned' test -z "$(ls -A /sys/fs/bpf 2>/dev/null)"

# The example: the stacks of a task that reads in a loop are among those of the moments that it reports.
taskset -c 0 dd if=/dev/zero of=/dev/null bs=1M 2>/dev/null &
reader=$!
"$PROFSCRIPT" "$TOP/examples/high-sys.lua" -C 0 --than 10 >"$TMP/folded" 2>"$TMP/moments" &
# Reading the symbols for the first moment may take a guest so long that it would be interrupted in between.
# shellcheck disable=SC2317 # wait_for calls it
two_moments() { [ "$(grep -c kernel "$TMP/moments")" -ge 2 ]; }
wait_for 60 two_moments
kill -INT $!
wait $!
kill $reader
expect_line 'high-sys.lua: stacks of the moments' ';vfs_read;.* [0-9]+$' "$TMP/folded"
"$PROFSCRIPT" flamegraph - "$TMP/sys.svg" <"$TMP/folded"
expect_line 'high-sys.lua: as a flame graph' 'vfs_read' "$TMP/sys.svg"
sed -i '/: lost /d' "$TMP/moments" # a slow machine loses samples, which are in neither
check 'high-sys.lua: no other stacks' awk '/^CPU 0: [0-9]+ % in the kernel/ { n++; bad += $3 <= 10; sum += $3; next } { bad++ }
	END { exit bad || !n }' "$TMP/moments"
check 'high-sys.lua: all of their samples' [ "$(awk '{ sum += $NF } END { print sum }' "$TMP/folded")" -eq \
	"$(awk '{ sum += $3 } END { print sum }' "$TMP/moments")" ]

# Errors ---------------------------------------------------------------------------------------------

REST='' START='' program unchecked <<'C'
struct { __uint(type, BPF_MAP_TYPE_HASH); __uint(max_entries, 4); __type(key, __u32); __type(value, __u64); } map SEC(".maps");
SEC("raw_tp/sys_enter")
int unchecked(void *ctx)
{
	__u32 key = 0;
	__u64 *value = bpf_map_lookup_elem(&map, &key);

	*value += 1;
	return 0;
}
C
line=$(grep -n '\*value += 1' "$TMP/unchecked.lua" | cut -d: -f1)
says 'verification fails at a line' 1 "^profscript: unchecked.lua: the kernel rejects program 'unchecked' .raw_tp/sys_enter.: .*: at unchecked.lua:$line: \*value \+= 1;" "$TMP/unchecked.lua"
expect_line "with the verifier's message" "invalid mem access 'map_value_or_null'" "$TMP/out"
[ -z "${IN_GUEST-}" ] || exit 0 # the other messages are the same on all kernels
if command -v clang >/dev/null; then
	program syntax <<<'int broken(void { return 0; }'
	says 'invalid C' 1 '^profscript: syntax.lua:5:[0-9]+: error: ' "$TMP/syntax.lua"
fi
RING='struct r { __u64 ktime; __u32 pid; }; struct { __uint(type, BPF_MAP_TYPE_RINGBUF); __uint(max_entries, 4096); __type(value, struct r); } ring SEC(".maps");'
HASH='struct { __uint(type, BPF_MAP_TYPE_HASH); __uint(max_entries, 4); __type(key, __u32); __type(value, __u64); } hash SEC(".maps");'
wrong() {
	local name=$1 regex=$2
	program wrong <<<"$RING $HASH const volatile __u32 limit = 0; __u64 calls; SEC(\"perf_event\") int count(void *ctx) { return limit + calls; }"
	says "$name" 1 "$regex" "$TMP/wrong.lua" --duration 0.1
}
REST="[program:events 'ring'] = function(ev) return ev.pidd end" wrong 'a field' "wrong.lua:[0-9]+: event bpf:ring has no field 'pidd'; did you mean 'pid'\?"
REST="[program:events 'rng'] = function() end" wrong 'a map' "^profscript: wrong.lua: no map 'rng'; did you mean 'ring'\?"
REST="[program:events 'hash'] = function() end" wrong 'a map without records' "^profscript: wrong.lua: map 'hash' is neither a ring buffer nor a perf event array"
REST=''
START="program:map 'ring'" wrong 'a map of records' "^profscript: wrong.lua: map 'ring' contains records"
START="program:map 'hash':get 'x'" wrong 'a key' "^profscript: .*wrong.lua:8: wrong.lua: map hash: expected a uint32_t, not a string"
START="program:get 'cals'" wrong 'a variable' "^profscript: wrong.lua: no variable 'cals' in .bss or .data; did you mean 'calls'\?"
START="program:attach('cont')" wrong 'a program' "^profscript: wrong.lua: no program 'cont'; did you mean 'count'\?"
START="program:attach('count', { config = 'cpu-clok', sample_freq = 1 })" wrong 'an event' "^profscript: wrong.lua: attach count: no such event 'cpu-clok'; did you mean 'cpu-clock'\?"
START="program:attach('count', { config = 'cpu-clock', freqency = 1 })" wrong 'an attribute' "^profscript: wrong.lua: attach count: perf_event_attr has no 'freqency'"
START="program:attach('count', { config = 'cpu-clock' })" wrong 'no period' "^profscript: wrong.lua: attach count: missing sample_period or sample_freq"
START="program:attach('count', 'sched:nothing')" wrong 'a tracepoint' "^profscript: wrong.lua: cannot attach program 'count' to sched:nothing"
START='' PARAMETERS='constants = { limt = 1 },' wrong 'a constant' "^profscript: wrong.lua: no variable 'limt' in .rodata; did you mean 'limit'\?"
START='' PARAMETERS='entries = { cals = 1 },' wrong 'a map' "^profscript: wrong.lua: no map 'cals'"
START='' PARAMETERS='entries = { calls = 0 },' wrong 'a number of entries' "^profscript: .*session.bpf takes numbers of entries \(an integer from 1 to 4294967295\), not 0"
PARAMETERS='sorce = 1,' wrong 'a parameter' "^profscript: .*session.bpf: unknown parameter 'sorce'; did you mean 'source'\?"
says 'a recording' 2 'BPF programs need live events; --input is not supported$' "$TMP/faults.lua" --input "$TOP/tests/recordings/sched.data"
