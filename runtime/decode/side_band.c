/* SPDX-License-Identifier: GPL-2.0-only */
#include "decode/side_band.h"
#include <errno.h>
#include <string.h>
#include "decode/decoder_state.h"

/* The class of a side-band record, and the least number of bytes after its header. */
static const struct {
	uint8_t class, bytes;
} side_band[] = {
	[PERF_RECORD_LOST] = {EVENT_LOST, 16},	[PERF_RECORD_LOST_SAMPLES] = {EVENT_LOST, 8},
	[PERF_RECORD_COMM] = {EVENT_COMM, 16},	[PERF_RECORD_FORK] = {EVENT_FORK, 24},
	[PERF_RECORD_EXIT] = {EVENT_EXIT, 24},	[PERF_RECORD_MMAP] = {EVENT_MMAP, 32},
	[PERF_RECORD_MMAP2] = {EVENT_MMAP, 64}, [PERF_RECORD_KSYMBOL] = {EVENT_KSYMBOL, 24},
};

unsigned int side_band_words(const struct perf_event_header *rec)
{
	const uint8_t *bytes = (const uint8_t *)words_of(rec);
	unsigned int n = nr_words(rec) * 8;
	uint16_t lengths[2];

	switch (rec->type) {
	case PERF_RECORD_BPF_EVENT:
		return 2;
	case PERF_RECORD_KSYMBOL: /* a name and its NUL after 16 bytes */
		return n > 16 ? 2 + strnlen((const char *)bytes + 16, n - 16) / 8 + 1 : 0;
	case PERF_RECORD_TEXT_POKE:
		if (n < 12)
			return 0;
		memcpy(lengths, bytes + 8, sizeof(lengths));
		return (12 + lengths[0] + lengths[1] + 7) / 8;
	default:
		return 0;
	}
}

/* Fills what all events of a record have in common. */
static void fill(const struct layout *l, const struct perf_event_header *rec, unsigned int n,
		 struct event *ev)
{
	const uint64_t *w = words_of(rec);

	ev->chain = NULL;
	ev->raw = (const uint8_t *)w;
	ev->raw_size = (n - l->trailer_words) * 8;
	ev->key = 0;
	ev->period = 1;
	ev->cpu = l->end_cpu != ABSENT ? (int32_t)w[n - l->end_cpu] : -1;
}

/* Decodes the event that the session itself makes of the record. */
static int decode_own(const struct layout *l, const struct perf_event_header *rec,
		      unsigned int words, struct event *ev)
{
	const uint64_t *w = words_of(rec);

	if (words * 8 < side_band[rec->type].bytes + l->trailer_words * 8u)
		return -EBADMSG;
	fill(l, rec, words, ev);
	ev->class = side_band[rec->type].class;
	if (ev->class == EVENT_KSYMBOL) {
		ev->pid = ev->tid = -1;
		return 1;
	}
	if (ev->class == EVENT_LOST) {
		ev->pid = ev->tid = -1;
		/* LOST: id, lost. LOST_SAMPLES: lost. */
		ev->period = w[rec->type == PERF_RECORD_LOST ? 1 : 0];
		return 1;
	}
	/* COMM and MMAP: pid, tid. FORK and EXIT: pid, ppid, tid, ptid. */
	ev->pid = (int32_t)w[0];
	ev->tid = ev->class == EVENT_COMM || ev->class == EVENT_MMAP ? (int32_t)(w[0] >> 32)
								     : (int32_t)w[1];
	return 1;
}

/* Decodes the events of the classes that asked for records of this type. They happened in the task
 * that the record's trailer names. */
static int decode_records(const struct decoder *d, const struct layout *l,
			  const struct perf_event_header *rec, unsigned int words, struct event *ev,
			  int max, bool *mine)
{
	const uint64_t *w = words_of(rec);
	int index = l - d->layouts, n = 0;

	for (uint32_t i = 0; i < d->nr_records; i++) {
		const struct record_class *r = &d->records[i];

		*mine = *mine || r->index == index;
		if (r->type != rec->type || (r->index >= 0 && r->index != index))
			continue;
		if (words < l->trailer_words)
			return -EBADMSG;
		if (n == max)
			return -ENOSPC;
		fill(l, rec, words, &ev[n]);
		ev[n].pid = l->end_tid != ABSENT ? (int32_t)w[words - l->end_tid] : -1;
		ev[n].tid = l->end_tid != ABSENT ? (int32_t)(w[words - l->end_tid] >> 32) : -1;
		ev[n++].class = r->class;
	}
	return n;
}

int side_band_decode(const struct decoder *d, const struct perf_event_header *rec, struct event *ev,
		     int max)
{
	bool known = rec->type < sizeof(side_band) / sizeof(side_band[0]) &&
		     side_band[rec->type].bytes,
	     mine = false;
	const struct layout *l;
	unsigned int words = nr_side_band_words(d, rec);
	int n = 0, own = 0;

	if (!known && !d->nr_records)
		return 0;
	l = decoder_layout(d, rec);
	if (!l)
		return -EBADMSG;
	/* The session's event comes first. It is not made of records of an attribute that exists
	 * for records alone: the session gets those through another attribute. */
	if (d->nr_records)
		n = decode_records(d, l, rec, words, ev + 1, max - 1, &mine);
	if (n < 0)
		return n;
	if (known && (!mine || side_band[rec->type].class == EVENT_LOST))
		own = decode_own(l, rec, words, ev);
	if (own)
		return own < 0 ? own : 1 + n;
	for (int i = 0; i < n; i++)
		ev[i] = ev[i + 1];
	return n;
}
