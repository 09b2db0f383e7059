/* SPDX-License-Identifier: GPL-2.0-only */
#include "push/lost_record.h"
#include <stddef.h>

void lost_record_fill(struct lost_record *rec, const struct perf_event_attr *attr, uint64_t lost,
		      uint64_t time)
{
	/* The parts of the trailer in their order. Neither a thread nor a CPU is known. */
	const struct {
		uint64_t bit, value;
	} parts[] = {
		{PERF_SAMPLE_TID, UINT64_MAX}, {PERF_SAMPLE_TIME, time},
		{PERF_SAMPLE_ID, 0},	       {PERF_SAMPLE_STREAM_ID, 0},
		{PERF_SAMPLE_CPU, UINT32_MAX}, {PERF_SAMPLE_IDENTIFIER, 0},
	};
	uint32_t n = 0;

	*rec = (struct lost_record){.header = {.type = PERF_RECORD_LOST}, .lost = lost};
	for (size_t i = 0; attr->sample_id_all && i < sizeof(parts) / sizeof(parts[0]); i++)
		if (attr->sample_type & parts[i].bit)
			rec->trailer[n++] = parts[i].value;
	rec->header.size = offsetof(struct lost_record, trailer) + n * sizeof(rec->trailer[0]);
}
