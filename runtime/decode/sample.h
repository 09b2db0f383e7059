/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Sample: where the kernel puts what into a sample, and what its registers are called. The words
 * that all samples of an attribute have at the same place come first; behind them are parts whose
 * place depends on the sample.
 */
#pragma once
#include <stdint.h>

struct perf_event_attr;

/* What the payload of an event is: RAW; the first words of its sample; all of its sample. */
enum payload { PAYLOAD_RAW, PAYLOAD_WORDS, PAYLOAD_SAMPLE };

/* Byte offset of one of the first words, up to PERIOD, in samples of this type; -1: they have it
 * not. */
int32_t sample_offset(uint64_t type, uint64_t bit);

/* The part that belongs to a bit, READ or behind it, of a sample of nr words; *size: its words,
 * with those that tell its length. NULL: it has none, or lies about its contents. */
const uint64_t *sample_part(const struct perf_event_attr *attr, const uint64_t *words, uint32_t nr,
			    uint64_t bit, uint32_t *size);

/* What the samples of an event hold of counts: those of all counted events, its own. */
enum sample_reads { READS_COUNTED = 1, READS_ITSELF = 2 };

/* Where READ begins that ends there; of an event that READS_ITSELF. */
const uint64_t *sample_read_before(const struct perf_event_attr *attr, const void *end);

/* The least payload that has what these bits stand for. */
enum payload sample_payload(uint64_t bits);

/* Name of a register of this machine, by its bit in sample_regs_user; NULL: there is none. */
const char *sample_register(uint32_t bit);
/* Those of user mode that the kernel takes: all but what no user mode has. */
uint64_t sample_user_registers(void);
