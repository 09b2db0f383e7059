/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Records that BPF programs write, as rings of the merge: a ring buffer map is one, a perf event
 * array one for each cpu. A ring buffer's records are what the program wrote and no more; those of
 * a perf event array are samples like any other.
 */
#pragma once
#include <stdbool.h>
#include <stdint.h>
#include "event_request.h"

struct bpf_rings;
struct cpus;
struct decoder;
struct error;
struct event;
struct merge;
struct ring;
struct slot;

/* A map whose records are the events of one class. */
struct bpf_output_class {
	struct bpf_output map;
	uint32_t payload; /* bytes its fields take: shorter records are not delivered */
	uint16_t class;
};

/* cpus: those that get a ring of each perf event array. has_lost: the kernel counts what perf
 * events lose. Opens them, and adds the perf events' attributes and ids to the decoder. The outputs
 * must last as long. NULL with a message. */
struct bpf_rings *bpf_rings_open(const struct bpf_output_class *outputs, uint32_t n,
				 const struct cpus *cpus, bool has_lost, struct decoder *decoder,
				 struct error *err);
/* A cpu has come while records are being made: gives it a ring of each perf event array, as the
 * last ones. 0, or a negative errno with a message, then it has none. */
int bpf_rings_come(struct bpf_rings *b, int cpu, struct decoder *decoder, struct error *err);
/* Adds ring i to the merge, which frees it, when the decoder knows all ids. 0 or -ENOMEM. */
int bpf_rings_add(struct bpf_rings *b, uint32_t i, struct merge *merge,
		  const struct decoder *decoder);
/* Closes a ring whose cpu has gone and that was read to its end; the merge is to free it then. */
void bpf_rings_drop(struct bpf_rings *b, const struct ring *ring);
/* To be called when the merge has freed the rings. */
void bpf_rings_close(struct bpf_rings *b);
/* Descriptor to poll for ring i, in the order they were added in. */
int bpf_rings_fd(const struct bpf_rings *b, uint32_t i);
/* Whether the descriptor is ready as long as the ring is not empty. */
bool bpf_rings_is_level(const struct bpf_rings *b, uint32_t i);
/* Its cpu; -1: it is that of all. */
int bpf_rings_cpu(const struct bpf_rings *b, uint32_t i);
uint32_t bpf_rings_nr(const struct bpf_rings *b);
/* Whether cpus have rings of their own. */
bool bpf_rings_has_cpus(const struct bpf_rings *b);
/* Lets perf events into the rings, or no more; what ring buffers get from now on is ignored. */
int bpf_rings_enable(struct bpf_rings *b, struct error *err);
void bpf_rings_stop(struct bpf_rings *b);
/* Records that did not fit into a ring buffer since the last call. */
uint64_t bpf_rings_lost(struct bpf_rings *b);
/* Records of perf events that were lost and that no record in their rings told of. */
uint64_t bpf_rings_untold(const struct bpf_rings *b);

/* Fills ev with the record of a ring buffer, but for time, ring and flags. 1, or -EBADMSG. */
int bpf_decode(const struct bpf_output_class *outputs, const struct slot *slot, struct event *ev);
/* The same for a run of slots that are on time, from `from` on (ns). Their events are complete but
 * for the key; base is subtracted from the times. Returns how many of the n it decoded. */
int bpf_decode_run(const struct bpf_output_class *outputs, const struct slot *slots, int n,
		   uint64_t base, uint64_t from, struct event *ev);
