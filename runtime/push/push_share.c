/* SPDX-License-Identifier: GPL-2.0-only */
#include "push/push_state.h"
#include "decode/decoder.h"
#include "push/lost_record.h"

/* Gives a copy of a record the time that is sent: that of its slot, unless it is a loss, whose slot
 * has the time of its beginning. */
static void stamp(struct push *p, struct perf_event_header *copy, int index, uint64_t was,
		  uint64_t is)
{
	uint64_t *place = push_clock_find(&p->all.clock, copy, p->pushed.attrs[index].time_place);
	uint64_t end;

	if (!place || !*place)
		return;
	if (copy->type == PERF_RECORD_LOST) {
		end = p->converts ? p->inner->ops->convert(p->inner, *place) : *place;
		*place = end > was ? push_clock_time(&p->all.clock, end) : is;
	} else if (p->converts || *place == was) {
		*place = is;
	}
}

static void send_to(struct push *p, uint64_t outlets, const struct slot *slot, int index)
{
	const struct perf_event_header *rec = slot->rec;
	uint64_t time = push_clock_time(&p->all.clock, slot->time);

	while (outlets) {
		struct outlet *o = p->outlets[__builtin_ctzll(outlets)];
		struct perf_event_header *copy = outlet_add(o, rec, time);

		if (copy && p->pushed.renumbers)
			pushed_renumber(&p->pushed, copy, index);
		if (copy && (p->all.clock.axis || p->converts))
			stamp(p, copy, index, slot->time, time);
		o->produced += rec->type == PERF_RECORD_SAMPLE;
		outlets &= outlets - 1;
	}
}

/* Counts a loss that is sent. lost: 0, unknown. */
static void note_loss(struct outlet *o, uint64_t lost)
{
	o->lost += lost;
	o->unknown += !lost;
}

static void send_other(struct push *p, const struct slot *slot)
{
	const struct perf_event_header *rec = slot->rec;
	const uint64_t *words = (const uint64_t *)(rec + 1);

	for (int i = 0; i < p->nr_outlets; i++) {
		send_to(p, 1ull << i, slot, 0);
		if (rec->type == PERF_RECORD_LOST && rec->size >= sizeof(*rec) + 16)
			note_loss(p->outlets[i], words[1]);
		if (rec->type == PERF_RECORD_LOST_SAMPLES && rec->size >= sizeof(*rec) + 8)
			p->outlets[i]->lost += words[0];
	}
}

/* Sends on what was lost on the way from another machine. */
static void send_gap(struct push *p, const struct slot *slot)
{
	struct lost_record rec;
	struct event ev = {};

	if (p->inner->ops->decode(p->inner, slot, &ev) != 1 || ev.class != EVENT_LOST)
		return;
	lost_record_fill(&rec, decoder_attr(p->source.decoder, 0), ev.period,
			 push_clock_time(&p->all.clock, ev.key));
	for (int i = 0; i < p->nr_outlets; i++) {
		outlet_add(p->outlets[i], &rec.header, push_clock_time(&p->all.clock, slot->time));
		note_loss(p->outlets[i], ev.period);
	}
}

int push_share(struct push *p, struct slot *slots, int n)
{
	const struct decoder *d = p->source.decoder;
	uint64_t from = p->source.info.is_recorded ? 0 : p->source.start;
	int kept = 0;

	for (int i = 0; i < n; i++) {
		const struct perf_event_header *rec = slots[i].rec;
		uint64_t outlets = 0;
		int index;

		if (i + 8 < n)
			__builtin_prefetch(slots[i + 8].rec);
		if (slots[i].flags >> SLOT_OWN_SHIFT) {
			if (p->source.info.host)
				send_gap(p, &slots[i]);
			slots[kept++] = slots[i];
			continue;
		}
		if (rec->type != PERF_RECORD_SAMPLE) {
			send_other(p, &slots[i]);
			slots[kept++] = slots[i];
			continue;
		}
		index = decoder_index_of(d, rec);
		if (index >= 0 && p->pushed.places)
			index = p->pushed.places[index];
		outlets = index >= 0 && index < p->pushed.nr_attrs ? p->pushed.attrs[index].outlets
								   : 0;
		if (outlets && slots[i].time >= from && p->left) {
			send_to(p, outlets, &slots[i], index);
			p->left--;
		}
		if (!outlets || p->keeps)
			slots[kept++] = slots[i];
		else
			p->pushed.attrs[index].taken++;
	}
	return kept;
}
