// SPDX-License-Identifier: GPL-2.0-only
/* Adds up how long tasks are in each state. A state is counted when it ends, by the rules of
 * scripts/profilers/task-state.lua. The scheduler's locks order the events of a task, so its word
 * needs no atomic access. There are two sides of the sums: one can be read while the other one is
 * written. The sums of a CPU are only written with its interrupts disabled. */
#include "targets.h"
#include "waits.h"
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_tracing.h>

/* As in scripts/lib/task_states.lua. */
enum state { UNKNOWN, ON_CPU, SLEEP, BLOCKED, STOPPED, TRACED, IDLE, PARKED, QUEUED, STATES = 8 };

/* The kernel's bits, which are the same since Linux 4.14. */
enum {
	TASK_INTERRUPTIBLE = 0x01,
	TASK_UNINTERRUPTIBLE = 0x02,
	TASK_STOPPED = 0x04,
	TASK_TRACED = 0x08,
	TASK_PARKED = 0x40,
	TASK_REPORT = 0x7f,
	TASK_REPORT_IDLE = 0x80,
	TASK_REPORT_MAX = 0x100,
	TASK_IDLE = 0x402
};

const volatile __u32 only = 0;	     /* bits of the states that are counted; 0: all */
const volatile __u8 omits_sleep = 0; /* S is not counted */
const volatile __u8 by_thread = 0;
const volatile __u8 has_prev_state = 0;	  /* the tracepoint has it as an argument */
const volatile __u8 idle_with_flags = 0;  /* an idle task may have other bits, too */
const volatile __u32 uninterruptible = 0; /* further bits that are reported as D */

enum { NAME = 16, BUCKETS = 58 * 64 /* HIST_BUCKETS of native/hist.h */ };

/* struct hist_sums of native/hist.h */
struct sums {
	__u64 count, sum, not_min, max, over, failed, negative;
};

struct cell {
	struct sums sums;
	__u64 buckets[BUCKETS];
};

/* By side and state; with by_thread, of the threads for which there is no row. */
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 2 * STATES);
	__type(key, __u32);
	__type(value, struct cell);
} cells SEC(".maps");

struct row {
	__u32 tid;
	__u16 state;
	__u16 bucket; /* 0 in the maps of sums */
};

struct row_sums {
	struct sums sums;
	char comm[NAME]; /* of the thread, when its row was made */
};

/* The maps of rows are made larger where they are needed. */
struct rows {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1);
	__type(key, struct row);
	__type(value, struct row_sums);
} rows_0 SEC(".maps"), rows_1 SEC(".maps");

struct buckets {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1);
	__type(key, struct row);
	__type(value, __u64);
} buckets_0 SEC(".maps"), buckets_1 SEC(".maps");

/* Most times are added to the table of a CPU, which costs much less than two hashes. A row is in
 * the table from its second time on; the first one makes the row in the hash, which has the name.
 */
enum { TABLE_ROWS = 2048, TABLE_BUCKETS = 8192, NEAR_BUCKETS = 128, PROBES = 8 };

struct table_row {
	__u64 key; /* struct row; 0: free */
	struct sums sums;
};

struct table {
	struct table_row rows[TABLE_ROWS];
	struct {
		__u64 key, count;
	} buckets[TABLE_BUCKETS];
};

/* By CPU and side. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct table);
} tables SEC(".maps");

/* By thread: the time when its state began, and the state in the last STATE_BITS. */
enum { STATE_BITS = 4, STATE_MASK = (1 << STATE_BITS) - 1 };

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, __u64);
} tasks SEC(".maps");

/* The state in which a target was at the start, if it was neither running nor waiting for a CPU. */
struct bytes first_states SEC(".maps");

__u8 side;
__u64 unreported_switches, unreported_wakeups;

/* By the first bits of 0x03f79d71b4cb0a89 times a number whose bits are all set up to bit b, which
 * are different for each b: by how much a value with this leading bit is shifted to get 7 bits. */
static const __u8 shifts[64] = {
	0,  41, 0,  50, 42, 21, 0,  54, 51, 43, 35, 31, 22, 10, 0,  55, 48, 52, 29, 46, 44, 36,
	15, 38, 32, 26, 23, 17, 11, 5,	0,  56, 40, 49, 20, 53, 34, 30, 9,  47, 28, 45, 14, 37,
	25, 16, 4,  39, 19, 33, 8,  27, 13, 24, 3,  18, 7,  12, 2,  6,	1,  0,	0,  57,
};

/* Without jumps, because the verifier follows each path. */
static __always_inline __u64 bucket_of(__u64 ns)
{
	__u64 bits = ns, shift;

	bits |= bits >> 1;
	bits |= bits >> 2;
	bits |= bits >> 4;
	bits |= bits >> 8;
	bits |= bits >> 16;
	bits |= bits >> 32;
	shift = shifts[bits * 0x03f79d71b4cb0a89 >> 58];
	return shift * 64 + (ns >> shift);
}

static __always_inline struct row_sums *find_row(void *rows, const struct row *row,
						 const struct task_struct *task)
{
	struct row_sums *found = bpf_map_lookup_elem(rows, row), none = {};

	if (found)
		return found;
	bpf_core_read_str(none.comm, sizeof(none.comm), &task->comm);
	bpf_map_update_elem(rows, row, &none, BPF_NOEXIST);
	return bpf_map_lookup_elem(rows, row);
}

static __always_inline __u64 *find_bucket(void *buckets, const struct row *row)
{
	__u64 *found = bpf_map_lookup_elem(buckets, row), none = 0;

	if (found)
		return found;
	bpf_map_update_elem(buckets, row, &none, BPF_NOEXIST);
	return bpf_map_lookup_elem(buckets, row);
}

static __always_inline void add_sums(struct sums *sums, __u64 ns)
{
	sums->count++;
	sums->sum += ns;
	if (~ns > sums->not_min)
		sums->not_min = ~ns;
	if (ns > sums->max)
		sums->max = ns;
	if (sends_waits && ns > than)
		sums->over++;
}

static __always_inline __u64 key_of(const struct row *row)
{
	return *(const __u64 *)row;
}

static __always_inline __u64 hash_of(__u64 key)
{
	return key * 0x9e3779b97f4a7c15;
}

/* Returns the first place to look at, and the distance of the next ones. The caller adds an offset,
 * so what is used together is in the same cache lines and pages, wherever there is room. */
static __always_inline __u32 place_of(__u64 hash, __u32 *step)
{
	*step = hash >> 16 | 1;
	return hash >> 40;
}

/* Returns NULL if the table does not have the row: then *place is where it can be, or NULL. */
static __always_inline struct sums *table_row(struct table *table, const struct row *key_row,
					      struct table_row **place)
{
	__u64 key = key_of(key_row);
	__u32 step, at = place_of(hash_of(key_row->tid), &step) + key_row->state;

#pragma unroll
	for (int i = 0; i < PROBES; i++, at += step) {
		struct table_row *row = &table->rows[at & (TABLE_ROWS - 1)];

		if (row->key == key)
			return &row->sums;
		if (!row->key) {
			*place = row;
			return NULL;
		}
	}
	return NULL;
}

/* Returns NULL if there is no room. */
static __always_inline __u64 *table_bucket(struct table *table, struct row row, __u16 bucket)
{
	__u32 step, at = place_of(hash_of(key_of(&row)), &step) + bucket % NEAR_BUCKETS;
	__u64 key;

	row.bucket = bucket;
	key = key_of(&row);

#pragma unroll
	for (int i = 0; i < PROBES; i++, at += step) {
		__u32 place = at & (TABLE_BUCKETS - 1);

		if (!table->buckets[place].key)
			table->buckets[place].key = key;
		if (table->buckets[place].key == key)
			return &table->buckets[place].count;
	}
	return NULL;
}

/* Returns false if there is no room for the row or its bucket. */
static __always_inline bool add_to_hash(__u8 to, const struct task_struct *task, struct row row,
					__u64 ns, __u16 bucket)
{
	void *rows = to ? (void *)&rows_1 : (void *)&rows_0;
	void *buckets = to ? (void *)&buckets_1 : (void *)&buckets_0;
	struct row_sums *found;
	__u64 *count;

	row.bucket = 0;
	found = find_row(rows, &row, task);
	row.bucket = bucket;
	count = found ? find_bucket(buckets, &row) : NULL;
	if (!count)
		return false;
	add_sums(&found->sums, ns);
	++*count;
	return true;
}

static __always_inline bool add_to_row(__u8 to, const struct task_struct *task, enum state state,
				       __u64 ns, __u16 bucket)
{
	__u32 index = bpf_get_smp_processor_id() * 2 + (to ? 1 : 0);
	struct table *table = bpf_map_lookup_elem(&tables, &index);
	struct row row = {.tid = task->pid, .state = state};
	struct table_row *place = NULL;
	__u64 key = key_of(&row), *count;
	struct sums *sums;

	if (table) {
		sums = table_row(table, &row, &place);
		count = sums ? table_bucket(table, row, bucket) : NULL;
		if (count) {
			add_sums(sums, ns);
			++*count;
			return true;
		}
	}
	if (!add_to_hash(to, task, row, ns, bucket))
		return false;
	if (place)
		place->key = key;
	return true;
}

/* Returns how long a state has lasted. */
static __always_inline __u64 time_of(__u64 word, __u64 now)
{
	__u64 since = word >> STATE_BITS;

	return now > since ? now - since : 0;
}

static __always_inline void add(const struct task_struct *task, enum state state, __u64 word,
				__u64 now)
{
	const __u8 to = *(volatile __u8 *)&side;
	__u64 ns = time_of(word, now), bucket = bucket_of(ns);
	__u32 index = (to ? STATES : 0) + state - 1;
	struct cell *cell;

	if (omits_sleep && state == SLEEP)
		return;
	if (by_thread && add_to_row(to, task, state, ns, bucket))
		return;
	cell = bpf_map_lookup_elem(&cells, &index);
	barrier_var(bucket); /* so that the same register is compared and used */
	if (!cell || bucket >= BUCKETS)
		return;
	add_sums(&cell->sums, ns);
	cell->buckets[bucket]++;
}

/* Returns what the kernel's tracepoint reports as prev_state. */
static __always_inline __u32 reported_state(bool preempt, const struct task_struct *task,
					    __u32 state)
{
	if (preempt)
		return TASK_REPORT_MAX;
	if (state & uninterruptible)
		return TASK_UNINTERRUPTIBLE;
	if ((idle_with_flags ? state & TASK_IDLE : state) == TASK_IDLE)
		return TASK_REPORT_IDLE;
	state = (state | task->exit_state) & TASK_REPORT;
	state |= state >> 1;
	state |= state >> 2;
	state |= state >> 4;
	return state - (state >> 1); /* the highest bit */
}

/* Returns the state of a task that leaves its CPU; UNKNOWN if it has ended. */
static __always_inline enum state state_of(__u32 reported)
{
	switch (reported) {
	case 0:
	case TASK_REPORT_MAX:
		return QUEUED;
	case TASK_INTERRUPTIBLE:
		return SLEEP;
	case TASK_UNINTERRUPTIBLE:
		return BLOCKED;
	case TASK_STOPPED:
		return STOPPED;
	case TASK_TRACED:
		return TRACED;
	case TASK_PARKED:
		return PARKED;
	case TASK_REPORT_IDLE:
		return IDLE;
	default:
		return UNKNOWN;
	}
}

static __always_inline __u64 word_of(enum state state, __u64 now)
{
	return now << STATE_BITS | state;
}

static __always_inline void count(__u64 *events)
{
	__sync_fetch_and_add(events, 1);
}

static __always_inline __u64 *word_of_task(const struct task_struct *task)
{
	__u32 tid = task->pid;

	return tid ? bpf_map_lookup_elem(&tasks, &tid) : NULL;
}

/* Returns the word of a task, NULL if the task does not count. What a target was in at the start is
 * known by its first event: first, or UNKNOWN if it was in a state that ends with a wakeup. */
static __always_inline __u64 *word_at(const struct task_struct *task, enum state first)
{
	__u32 tid = task->pid;
	__u64 *word = word_of_task(task);
	__u8 *mark, *state;

	if (!word || !has_targets)
		return word;
	mark = byte_of(&marks, tid);
	if (!mark || !*mark)
		return NULL;
	if (*mark == MARKED) {
		*mark = SEEN;
		state = first ? NULL : byte_of(&first_states, tid);
		if (first ? !only : state && *state)
			*word = word_of(first ? first : *state, begun);
	}
	return word;
}

/* The current event. */
struct event {
	void *ctx;
	enum kind kind;
	__u64 now;
	struct wait *wait; /* with sends_waits, its last event is this one */
};

/* Ends a wait: sends it if it took too long, and counts it. What cannot be sent does not count. */
static __always_inline void end_wait(struct event *event, const struct task_struct *task,
				     enum state state, __u64 word)
{
	__u64 ns = time_of(word, event->now);

	if (sends_waits && ns > than && !(omits_sleep && state == SLEEP) &&
	    !send_wait(event->ctx, event->kind, event->wait, task->pid, state, word, ns))
		return;
	add(task, state, word, event->now);
}

/* Begins a state of a thread. */
static __always_inline void begin(const struct event *event, const struct task_struct *task,
				  __u64 *word, enum state state)
{
	*word = word_of(state, event->now);
	if (sends_waits)
		keep(task->pid, *word, event->kind, &event->wait->last);
}

static __always_inline void leaves(const struct event *event, const struct task_struct *task,
				   enum state next)
{
	__u64 *word = word_at(task, ON_CPU), now = event->now;
	enum state state;

	if (!word)
		return;
	state = *word & STATE_MASK;
	if (state == ON_CPU)
		add(task, ON_CPU, *word, now);
	else if (state)
		count(only ? &unreported_wakeups : &unreported_switches);
	*word = 0;
	if (next)
		begin(event, task, word, next);
}

static __always_inline void enters(struct event *event, const struct task_struct *task)
{
	__u64 *word = word_at(task, QUEUED);
	enum state state;

	if (!word)
		return;
	state = *word & STATE_MASK;
	if (state == ON_CPU)
		count(&unreported_switches);
	else if (state)
		end_wait(event, task, state, *word);
	if (state && state != ON_CPU && state != QUEUED)
		count(&unreported_wakeups);
	*word = word_of(ON_CPU, event->now);
}

SEC("tp_btf/sched_switch")
int BPF_PROG(on_switch, bool preempt, struct task_struct *prev, struct task_struct *next)
{
	struct wait wait;
	struct event event = {.ctx = ctx, .kind = SWITCH, .wait = &wait};
	enum state state;
	__u32 bits;

	if (!begun || !(is_target(prev->pid) || is_target(next->pid)))
		return 0;
	if (has_prev_state)
		bits = *(volatile __u64 *)(ctx + 3);
	else if (bpf_core_field_exists(prev->__state))
		bits = prev->__state;
	else
		bits = ((struct task_struct___before_5_14 *)prev)->state;
	bits = reported_state(preempt, prev, bits);
	state = state_of(bits);
	if (sends_waits && !state)
		forget(prev->pid);
	if (only && !(only >> state & 1))
		return 0;
	event.now = bpf_ktime_get_ns();
	if (event.now >= ended)
		return 0;
	if (sends_waits)
		write_switch(&wait.last, prev, next, bits);
	leaves(&event, prev, state);
	if (!only)
		enters(&event, next);
	return 0;
}

SEC("tp_btf/sched_wakeup")
int BPF_PROG(on_wakeup, struct task_struct *task)
{
	struct wait wait;
	struct event event = {.ctx = ctx, .kind = WAKEUP, .wait = &wait};
	enum state state;
	__u64 *word;

	if (!begun)
		return 0;
	word = word_at(task, UNKNOWN);
	if (!word)
		return 0;
	state = *word & STATE_MASK;
	if (state == ON_CPU || state == QUEUED || (only && !state))
		return 0;
	event.now = bpf_ktime_get_ns();
	if (event.now >= ended)
		return 0;
	if (sends_waits)
		write_wakeup(&wait.last, wakeup_type, task);
	if (state)
		end_wait(&event, task, state, *word);
	if (only)
		*word = 0;
	else
		begin(&event, task, word, QUEUED);
	return 0;
}

SEC("tp_btf/sched_wakeup_new")
int BPF_PROG(on_new, struct task_struct *task)
{
	struct wait wait;
	struct event event = {.kind = NEW, .now = bpf_ktime_get_ns(), .wait = &wait};
	bool is_ours = on_new_thread(task->pid);
	__u64 *word = word_of_task(task);

	if (!begun || !word || event.now >= ended)
		return 0;
	*word = 0;
	if (only || !is_ours)
		return 0;
	if (sends_waits)
		write_wakeup(&wait.last, new_type, task);
	begin(&event, task, word, QUEUED);
	return 0;
}

/* Where only some states are counted, a task is not seen to run after them. */
SEC("tp_btf/sched_process_exit")
int BPF_PROG(on_exit, struct task_struct *task)
{
	__u64 *word = word_of_task(task);

	if (only && word && *word) {
		count(&unreported_wakeups);
		*word = 0;
	}
	return 0;
}

/* When this has run on a CPU, no program there writes to the side before. */
SEC("raw_tp")
int settle(void *ctx)
{
	return 0;
}

char LICENSE[] SEC("license") = "GPL";
