/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The decoder turns perf records into struct event. It knows the attributes that the records were
 * sampled with, and the session's classes that each of them belongs to. All offsets that do not
 * depend on the record are computed when an attribute is added. Every read is checked against the
 * record's size, because recordings are not trusted.
 */
#pragma once
#include <stdbool.h>
#include <stdint.h>
#include <linux/perf_event.h>
#include "event.h"
#include "decode/sample.h"

struct decoder;
struct error;

struct decoder *decoder_new(void);
void decoder_free(struct decoder *d);

/* Adds an attribute. Returns its index (>= 0) or a negative errno. Attributes may ask for different
 * samples as long as all samples have their id (IDENTIFIER or ID) at the same place, which
 * decoder_check() checks. */
int decoder_add_attr(struct decoder *d, const struct perf_event_attr *attr, struct error *err);
int decoder_nr_attrs(const struct decoder *d);
const struct perf_event_attr *decoder_attr(const struct decoder *d, int index);

/* Records with this id belong to the attribute with this index. */
int decoder_add_id(struct decoder *d, uint64_t id, int index);

/* Says that samples of an attribute may have the id of another reader's event. When a software
 * event such as page-faults occurs, the kernel (6.18 too) fills the id once for all readers. If
 * only one attribute is such an event, samples with an unknown id belong to it; with several, they
 * are malformed. */
void decoder_note_shared(struct decoder *d, int index);

/* Returns the attribute that a record belongs to; NULL if it cannot be known. */
const struct perf_event_attr *decoder_attr_of(const struct decoder *d,
					      const struct perf_event_header *rec);

/* The same as an index; -1: it cannot be known. */
int decoder_index_of(const struct decoder *d, const struct perf_event_header *rec);
/* Returns the number of ids of an attribute, and writes up to max of them. */
uint32_t decoder_ids(const struct decoder *d, int index, uint64_t *ids, uint32_t max);
/* Whether the samples of an attribute are events of a class. */
bool decoder_has_class(const struct decoder *d, int index, uint16_t class);

/* Delivers the samples of an attribute as events of a class, if their payload has at least this
 * many bytes. Several calls deliver a sample once per class. Attributes without a class are
 * ignored. */
int decoder_add_class(struct decoder *d, int index, uint16_t class, uint32_t payload);

/* Delivers records of this type, which are not samples, as events of a class. index: only the
 * records of that attribute, which then has no other use; -1: all, in addition to the events that
 * the session itself makes of them. The raw part of such an event is the body of the record. */
int decoder_add_record(struct decoder *d, int index, uint32_t type, uint16_t class);

/* Sets what the payload of an attribute's samples is, see sample.h. The default is RAW. */
void decoder_set_payload(struct decoder *d, int index, enum payload payload);

/* Splits samples with the counts of a group into one event per member, see group_reads.h. */
int decoder_split_groups(struct decoder *d);

/* Returns the (first) attribute of a class; NULL if there is none. */
const struct perf_event_attr *decoder_attr_of_class(const struct decoder *d, uint16_t class);

/* To be called once, after all attributes and ids were added. Returns -EINVAL with a message if
 * records could not be told apart. */
int decoder_check(struct decoder *d, struct error *err);

/* Gets the time of any record, ns. Returns false if it has none (no sample_id_all, a synthetic
 * record, or a record that is too short). The caller then orders it by its neighbours. */
bool decoder_time(const struct decoder *d, const struct perf_event_header *rec, uint64_t *time);

/* Return the index of the word after the header that holds a sample's time or CPU, if that is the
 * same for all attributes; else -1. For readers that look at nothing else. */
int decoder_time_word(const struct decoder *d);
int decoder_cpu_word(const struct decoder *d);

/* Returns the CPU of any record, or -1. */
int decoder_cpu(const struct decoder *d, const struct perf_event_header *rec);

/* Fills ev[0..] with the events of a record: one per class of its attribute, at most max. Returns
 * their number (0: nobody asked for it), -EBADMSG for a malformed record, or -ENOSPC. The caller
 * sets time, ring and flags. */
int decoder_decode(const struct decoder *d, const struct perf_event_header *rec, struct event *ev,
		   int max);

/* The same for a run of slots, as long as they are plain samples: on time, of a single class, not
 * before `from` (ns). Sets all of their events but the key; base is subtracted from the times.
 * Returns how many of the n slots it decoded; the next one is for decoder_decode(). */
int decoder_decode_run(const struct decoder *d, const struct slot *slots, int n, uint64_t base,
		       uint64_t from, struct event *ev);
/* Returns how many events of a class it has decoded. */
uint64_t decoder_decoded(const struct decoder *d, uint16_t class);
