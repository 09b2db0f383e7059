/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The records that profscript adds to perf's pipe format when it sends events to another host. They
 * travel as PERF_RECORD_HEADER_EVENT_TYPE, which perf ignores: a perf_event_header, a tag of eight
 * characters, and the body that the tag names. All numbers are little-endian. A receiver must skip
 * tags that it does not know and bytes that follow a body.
 *
 * A stream is the header of perf's pipe format, then HELLO, PAIR, and groups. A group is GROUP,
 * records of the kernel in time order, and PERF_RECORD_FINISHED_ROUND; the two may be inside
 * PERF_RECORD_COMPRESSED, GROUP is not. PAIR, PTP, PONG and KSYMS stand between groups.
 */
#pragma once
#include <stdint.h>
#include <string.h>
#include <linux/perf_event.h>

enum {
	WIRE_RECORD = 65, /* PERF_RECORD_HEADER_EVENT_TYPE */
	WIRE_TAG = 8,	  /* bytes of a tag, without a terminating 0 */
	WIRE_VERSION = 1
};

#define WIRE_HELLO "PSHELLO1"
#define WIRE_GROUP "PSGROUP1"
#define WIRE_PAIR  "PSPAIR01"
#define WIRE_PTP   "PSPTP001"
#define WIRE_PONG  "PSPONG01"
#define WIRE_KSYMS "PSKSYM01"
#define WIRE_BYE   "PSBYE001"
#define WIRE_PING  "PSPING01" /* from the receiver: not a record, see struct wire_ping */

/* All own records start with this. */
struct wire_head {
	struct perf_event_header header; /* type is WIRE_RECORD */
	char tag[WIRE_TAG];
};

/* size: of the whole record. */
static inline struct wire_head wire_head(const char *tag, uint16_t size)
{
	struct wire_head head = {.header = {.type = WIRE_RECORD, .size = size}};

	memcpy(head.tag, tag, WIRE_TAG);
	return head;
}

enum wire_flags {
	WIRE_ORDERED = 1,	/* times are ordered, groups follow */
	WIRE_PONGS = 2,		/* pings are answered */
	WIRE_ZSTD = 4,		/* groups are compressed */
	WIRE_CLOCK_SHIFTED = 8, /* times are of a converted clock, and shifted by clock_offset */
	WIRE_CYCLES = 16	/* times are cycles of about tsc_khz, not ns */
};

/* The first own record, at each connect. */
struct wire_hello {
	struct wire_head head;
	uint32_t version;
	uint32_t flags; /* enum wire_flags */
	uint8_t boot_id[16], machine_id[16];
	uint64_t epoch;	  /* random, per start of the sender */
	uint64_t tsc_khz; /* 0: unknown */
	uint32_t clockid; /* of the records' times; UINT32_MAX: it has none */
	uint32_t nr_cpus;
	int64_t clock_offset; /* in units of the times; 0 without WIRE_CLOCK_SHIFTED */
	char hostname[64];    /* terminated by 0 */
};

/* Stands before each group. An empty group is a heart-beat. */
struct wire_group {
	struct wire_head head;
	uint64_t seq;		 /* 0, 1, ... in an epoch; a gap: groups were dropped */
	uint64_t first_time;	 /* no record of the group is older */
	uint64_t last_time;	 /* nothing older than this comes after the group */
	uint32_t events;	 /* samples and other records that are events */
	uint32_t unknown_before; /* losses of unknown size in the epoch before this group */
	uint64_t events_before;	 /* events of the epoch before this group, sent or dropped */
	uint64_t lost_before;	 /* records that the kernel lost in the epoch before this group */
};

/* Clocks of the sender, read together: at the start and each second. */
struct wire_pair {
	struct wire_head head;
	uint64_t tsc;
	uint64_t clock; /* of the records' times, shifted as they are, ns */
	uint64_t mono;	/* CLOCK_MONOTONIC */
	uint64_t real;	/* CLOCK_REALTIME */
	uint32_t read_error_ns;
	uint32_t real_error_us; /* of CLOCK_REALTIME; UINT32_MAX: unknown */
};

/* What KVM's PTP clock tells a guest: clocks of the sender, and of its host. Like a pair, at the
 * start and each second. */
struct wire_ptp {
	struct wire_head head;
	uint64_t clock;	    /* of the records' times, shifted as they are */
	uint64_t mono;	    /* CLOCK_MONOTONIC of the sender */
	uint64_t host_real; /* CLOCK_REALTIME of its host, give or take the error */
	uint32_t error_ns;
	uint32_t zero;
};

/* What a receiver may send on a channel that goes both ways. */
struct wire_ping {
	char tag[WIRE_TAG];
	uint64_t seq;
	uint64_t tsc; /* when it was sent, the receiver's */
};

/* The answer to a ping. It does not wait for groups that were not yet sent. */
struct wire_pong {
	struct wire_head head;
	uint64_t seq, asked_tsc; /* the ping's */
	uint64_t received_tsc, sent_tsc;
	uint64_t received_mono, sent_mono;
};

/* A piece of the sender's kernel symbols, as text of /proc/kallsyms, padded with newlines. The last
 * piece is empty. */
struct wire_ksyms {
	struct wire_head head;
	char text[];
};

/* The sender ends in an orderly way; nothing follows. An end without it is a broken link. */
struct wire_bye {
	struct wire_head head;
};

_Static_assert(sizeof(struct wire_hello) == 152, "layout of the wire");
_Static_assert(sizeof(struct wire_group) == 64, "layout of the wire");
_Static_assert(sizeof(struct wire_pair) == 56, "layout of the wire");
_Static_assert(sizeof(struct wire_ptp) == 48, "layout of the wire");
_Static_assert(sizeof(struct wire_ping) == 24, "layout of the wire");
_Static_assert(sizeof(struct wire_pong) == 64, "layout of the wire");
