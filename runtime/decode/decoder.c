/* SPDX-License-Identifier: GPL-2.0-only */
/* The kernel's perf_output_sample() defines the order of the fields in a sample; up to PERIOD each
 * takes one 8-byte word. Records that are not samples end with the sample_id words if sample_id_all
 * is set. */
#include "decode/decoder_state.h"
#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include "decode/group_reads.h"
#include "error.h"

enum {
	AHEAD = 8,
	COMMON_PID = 4 /* offset of common_pid in the payload of all tracepoints */
};

struct decoder *decoder_new(void)
{
	return calloc(1, sizeof(struct decoder));
}

void decoder_free(struct decoder *d)
{
	if (!d)
		return;
	free(d->layouts);
	id_table_clear(&d->ids);
	free(d->quick);
	free(d->records);
	group_reads_free(d->group_reads);
	free(d);
}

int decoder_nr_attrs(const struct decoder *d)
{
	return d->nr_layouts;
}

const struct perf_event_attr *decoder_attr(const struct decoder *d, int index)
{
	return &d->layouts[index].attr;
}

static void place_sample_words(struct layout *l)
{
	uint64_t type = l->attr.sample_type;
	uint8_t word = 0;

	l->id = l->tid = l->time = l->cpu = l->period = ABSENT;
	if (type & PERF_SAMPLE_IDENTIFIER)
		l->id = word++;
	if (type & PERF_SAMPLE_IP)
		word++;
	if (type & PERF_SAMPLE_TID)
		l->tid = word++;
	if (type & PERF_SAMPLE_TIME)
		l->time = word++;
	if (type & PERF_SAMPLE_ADDR)
		word++;
	if (type & PERF_SAMPLE_ID) {
		if (l->id == ABSENT)
			l->id = word;
		word++;
	}
	if (type & PERF_SAMPLE_STREAM_ID)
		word++;
	if (type & PERF_SAMPLE_CPU)
		l->cpu = word++;
	if (type & PERF_SAMPLE_PERIOD)
		l->period = word++;
	l->fixed_words = word;
}

static void update_plain(struct layout *l)
{
	uint64_t type = l->attr.sample_type;

	l->plain =
		l->tid != ABSENT && l->cpu != ABSENT &&
		!(type & (PERF_SAMPLE_CALLCHAIN | PERF_SAMPLE_CGROUP)) &&
		(l->raw_is == PAYLOAD_RAW ? (type & PERF_SAMPLE_RAW) && !(type & PERF_SAMPLE_READ)
					  : l->raw_is == PAYLOAD_WORDS);
}

void decoder_set_payload(struct decoder *d, int index, enum payload payload)
{
	d->layouts[index].raw_is = payload;
	update_plain(&d->layouts[index]);
}

static void place_trailer_words(struct layout *l)
{
	uint64_t type = l->attr.sample_type;
	uint8_t back = 0;

	l->end_id = l->end_tid = l->end_time = l->end_cpu = ABSENT;
	l->trailer_words = 0;
	if (!l->attr.sample_id_all)
		return;
	if (type & PERF_SAMPLE_IDENTIFIER)
		l->end_id = ++back;
	if (type & PERF_SAMPLE_CPU)
		l->end_cpu = ++back;
	if (type & PERF_SAMPLE_STREAM_ID)
		++back;
	if (type & PERF_SAMPLE_ID) {
		++back;
		if (l->end_id == ABSENT)
			l->end_id = back;
	}
	if (type & PERF_SAMPLE_TIME)
		l->end_time = ++back;
	if (type & PERF_SAMPLE_TID)
		l->end_tid = ++back;
	l->trailer_words = back;
}

int decoder_add_attr(struct decoder *d, const struct perf_event_attr *attr, struct error *err)
{
	struct layout *l = realloc(d->layouts, (d->nr_layouts + 1) * sizeof(*l));

	if (!l)
		return error_set(err, -ENOMEM, "out of memory for %d events", d->nr_layouts + 1);
	d->layouts = l;
	l += d->nr_layouts;
	memset(l, 0, sizeof(*l));
	l->attr = *attr;
	l->fixed_period = attr->freq || !attr->sample_period ? 1 : attr->sample_period;
	place_sample_words(l);
	update_plain(l);
	place_trailer_words(l);
	return d->nr_layouts++;
}

int decoder_add_id(struct decoder *d, uint64_t id, int index)
{
	if (!id || index < 0 || index >= d->nr_layouts)
		return -EINVAL;
	return id_table_add(&d->ids, id, index);
}

void decoder_note_shared(struct decoder *d, int index)
{
	d->nr_shared++;
	d->shared = index;
}

int decoder_add_class(struct decoder *d, int index, uint16_t class, uint32_t payload)
{
	struct layout *l = &d->layouts[index];

	if (l->nr_classes == MAX_CLASSES_OF_ATTR)
		return -E2BIG;
	l->classes[l->nr_classes++] = class;
	if (l->payload < payload)
		l->payload = payload;
	return 0;
}

int decoder_add_record(struct decoder *d, int index, uint32_t type, uint16_t class)
{
	struct record_class *grown = reallocarray(d->records, d->nr_records + 1, sizeof(*grown));

	if (!grown)
		return -ENOMEM;
	d->records = grown;
	grown[d->nr_records++] = (struct record_class){type, index, class};
	return 0;
}

int decoder_split_groups(struct decoder *d)
{
	d->group_reads = group_reads_new();
	return d->group_reads ? 0 : -ENOMEM;
}

const struct perf_event_attr *decoder_attr_of_class(const struct decoder *d, uint16_t class)
{
	for (int i = 0; i < d->nr_layouts; i++)
		for (int j = 0; j < d->layouts[i].nr_classes; j++)
			if (d->layouts[i].classes[j] == class)
				return &d->layouts[i].attr;
	return NULL;
}

static bool is_quick(const struct layout *l)
{
	return l->plain && l->raw_is == PAYLOAD_RAW && l->nr_classes == 1 &&
	       l->fixed_period < UINT16_MAX;
}

/* Nearly all samples differ only in their payload, so the places of their words need not be looked
 * up for each of them. */
static int list_quick(struct decoder *d)
{
	const struct layout *first = NULL;

	free(d->quick);
	d->quick = calloc(d->nr_layouts, sizeof(*d->quick));
	if (!d->quick)
		return -ENOMEM;
	for (int i = 0; i < d->nr_layouts; i++) {
		const struct layout *l = &d->layouts[i];

		if (!is_quick(l))
			continue;
		if (!first)
			first = l;
		if (l->tid != first->tid || l->cpu != first->cpu ||
		    l->fixed_words != first->fixed_words || l->period != first->period)
			continue;
		d->quick[i].class = l->classes[0];
		d->quick[i].period = l->period == ABSENT ? l->fixed_period : 0;
		d->quick[i].payload = l->payload;
	}
	if (!first)
		return 0;
	d->quick_tid = first->tid;
	d->quick_cpu = first->cpu;
	d->quick_period = first->period;
	d->quick_words = first->fixed_words;
	return 0;
}

int decoder_check(struct decoder *d, struct error *err)
{
	if (!d->nr_layouts)
		return error_set(err, -EINVAL, "no events");
	d->id_word = d->layouts[0].id;
	d->id_end_word = d->layouts[0].end_id;
	d->time_word = d->layouts[0].time;
	d->time_end_word = d->layouts[0].end_time;
	d->trailer_words = d->layouts[0].trailer_words;
	for (int i = 1; i < d->nr_layouts; i++) {
		struct layout *l = &d->layouts[i];

		if (l->id != d->id_word || l->id == ABSENT)
			return error_set(
				err, -EINVAL,
				"samples of event %d do not have their id where those of event 0 "
				"have it, so they cannot be told apart",
				i);
		if (l->end_id != d->id_end_word)
			d->id_end_word = ABSENT;
		if (l->time != d->time_word)
			d->time_word = ABSENT;
		if (l->end_time != d->time_end_word)
			d->time_end_word = ABSENT;
		if (l->trailer_words != d->trailer_words)
			d->trailer_words = ABSENT;
	}
	if (d->nr_layouts > 1 && !d->ids.count)
		return error_set(err, -EINVAL, "%d events but no ids to tell their samples apart",
				 d->nr_layouts);
	if (d->nr_layouts == 1)
		d->id_word = ABSENT;
	id_table_index(&d->ids);
	if (list_quick(d) || (d->group_reads && group_reads_reserve(d->group_reads, d)))
		return error_set(err, -ENOMEM, "out of memory");
	return 0;
}

static __always_inline const struct layout *by_id(const struct decoder *d, uint64_t id)
{
	int index = id_table_find(&d->ids, id);

	return index >= 0 ? &d->layouts[index] : NULL;
}

/* Returns the layout of any record; NULL if it cannot be known. */
static __always_inline const struct layout *layout_of(const struct decoder *d,
						      const struct perf_event_header *rec)
{
	unsigned int n = nr_words(rec);

	if (d->id_word == ABSENT)
		return &d->layouts[0];
	if (rec->type == PERF_RECORD_SAMPLE) {
		const struct layout *known =
			d->id_word < n ? by_id(d, words_of(rec)[d->id_word]) : NULL;

		return known || d->nr_shared != 1 ? known : &d->layouts[d->shared];
	}
	n = nr_side_band_words(d, rec);
	if (d->id_end_word == ABSENT || d->id_end_word > n)
		return &d->layouts[0];
	/* Synthesized records carry id 0: any layout's trailer fits, because they all have the id
	 * at the same place. */
	const struct layout *l = by_id(d, words_of(rec)[n - d->id_end_word]);

	return l ? l : &d->layouts[0];
}

const struct layout *decoder_layout(const struct decoder *d, const struct perf_event_header *rec)
{
	return layout_of(d, rec);
}

const struct perf_event_attr *decoder_attr_of(const struct decoder *d,
					      const struct perf_event_header *rec)
{
	const struct layout *l = layout_of(d, rec);

	return l ? &l->attr : NULL;
}

int decoder_index_of(const struct decoder *d, const struct perf_event_header *rec)
{
	const struct layout *l = layout_of(d, rec);

	return l ? l - d->layouts : -1;
}

uint32_t decoder_ids(const struct decoder *d, int index, uint64_t *ids, uint32_t max)
{
	uint32_t n = 0;

	for (uint32_t i = 0; d->ids.entries && i <= d->ids.mask; i++) {
		const struct id_entry *e = &d->ids.entries[i];

		if (!e->id || e->index != (uint32_t)index)
			continue;
		if (n < max)
			ids[n] = e->id;
		n++;
	}
	return n;
}

bool decoder_has_class(const struct decoder *d, int index, uint16_t class)
{
	for (int i = 0; i < d->layouts[index].nr_classes; i++)
		if (d->layouts[index].classes[i] == class)
			return true;
	return false;
}

int decoder_cpu_word(const struct decoder *d)
{
	for (int i = 0; i < d->nr_layouts; i++)
		if (d->layouts[i].cpu == ABSENT || d->layouts[i].cpu != d->layouts[0].cpu)
			return -1;
	return d->nr_layouts ? d->layouts[0].cpu : -1;
}

int decoder_time_word(const struct decoder *d)
{
	return d->time_word == ABSENT ? -1 : d->time_word;
}

bool decoder_time(const struct decoder *d, const struct perf_event_header *rec, uint64_t *time)
{
	unsigned int n = nr_words(rec);
	const struct layout *l;
	uint8_t word;

	if (rec->type == PERF_RECORD_SAMPLE) {
		word = d->time_word;
		if (word == ABSENT) {
			l = layout_of(d, rec);
			word = l ? l->time : ABSENT;
		}
		if (word == ABSENT || word >= n)
			return false;
		*time = words_of(rec)[word];
		return true;
	}
	n = nr_side_band_words(d, rec);
	word = d->time_end_word;
	if (word == ABSENT) {
		l = layout_of(d, rec);
		word = l ? l->end_time : ABSENT;
	}
	if (word == ABSENT || word > n)
		return false;
	*time = words_of(rec)[n - word];
	return *time != 0;
}

int decoder_cpu(const struct decoder *d, const struct perf_event_header *rec)
{
	const struct layout *l = layout_of(d, rec);
	unsigned int n = nr_words(rec);

	if (!l)
		return -1;
	if (rec->type == PERF_RECORD_SAMPLE)
		return l->cpu < n ? (int)(uint32_t)words_of(rec)[l->cpu] : -1;
	n = nr_side_band_words(d, rec);
	return l->end_cpu <= n ? (int)(uint32_t)words_of(rec)[n - l->end_cpu] : -1;
}

/* Returns the words that PERF_SAMPLE_READ takes, 0 if they do not fit into `left`. */
static unsigned int read_words(const struct perf_event_attr *attr, const uint64_t *w,
			       unsigned int left)
{
	uint64_t format = attr->read_format;
	unsigned int times = !!(format & PERF_FORMAT_TOTAL_TIME_ENABLED) +
			     !!(format & PERF_FORMAT_TOTAL_TIME_RUNNING);
	unsigned int each = 1 + !!(format & PERF_FORMAT_ID) + !!(format & PERF_FORMAT_LOST);

	if (!(format & PERF_FORMAT_GROUP))
		return times + each <= left ? times + each : 0;
	if (!left || w[0] > left)
		return 0;
	return 1 + times + w[0] * each <= left ? 1 + times + w[0] * each : 0;
}

/* Fills raw and chain from the variable part of a sample. Returns false if the record is
 * malformed. */
static bool decode_variable(const struct layout *l, const uint64_t *w, unsigned int n,
			    struct event *ev)
{
	unsigned int at = l->fixed_words;

	if (l->attr.sample_type & PERF_SAMPLE_READ) {
		unsigned int used = read_words(&l->attr, w + at, n - at);

		if (!used)
			return false;
		at += used;
	}
	if (l->attr.sample_type & PERF_SAMPLE_CALLCHAIN) {
		if (at >= n || w[at] >= n - at)
			return false;
		ev->chain = w + at;
		at += 1 + w[at];
	}
	if (l->raw_is != PAYLOAD_RAW) {
		ev->raw_size = (l->raw_is == PAYLOAD_WORDS ? l->fixed_words : n) * 8;
	} else if (l->attr.sample_type & PERF_SAMPLE_RAW) {
		uint32_t size;

		if (at >= n)
			return false;
		memcpy(&size, w + at, sizeof(size));
		if (sample_has_cgroup_after_raw(l->attr.sample_type))
			size += sizeof(uint64_t);
		if (size > (n - at) * 8 - sizeof(size))
			return false;
		ev->raw = (const uint8_t *)(w + at) + sizeof(size);
		ev->raw_size = size;
	}
	return true;
}

bool decoder_read_sample(const struct layout *l, const uint64_t *w, unsigned int n,
			 struct event *ev)
{
	if (n < l->fixed_words)
		return false;
	ev->chain = NULL;
	ev->raw = (const uint8_t *)w;
	ev->raw_size = 0;
	ev->key = 0;
	ev->pid = l->tid != ABSENT ? (int32_t)w[l->tid] : -1;
	ev->tid = l->tid != ABSENT ? (int32_t)(w[l->tid] >> 32) : -1;
	ev->cpu = l->cpu != ABSENT ? (int32_t)w[l->cpu] : -1;
	ev->period = l->period != ABSENT ? w[l->period] : l->fixed_period;
	if (!decode_variable(l, w, n, ev) || ev->raw_size < l->payload)
		return false;
	/* The kernel has no ids for a task that has ended but still runs. The payload has. */
	if (ev->tid == -1 && l->attr.type == PERF_TYPE_TRACEPOINT && l->raw_is == PAYLOAD_RAW &&
	    ev->raw_size >= COMMON_PID + sizeof(ev->tid))
		memcpy(&ev->tid, ev->raw + COMMON_PID, sizeof(ev->tid));
	return true;
}

static inline int decode_sample(const struct decoder *d, const struct perf_event_header *rec,
				struct event *ev, int max)
{
	const struct layout *l = layout_of(d, rec);
	const uint64_t *w = words_of(rec);
	unsigned int n = nr_words(rec);

	if (!l)
		return d->nr_shared > 1 ? -EBADMSG : 0;
	if (d->group_reads && group_reads_are_in(l))
		return group_reads_decode(d->group_reads, d, l, w, n, ev, max);
	if (!l->nr_classes)
		return 0;
	if (!decoder_read_sample(l, w, n, ev))
		return -EBADMSG;
	ev->class = l->classes[0];
	if (l->nr_classes == 1)
		return 1;
	if (l->nr_classes > max)
		return -ENOSPC;
	for (int i = 1; i < l->nr_classes; i++) {
		ev[i] = ev[0];
		ev[i].class = l->classes[i];
	}
	return l->nr_classes;
}

int decoder_decode(const struct decoder *d, const struct perf_event_header *rec, struct event *ev,
		   int max)
{
	if (max < 1)
		return -ENOSPC;
	if (rec->size < sizeof(*rec))
		return -EBADMSG;
	if (rec->type == PERF_RECORD_SAMPLE)
		return decode_sample(d, rec, ev, max);
	return side_band_decode(d, rec, ev, max);
}

_Static_assert(offsetof(struct event, tid) == offsetof(struct event, pid) + 4,
	       "they lie beside each other, as in a sample");

int decoder_decode_run(const struct decoder *restrict d, const struct slot *slots, int n,
		       uint64_t base, uint64_t from, struct event *restrict ev)
{
	const unsigned int id_word = d->id_word, fixed = d->quick_words;
	const uint32_t least = sizeof(struct perf_event_header) + 8 * fixed + sizeof(uint32_t);
	const uint32_t flags = n ? slots[0].flags : 0;
	const uint16_t member = flags >> SLOT_MEMBER_SHIFT << EVENT_MEMBER_SHIFT;
	int i;

	/* All but late ones are in time order. */
	if (n && (slots[0].time < from || flags << (32 - SLOT_MEMBER_SHIFT)))
		return 0;
	for (i = 0; i < n; i++, ev++) {
		const struct slot *slot = &slots[i];
		const struct perf_event_header *rec = slot->rec;
		const uint64_t *w = words_of(rec);
		struct quick *q = d->quick;
		uint32_t size;

		/* Records that are neighbours in time are not neighbours in memory. */
		if (i + AHEAD < n)
			__builtin_prefetch((const char *)slots[i + AHEAD].rec + 32);
		if (rec->type != PERF_RECORD_SAMPLE || slot->flags != flags || rec->size < least)
			break;
		if (id_word != ABSENT) {
			/* The id is one of the fixed words, whose presence was checked. */
			uint64_t offset = w[id_word] - d->ids.first;

			if (offset >= d->ids.nr_offsets ||
			    d->ids.by_offset[offset] == ID_TABLE_NONE)
				break;
			q += d->ids.by_offset[offset];
		}
		memcpy(&size, w + fixed, sizeof(size));
		if (!q->class || size > rec->size - least || size < q->payload)
			break;
		memcpy(&ev->pid, &w[d->quick_tid], 8); /* pid and tid */
		if (ev->tid == -1)
			break;
		ev->time = (double)(int64_t)(slot->time - base);
		ev->raw = (const uint8_t *)(w + fixed) + sizeof(size);
		ev->chain = NULL;
		ev->key = 0;
		ev->raw_size = size;
		ev->cpu = (int32_t)w[d->quick_cpu];
		ev->class = q->class;
		ev->flags = member;
		ev->ring = slot->ring;
		ev->period = q->period ? q->period : w[d->quick_period];
		q->decoded++;
	}
	return i;
}

uint64_t decoder_decoded(const struct decoder *d, uint16_t class)
{
	uint64_t n = 0;

	for (int i = 0; d->quick && i < d->nr_layouts; i++)
		if (d->quick[i].class == class)
			n += d->quick[i].decoded;
	return n;
}
