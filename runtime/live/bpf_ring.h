/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Records of BPF programs as rings of the merge: a ring buffer map is one ring, a perf event array
 * has one ring per CPU. Records of a ring buffer contain only what the program wrote; those of a
 * perf event array are ordinary samples.
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
	uint32_t payload; /* size of the fields: shorter records are not delivered */
	uint16_t class;
};

/* Opens the rings, and adds the attributes and ids of the perf events to the decoder. cpus: the
 * CPUs that get a ring of each perf event array; has_lost: the kernel counts lost records of perf
 * events. The outputs must outlive it. NULL with a message. */
struct bpf_rings *bpf_rings_open(const struct bpf_output_class *outputs, uint32_t n,
				 const struct cpus *cpus, bool has_lost, struct decoder *decoder,
				 struct error *err);
/* Adds enabled rings of all perf event arrays for a CPU that came online, after the existing rings.
 * Returns 0, or a negative errno with a message and no rings added. */
int bpf_rings_add_cpu(struct bpf_rings *b, int cpu, struct decoder *decoder, struct error *err);
/* Adds ring i to the merge, which then owns it. The decoder must know all ids. Returns 0 or
 * -ENOMEM. */
int bpf_rings_add(struct bpf_rings *b, uint32_t i, struct merge *merge,
		  const struct decoder *decoder);
/* Closes a drained ring whose CPU went offline; the caller then removes it from the merge. */
void bpf_rings_drop(struct bpf_rings *b, const struct ring *ring);
/* Call this after the merge has freed the rings. */
void bpf_rings_close(struct bpf_rings *b);
/* Returns the descriptor to poll for ring i, in the order in which they were added. */
int bpf_rings_fd(const struct bpf_rings *b, uint32_t i);
/* Whether the descriptor is ready whenever the ring is not empty. */
bool bpf_rings_is_level(const struct bpf_rings *b, uint32_t i);
/* Returns the CPU of ring i; -1: it is shared by all CPUs. */
int bpf_rings_cpu(const struct bpf_rings *b, uint32_t i);
uint32_t bpf_rings_nr(const struct bpf_rings *b);
/* Whether CPUs have rings of their own. */
bool bpf_rings_has_cpus(const struct bpf_rings *b);
/* Enables the perf events. */
int bpf_rings_enable(struct bpf_rings *b, struct error *err);
/* Disables the perf events and ignores later records of ring buffers. */
void bpf_rings_stop(struct bpf_rings *b);
/* Returns the number of records that did not fit into ring buffers since the last call. */
uint64_t bpf_rings_lost(struct bpf_rings *b);
/* Returns the number of lost records of perf events that no record in their rings reported. */
uint64_t bpf_rings_unreported(const struct bpf_rings *b);

/* Decodes a record of a ring buffer: fills ev except time, ring and flags. Returns 1 or -EBADMSG.
 */
int bpf_decode(const struct bpf_output_class *outputs, const struct slot *slot, struct event *ev);
/* Decodes consecutive slots that are in order and not older than `from` (ns). Fills ev completely,
 * except the key; base is subtracted from the times. Returns the number of decoded slots. */
int bpf_decode_run(const struct bpf_output_class *outputs, const struct slot *slots, int n,
		   uint64_t base, uint64_t from, struct event *ev);
