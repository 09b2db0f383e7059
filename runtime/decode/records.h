/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Records: what the kernel reports besides samples, as events with fields. A record becomes one of
 * these structs, followed by its texts, so that all that reads the payload of a tracepoint reads
 * it too: a text is a word as __data_loc has it, length << 16 | offset.
 */
#pragma once
#include <stdbool.h>
#include <stdint.h>

struct event;
struct perf_event_attr;
struct perf_event_header;
struct records;

enum record_kind {
	RECORD_NONE,
	RECORD_KSYMBOL,
	RECORD_BPF_EVENT,
	RECORD_CGROUP,
	RECORD_TEXT_POKE,
	RECORD_NAMESPACES,
	RECORD_COMM,
	RECORD_FORK,
	RECORD_EXIT,
	RECORD_MMAP,
	RECORD_KINDS
};

struct record_ksymbol {
	uint64_t addr;
	uint32_t len;
	uint16_t ksym_type, flags;
	uint32_t name;
};

struct record_bpf_event {
	uint16_t type, flags;
	uint32_t id;
	uint32_t tag; /* in hexadecimal */
};

struct record_cgroup {
	uint64_t id;
	uint32_t path;
};

struct record_text_poke {
	uint64_t addr;
	uint16_t old_len, new_len;
	uint32_t old_bytes, new_bytes; /* in hexadecimal */
};

/* Of each kind of namespace, in the order of the kernel's: device and inode. */
struct record_namespaces {
	uint32_t pid, tid;
	uint64_t nr;
	uint64_t net_dev, net, uts_dev, uts, ipc_dev, ipc, pid_dev, pid_ns, user_dev, user, mnt_dev,
		mnt, cgroup_dev, cgroup;
};

struct record_comm {
	uint32_t pid, tid;
	uint32_t comm;
	uint32_t exec; /* 1: by execve() */
};

struct record_task {
	uint32_t pid, ppid, tid, ptid;
};

struct record_mmap {
	uint32_t pid, tid;
	uint64_t addr, len, pgoff;
	uint32_t filename;
};

/* Has the kernel report records of this kind to an event. */
void records_ask(struct perf_event_attr *attr, enum record_kind kind);
/* Whether an event was told of records of this kind. */
bool records_are_asked(const struct perf_event_attr *attr, enum record_kind kind);
/* The types of record of a kind, 0-ended. */
const uint32_t *records_types(enum record_kind kind);
/* Whether this kernel has records of this kind and gives them to this user. 0, or a negative errno.
 */
int records_support(enum record_kind kind);

struct records *records_new(void);
void records_free(struct records *r);
/* Forgets the payloads that it has made. */
void records_begin_batch(struct records *r);
/* Turns the event's payload, a record behind its header, into the struct of its kind. False: the
 * record is none of these, or lies, or there is no memory. */
bool records_event(struct records *r, const struct perf_event_header *rec, struct event *ev);
