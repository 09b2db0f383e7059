/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Lost record: a PERF_RECORD_LOST made here, for what another machine lost on its way to this one.
 * It belongs to no CPU.
 */
#pragma once
#include <stdint.h>
#include <linux/perf_event.h>

struct lost_record {
	struct perf_event_header header;
	uint64_t id, lost;
	uint64_t trailer[6]; /* as far as header.size says */
};

/* attr: of the stream. lost: 0, unknown. time: when the loss ended, on the clock that is sent. */
void lost_record_fill(struct lost_record *rec, const struct perf_event_attr *attr, uint64_t lost,
		      uint64_t time);
