/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Rings that generated BPF programs write (bpf/gen/capture.lua), as rings of the merge.
 * They are the elements of one mapped array, one per possible CPU, and laid out like the kernel's:
 * a page with a head and a tail, then the data, and a margin into which the last record may go on.
 * Records are samples and losses as the kernel writes them.
 *
 * A program writes only to the ring of its CPU. An interrupt's program may come in between, so
 * space is reserved atomically, and the head moves when the outermost program has written its
 * record.
 *
 * Overwritten rings are written backward, like the kernel's. Nobody reads them until they are
 * paused: programs count themselves in NEST, then look at PAUSED, each in one atomic step. So when
 * PAUSED is set and NEST is 0, no program is writing, and none will. Only then the head is set.
 */
#pragma once
#include <stdbool.h>
#include <stdint.h>
#include "event_request.h"

struct capture_rings;
struct cpus;
struct decoder;
struct error;
struct merge;
struct source_account;

/* Layout of a ring. The words are those of perf_event_mmap_page where it has them, and all on one
 * cache line. */
enum {
	CAPTURE_HEAD = 1024, /* all before it is written */
	CAPTURE_TAIL = 1032, /* all before it is read */
	CAPTURE_TOLD = 1040, /* losses that records have told so far */
	CAPTURE_WAKE = 1048, /* the reader is woken when this is reserved */
	CAPTURE_LOST = 1056, /* records that did not fit */
	CAPTURE_NEST = 1064, /* programs that are running */
	CAPTURE_RESERVED = 1072,
	CAPTURE_ENABLED = 1080, /* a bit for each event */
	CAPTURE_EARLY = 1088,	/* ns: when the reader may be woken before that much is reserved */
	/* In an overwritten ring, instead of the tail and the mark at which the reader is woken: */
	CAPTURE_START = CAPTURE_TAIL,  /* what was reserved before the outermost program */
	CAPTURE_PAUSED = CAPTURE_WAKE, /* not 0: records are lost */
	CAPTURE_DATA = 4096,
	CAPTURE_MARGIN = 4096 /* also what stays free for programs that interrupt each other */
};

/* Returns an id that no other event of this kernel has or will have; 0 with a message. */
uint64_t capture_new_id(struct error *err);

/* Maps the rings of the captured events among the requests, for those of the CPUs that are
 * possible, and adds the events to the decoder. The requests must outlive it. Returns 0, with
 * *rings NULL if no event is captured, or a negative errno with a message. */
int capture_rings_open(const struct event_request *requests, uint32_t n, const struct cpus *cpus,
		       struct decoder *decoder, struct capture_rings **rings, struct error *err);
/* Call this after the merge has freed the rings. */
void capture_rings_close(struct capture_rings *c);
uint32_t capture_rings_nr(const struct capture_rings *c);
/* Adds ring i to the merge, which then owns it. Returns 0 or -ENOMEM. */
int capture_rings_add(struct capture_rings *c, uint32_t i, struct merge *merge,
		      const struct decoder *decoder);
/* Returns the descriptor that is readable when a ring has reached its watermark. */
int capture_rings_fd(const struct capture_rings *c);
/* Makes it unreadable again. Returns whether it may have been for a single record. */
bool capture_rings_answer(struct capture_rings *c);
void capture_rings_enable(struct capture_rings *c);
/* Stops programs from writing to overwritten rings, or lets them continue. Records are lost
 * meanwhile. When it returns, no program is writing any more. */
void capture_rings_pause(struct capture_rings *c, bool paused);
/* Ends the events. When it returns, no program is writing any more. */
void capture_rings_stop(struct capture_rings *c);
/* Ends the events of a class. */
void capture_rings_stop_class(struct capture_rings *c, uint16_t class);
/* Fills the account of all events together: the bytes of the records that programs have written,
 * and how many records did not fit. It is exact if is_whole: no record was overwritten, and none is
 * lost, as losses are records, too. */
void capture_rings_account(const struct capture_rings *c, bool is_whole,
			   struct source_account *out);
/* Returns the number of lost events that no record in the rings told. */
uint64_t capture_rings_unreported(const struct capture_rings *c);
