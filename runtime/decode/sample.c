/* SPDX-License-Identifier: GPL-2.0-only */
/* The parts are in the order of the kernel's perf_output_sample(). */
#include "decode/sample.h"
#include <stddef.h>
#include <linux/perf_event.h>

/* Newer than the oldest headers this is built with. */
#define FORMAT_LOST	(1u << 4)
#define BRANCH_HW_INDEX (1u << 17)
#define BRANCH_COUNTERS (1u << 19)

static const uint64_t first_words[] = {
	PERF_SAMPLE_IDENTIFIER, PERF_SAMPLE_IP,	  PERF_SAMPLE_TID,
	PERF_SAMPLE_TIME,	PERF_SAMPLE_ADDR, PERF_SAMPLE_ID,
	PERF_SAMPLE_STREAM_ID,	PERF_SAMPLE_CPU,  PERF_SAMPLE_PERIOD,
};

static const uint64_t parts[] = {
	PERF_SAMPLE_READ,	  PERF_SAMPLE_CALLCHAIN, PERF_SAMPLE_RAW,
	PERF_SAMPLE_BRANCH_STACK, PERF_SAMPLE_REGS_USER, PERF_SAMPLE_STACK_USER,
	PERF_SAMPLE_WEIGHT,	  PERF_SAMPLE_DATA_SRC,	 PERF_SAMPLE_TRANSACTION,
	PERF_SAMPLE_REGS_INTR,	  PERF_SAMPLE_PHYS_ADDR, PERF_SAMPLE_CGROUP,
};

enum { NR_FIRST = sizeof(first_words) / sizeof(first_words[0]) };

bool sample_has_cgroup_after_raw(uint64_t type)
{
	uint64_t between = PERF_SAMPLE_BRANCH_STACK | PERF_SAMPLE_REGS_USER |
			   PERF_SAMPLE_STACK_USER | PERF_SAMPLE_WEIGHT | PERF_SAMPLE_DATA_SRC |
			   PERF_SAMPLE_TRANSACTION | PERF_SAMPLE_REGS_INTR | PERF_SAMPLE_PHYS_ADDR;

	return type & PERF_SAMPLE_RAW && type & PERF_SAMPLE_CGROUP && !(type & between);
}

int32_t sample_offset(uint64_t type, uint64_t bit)
{
	int32_t offset = 0;

	for (int i = 0; i < NR_FIRST; i++) {
		if (first_words[i] == bit)
			return type & bit ? offset : -1;
		if (type & first_words[i])
			offset += 8;
	}
	return -1;
}

/* Returns the size in words of the part that begins at w, which has at least one word. */
static uint64_t part_words(const struct perf_event_attr *attr, uint64_t bit, const uint64_t *w)
{
	uint64_t count = w[0] < UINT32_MAX ? w[0] : UINT32_MAX; /* no product overflows */
	uint64_t format = attr->read_format;
	uint64_t times = !!(format & PERF_FORMAT_TOTAL_TIME_ENABLED) +
			 !!(format & PERF_FORMAT_TOTAL_TIME_RUNNING);
	uint64_t each = 1 + !!(format & PERF_FORMAT_ID) + !!(format & FORMAT_LOST);

	switch (bit) {
	case PERF_SAMPLE_READ:
		return format & PERF_FORMAT_GROUP ? 1 + times + count * each : times + each;
	case PERF_SAMPLE_CALLCHAIN:
		return 1 + count;
	case PERF_SAMPLE_RAW:
		return ((w[0] & UINT32_MAX) + sizeof(uint32_t) + 7) / 8;
	case PERF_SAMPLE_BRANCH_STACK:
		return 1 + !!(attr->branch_sample_type & BRANCH_HW_INDEX) +
		       count * (attr->branch_sample_type & BRANCH_COUNTERS ? 4 : 3);
	case PERF_SAMPLE_REGS_USER:
		return 1 + (w[0] ? __builtin_popcountll(attr->sample_regs_user) : 0);
	case PERF_SAMPLE_REGS_INTR:
		return 1 + (w[0] ? __builtin_popcountll(attr->sample_regs_intr) : 0);
	case PERF_SAMPLE_STACK_USER:
		return w[0] ? 2 + count / 8 : 1;
	default:
		return 1;
	}
}

const uint64_t *sample_read_before(const struct perf_event_attr *attr, const void *end)
{
	static const uint64_t none;

	return (const uint64_t *)end - part_words(attr, PERF_SAMPLE_READ, &none);
}

const uint64_t *sample_part(const struct perf_event_attr *attr, const uint64_t *words, uint32_t nr,
			    uint64_t bit, uint32_t *size)
{
	uint64_t at = 0;

	if (!(attr->sample_type & bit))
		return NULL;
	for (int i = 0; i < NR_FIRST; i++)
		at += !!(attr->sample_type & first_words[i]);
	for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
		uint64_t n;

		if (!(attr->sample_type & parts[i]))
			continue;
		if (at >= nr)
			return NULL;
		n = part_words(attr, parts[i], words + at);
		if (n > nr - at)
			return NULL;
		if (parts[i] == bit) {
			*size = (uint32_t)n;
			return words + at;
		}
		at += n;
	}
	return NULL;
}

#if defined(__x86_64__)
/* enum perf_event_x86_regs; the data segments and the 128-bit registers are not in samples. */
static const char *const registers[] = {
	"RAX", "RBX", "RCX", "RDX", "RSI", "RDI", "RBP", "RSP", "RIP", "RFLAGS", "CS",	"SS",
	NULL,  NULL,  NULL,  NULL,  "R8",  "R9",  "R10", "R11", "R12", "R13",	 "R14", "R15",
};
#elif defined(__aarch64__)
static const char *const registers[] = {
	"X00", "X01", "X02", "X03", "X04", "X05", "X06", "X07", "X08", "X09", "X10",
	"X11", "X12", "X13", "X14", "X15", "X16", "X17", "X18", "X19", "X20", "X21",
	"X22", "X23", "X24", "X25", "X26", "X27", "X28", "X29", "LR",  "SP",  "PC",
};
#else
static const char *const registers[] = {NULL};
#endif

enum payload sample_payload(uint64_t bits)
{
	for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++)
		if (bits & parts[i])
			return PAYLOAD_SAMPLE;
	return PAYLOAD_WORDS;
}

const char *sample_register(uint32_t bit)
{
	return bit < sizeof(registers) / sizeof(registers[0]) ? registers[bit] : NULL;
}

uint64_t sample_user_registers(void)
{
	uint64_t mask = 0;

	for (uint32_t i = 0; i < sizeof(registers) / sizeof(registers[0]); i++)
		mask |= registers[i] ? 1ull << i : 0;
	return mask;
}
