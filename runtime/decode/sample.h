/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The layout of samples, and the names of registers. A sample begins with the words that all
 * samples of an attribute have at the same place; they are followed by parts whose place depends on
 * the sample.
 */
#pragma once
#include <stdbool.h>
#include <stdint.h>

struct perf_event_attr;

/* What the payload of an event is: RAW, the first words of its sample, or the whole sample. */
enum payload { PAYLOAD_RAW, PAYLOAD_WORDS, PAYLOAD_SAMPLE };

/* Returns the byte offset of one of the first words (up to PERIOD) in samples of this type; -1 if
 * they do not have it. */
int32_t sample_offset(uint64_t type, uint64_t bit);

/* Returns the part of a sample of nr words that belongs to a bit (READ or a later part), and its
 * size in words in *size, including those that hold its length. NULL: the sample does not have the
 * part or is malformed. */
const uint64_t *sample_part(const struct perf_event_attr *attr, const uint64_t *words, uint32_t nr,
			    uint64_t bit, uint32_t *size);

/* Whether the id of the control group comes just after the raw data of samples of this type. It is
 * then the last word of the payload. */
bool sample_has_cgroup_after_raw(uint64_t type);

/* The counts that samples of an event hold: those of all counted events, or its own. */
enum sample_reads { READS_COUNTED = 1, READS_ITSELF = 2 };

/* Returns the start of the READ part that ends at `end`, for an event with READS_ITSELF. */
const uint64_t *sample_read_before(const struct perf_event_attr *attr, const void *end);

/* Returns the smallest payload that has the parts of these bits. */
enum payload sample_payload(uint64_t bits);

/* Returns the name of a register of this machine, by its bit in sample_regs_user; NULL if there is
 * none. */
const char *sample_register(uint32_t bit);
/* Returns the registers of user mode that the kernel accepts: all that user mode can have. */
uint64_t sample_user_registers(void);
