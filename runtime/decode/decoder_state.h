/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The inside of a decoder, shared by decoder.c, which reads samples, group_reads.c, which splits
 * those of groups, and side_band.c, which reads all other records.
 */
#pragma once
#include <stdbool.h>
#include "decode/decoder.h"
#include "decode/id_table.h"
#include "decode/side_band.h"

enum { ABSENT = 255, MAX_CLASSES_OF_ATTR = 32 };

struct layout {
	struct perf_event_attr attr;
	uint16_t classes[MAX_CLASSES_OF_ATTR];
	uint8_t nr_classes;
	uint32_t payload;		    /* least number of bytes */
	uint8_t id, tid, time, cpu, period; /* word index in a sample, or ABSENT */
	uint8_t fixed_words;		    /* words before READ */
	uint8_t raw_is;			    /* enum payload */
	bool plain; /* has TID and CPU, and its payload depends on no variable part but RAW: nearly
		       all samples */
	uint64_t fixed_period; /* of samples that do not have a period */
	uint8_t trailer_words; /* words at the end of a record that is not a sample */
	uint8_t end_id, end_tid, end_time, end_cpu; /* word index counted from the end */
};

/* The part of a layout that decoder_decode_run() needs. */
struct quick {
	uint16_t class;	 /* 0: its samples are not for decoder_decode_run() */
	uint16_t period; /* 0: a word of the sample */
	uint32_t payload;
	uint64_t decoded; /* by it */
};

/* Records other than samples that are events of a class. */
struct record_class {
	uint32_t type; /* PERF_RECORD_* */
	int index;     /* of the attribute; -1: any */
	uint16_t class;
};

struct decoder {
	struct layout *layouts;
	int nr_layouts;
	struct id_table ids;	      /* to the index of a layout */
	uint8_t id_word, id_end_word; /* where all records have their id; ABSENT: only one layout */
	uint8_t time_word, time_end_word; /* the same in all layouts, or ABSENT */
	struct quick *quick;		  /* by layout */
	uint8_t quick_tid, quick_cpu, quick_period, quick_words; /* the same in all these layouts */
	uint8_t trailer_words;	      /* the same in all layouts, or ABSENT */
	int nr_shared, shared;	      /* see decoder_note_shared() */
	struct record_class *records; /* those that are events */
	uint32_t nr_records;
	struct group_reads *group_reads; /* NULL: groups are not split */
};

static inline unsigned int nr_words(const struct perf_event_header *rec)
{
	return (rec->size - sizeof(*rec)) / 8;
}

static inline const uint64_t *words_of(const struct perf_event_header *rec)
{
	return (const uint64_t *)(rec + 1);
}

/* Returns the number of words after the header of a record that is not a sample, including its
 * trailer. If several readers ask for some types of record, the kernel (6.18 too) adds the size of
 * the trailer to the header once per reader: what follows the first trailer is not part of the
 * record. */
static inline unsigned int nr_side_band_words(const struct decoder *d,
					      const struct perf_event_header *rec)
{
	unsigned int n = nr_words(rec), said;

	if (rec->type < PERF_RECORD_KSYMBOL || d->trailer_words == ABSENT)
		return n;
	said = side_band_words(rec);
	return said && said + d->trailer_words < n ? said + d->trailer_words : n;
}

/* Returns the layout of any record; NULL if it cannot be known. */
const struct layout *decoder_layout(const struct decoder *d, const struct perf_event_header *rec);
/* Fills an event, except for its class, from a sample of n words. Returns false if the sample is
 * malformed. */
bool decoder_read_sample(const struct layout *l, const uint64_t *w, unsigned int n,
			 struct event *ev);
