/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What the kernel reports besides samples, as events with fields. A record becomes one of these
 * structs, followed by its texts, so everything that reads the payload of a tracepoint can read it:
 * a text is a word as in __data_loc, length << 16 | offset.
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
	uint32_t tag; /* hexadecimal */
};

struct record_cgroup {
	uint64_t id;
	uint32_t path;
};

struct record_text_poke {
	uint64_t addr;
	uint16_t old_len, new_len;
	uint32_t old_bytes, new_bytes; /* hexadecimal */
};

/* Device and inode of each kind of namespace, in the kernel's order. */
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

/* Makes the kernel report records of this kind to an event. */
void records_ask(struct perf_event_attr *attr, enum record_kind kind);
/* Returns whether records of this kind are reported to an event. */
bool records_are_asked(const struct perf_event_attr *attr, enum record_kind kind);
/* Returns the types of record of a kind; 0 ends the list. */
const uint32_t *records_types(enum record_kind kind);
/* Returns where the path in the body of a record MMAP or MMAP2 begins; the body may end before.
 * Linux before 3.16 has no protection and flags before it in MMAP2. */
uint32_t records_mmap_path(uint32_t type, const uint8_t *payload, uint32_t size);
/* Checks whether this kernel reports records of this kind to this user. Returns 0 or a negative
 * errno. */
int records_support(enum record_kind kind);

struct records *records_new(void);
void records_free(struct records *r);
/* Frees the payloads that were made for the last batch. */
void records_begin_batch(struct records *r);
/* Turns the event's payload, the body of a record, into the struct of its kind. Returns false if
 * the record is none of these, if it is malformed, or without memory. */
bool records_event(struct records *r, const struct perf_event_header *rec, struct event *ev);
