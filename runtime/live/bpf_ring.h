/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Records that BPF programs write, as rings of the merge: a ring buffer map is one ring, a perf
 * event array has one per CPU. The records of a ring buffer are just what the program wrote; those
 * of a perf event array are samples like any other.
 */
#pragma once
#include <stdbool.h>
#include <stdint.h>

struct bpf_rings;
struct cpus;
struct decoder;
struct error;
struct event;
struct merge;
struct ring;
struct slot;

/* A map whose records are the events of one class. The offsets are those of members of a ring
 * buffer's record; -1: it does not have the member. */
struct bpf_output {
	int32_t map;	  /* descriptor */
	uint32_t per_cpu; /* 1: a perf event array; 0: a ring buffer */
	uint32_t size;	  /* bytes of a ring buffer; pages of the ring of each CPU */
	uint32_t payload; /* bytes of its fields; shorter records are not delivered */
	uint16_t class;
	int32_t time_at; /* u64 from bpf_ktime_get_ns(); without it, records are ordered by the time
			    of reading */
	int32_t pid_at, tid_at, cpu_at; /* 32 bits each */
	const uint64_t *lost; /* the program's count of records that did not fit; or NULL */
};

/* Opens the rings and adds the attributes and ids of the perf events to the decoder. cpus: those
 * that get a ring of each perf event array. has_lost: the kernel counts lost records of perf
 * events. The outputs must outlive the rings. Returns NULL with a message. */
struct bpf_rings *bpf_rings_open(const struct bpf_output *outputs, uint32_t n,
				 const struct cpus *cpus, bool has_lost, struct decoder *decoder,
				 struct error *err);
/* Gives a CPU that came online a ring of each perf event array; they become the last ones. Returns
 * 0, or a negative errno with a message, and then the CPU has no ring. */
int bpf_rings_come(struct bpf_rings *b, int cpu, struct decoder *decoder, struct error *err);
/* Adds ring i to the merge, which frees it. The decoder must know all ids. Returns 0 or -ENOMEM. */
int bpf_rings_add(struct bpf_rings *b, uint32_t i, struct merge *merge,
		  const struct decoder *decoder);
/* Closes a ring whose CPU went offline, once it was read to its end; then the merge must free
 * it. */
void bpf_rings_drop(struct bpf_rings *b, const struct ring *ring);
/* To be called when the merge has freed the rings. */
void bpf_rings_close(struct bpf_rings *b);
/* Returns the descriptor to poll for ring i. Rings have the order in which they were added. */
int bpf_rings_fd(const struct bpf_rings *b, uint32_t i);
/* Returns whether the descriptor stays ready while the ring is not empty. */
bool bpf_rings_is_level(const struct bpf_rings *b, uint32_t i);
/* Returns the ring's CPU; -1: it is the ring of all CPUs. */
int bpf_rings_cpu(const struct bpf_rings *b, uint32_t i);
uint32_t bpf_rings_nr(const struct bpf_rings *b);
/* Returns whether there are rings per CPU. */
bool bpf_rings_has_cpus(const struct bpf_rings *b);
/* Start and stop writing of perf events to their rings. What ring buffers get after the stop is
 * ignored. */
int bpf_rings_enable(struct bpf_rings *b, struct error *err);
void bpf_rings_stop(struct bpf_rings *b);
/* Returns the records that did not fit into a ring buffer since the last call. */
uint64_t bpf_rings_lost(struct bpf_rings *b);
/* Returns the records of perf events that were lost and not reported by a record in their rings. */
uint64_t bpf_rings_unreported(const struct bpf_rings *b);

/* Fills ev from the record of a ring buffer, except time, ring and flags. Returns 1 or -EBADMSG. */
int bpf_decode(const struct bpf_output *outputs, const struct slot *slot, struct event *ev);
/* The same for a run of slots that are on time, not before `from` (ns). Sets all of their events
 * but the key; base is subtracted from the times. Returns how many of the n slots it decoded. */
int bpf_decode_run(const struct bpf_output *outputs, const struct slot *slots, int n, uint64_t base,
		   uint64_t from, struct event *ev);
