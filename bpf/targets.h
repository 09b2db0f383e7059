/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The threads that a program is about, where a run names some, and the time in which it is. The
 * session marks those of the start, on_new_thread() the threads that these create: at their first
 * wakeup, which is before they run and which also threads have that the kernel creates for a
 * program. The rules are those of scripts/lib/threads.lua.
 */
#pragma once
#include <stdbool.h>
#include "kernel.h"
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

const volatile __u8 has_targets = 0;
const volatile __u8 inherits = 0;

/* SEEN: it has been seen since the start, or it was created then. */
enum mark { NO_TARGET, MARKED, SEEN };

/* A byte for each thread. It is made larger where it is needed. */
struct bytes {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, __u64);
} marks SEC(".maps");

/* On CLOCK_MONOTONIC. With targets the session sets begun, right before a workload starts. */
__u64 begun;	     /* 0: not yet */
__u64 ended = ~0ULL; /* not before now */

/* Returns NULL if there is none. */
static __always_inline __u8 *byte_of(void *bytes, __u32 tid)
{
	__u32 index = tid / sizeof(__u64);
	__u8 *found = bpf_map_lookup_elem(bytes, &index);

	if (!found || !tid)
		return NULL;
	barrier_var(found); /* so that nothing is added before it is compared */
	return found + tid % sizeof(__u64);
}

/* Also all threads if a run names none. */
static __always_inline bool is_target(__u32 tid)
{
	__u8 *mark;

	if (!has_targets)
		return true;
	mark = begun ? byte_of(&marks, tid) : NULL;
	return mark && *mark;
}

/* Marks a new thread if its creator, the current one, is a target. A reused id may no longer belong
 * to one. Returns whether it is a target. */
static __always_inline bool on_new_thread(__u32 tid)
{
	__u8 *mark, *creator;

	if (!has_targets)
		return true;
	mark = byte_of(&marks, tid);
	creator = inherits ? byte_of(&marks, bpf_get_current_pid_tgid()) : NULL;
	if (!mark)
		return false;
	if (creator && *creator)
		*mark = begun ? SEEN : MARKED;
	else if (*mark)
		*mark = NO_TARGET;
	return *mark;
}
