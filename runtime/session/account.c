/* SPDX-License-Identifier: GPL-2.0-only */
/* The account of a session: what the kernel says that each event fired, and what became of it. */
#include "session/session_state.h"
#include <assert.h>
#include <errno.h>
#include "decode/decoder.h"

/* The index of the machine that sends the events of a class. */
static uint32_t machine_of(const struct session *s, uint16_t class)
{
	for (uint32_t i = 1; i < s->nr_machines; i++)
		if (decoder_attr_of_class(s->machines[i].source->decoder, class))
			return i;
	return 0;
}

void session_read_account(struct session *s, uint16_t class, struct session_account *out)
{
	const struct class_samples *t = &s->samples[class];
	uint32_t machine = machine_of(s, class);
	struct source *src = s->machines[machine].source;
	struct source_account kernel = {0};

	*out = (struct session_account){
		/* The streams of another machine have a decoder each. */
		.read = t->read + (machine ? 0 : decoder_decoded(src->decoder, class)),
		.early = t->early,
		.rest = t->rest,
	};
	src = s->source;
	out->has_kernel = src->ops->account && src->ops->account(src, class, &kernel);
	if (!out->has_kernel)
		return;
	out->read += kernel.elsewhere;
	out->fired = kernel.fired;
	out->lost = kernel.lost;
	out->enabled = kernel.enabled;
	out->running = kernel.running;
	out->counters = kernel.counters;
	out->per_sample = kernel.per_sample;
	out->is_exact = kernel.is_exact;
	out->is_sum = kernel.is_sum;
	out->sum_read = kernel.read;
	out->arrived = machine ? s->machines[machine].samples + kernel.dropped : kernel.read;
}

void session_clear_at_stop(struct session *s, uint8_t *bytes, uint32_t n)
{
	assert(s->nr_clears < MAX_CLEARS);
	s->clears[s->nr_clears].bytes = bytes;
	s->clears[s->nr_clears++].n = n;
}

uint32_t session_programs(struct session *s, uint16_t class, uint32_t *ids, uint32_t max)
{
	struct source *src = s->machines[0].source;

	return src->ops->programs ? src->ops->programs(src, class, ids, max) : 0;
}

static bool is_sample(const struct slot *slot)
{
	const struct perf_event_header *rec = slot->rec;

	return rec->type == PERF_RECORD_SAMPLE;
}

static void count_slots(struct session *s)
{
	for (; s->next_slot < s->nr_slots; s->next_slot++) {
		const struct slot *slot = &s->slots[s->next_slot];
		struct machine *m = &s->machines[slot->flags >> SLOT_MEMBER_SHIFT];
		int n = 0;

		if (!(slot->flags >> SLOT_OWN_SHIFT & SLOT_OWN_MASK)) {
			n = decoder_decode(m->source->decoder, slot->rec, s->batch, BATCH_MAX);
			m->samples += is_sample(slot);
		}
		for (int i = 0; i < n; i++)
			s->samples[s->batch[i].class].rest++;
	}
}

bool session_count_rest(struct session *s)
{
	struct error err = {0};
	int n = 0;

	/* Others may wait for more, or pass on what they read. */
	if (!s->stopped || !s->source->ops->account)
		return false;
	if (!s->source->ops->wait) /* a file: its reader says whether it was read to its end */
		return true;
	s->source->counts_rest = true;
	do {
		count_slots(s);
		n = s->source->ops->next(s->source, s->slots, BATCH_MAX, UINT64_MAX, &err);
		s->next_slot = 0;
		s->nr_slots = n > 0 ? n : 0;
	} while (n > 0);
	for (int i = 0; i < BATCH_MAX; i++)
		s->batch[i] = (struct event){.class = EVENT_FILTERED};
	return n == -ENODATA;
}
