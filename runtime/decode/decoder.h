/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Decoder: turns perf records into struct event. It knows the attributes that the records were
 * sampled with and which of the session's classes each belongs to. All offsets that do not depend
 * on the record are computed when an attribute is added; every read is checked against the
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

/* Adds an attribute; returns its index >= 0, or a negative errno. Attributes may ask for different
 * samples as long as each has its id (IDENTIFIER or ID) at the same place: decoder_check() tells.
 */
int decoder_add_attr(struct decoder *d, const struct perf_event_attr *attr, struct error *err);
int decoder_nr_attrs(const struct decoder *d);
const struct perf_event_attr *decoder_attr(const struct decoder *d, int index);

/* Records with this id belong to attribute index. */
int decoder_add_id(struct decoder *d, uint64_t id, int index);

/* The attribute that a record belongs to; NULL where that cannot be known. */
const struct perf_event_attr *decoder_attr_of(const struct decoder *d,
					      const struct perf_event_header *rec);

/* Samples of attribute index are delivered as class (several calls: once for each class), if their
 * payload has at least so many bytes. An attribute without class is skipped. */
int decoder_add_class(struct decoder *d, int index, uint16_t class, uint32_t payload);

/* Records of this type, which are no samples, are delivered as class: those of attribute index,
 * which then is for nothing else; -1: of all, besides what the session itself takes them for. Such
 * an event's raw is the record behind its header. */
int decoder_add_record(struct decoder *d, int index, uint32_t type, uint16_t class);

/* What the payload of an attribute's samples is, see sample.h; RAW without this call. */
void decoder_set_payload(struct decoder *d, int index, enum payload payload);

/* The attribute of a class, the first one if it has several; NULL: there is none. */
const struct perf_event_attr *decoder_attr_of_class(const struct decoder *d, uint16_t class);

/* To be called once when all attributes and ids are in. -EINVAL with a message when records
 * could not be told apart. */
int decoder_check(struct decoder *d, struct error *err);

/* Time of any record, ns. False where it has none (no sample_id_all, a synthetic record, or too
 * short to hold one): the caller orders it by its neighbours. */
bool decoder_time(const struct decoder *d, const struct perf_event_header *rec, uint64_t *time);

/* Word behind the header that holds a sample's time, or cpu, when that is the same for all
 * attributes, else -1: for readers that look at nothing else. */
int decoder_time_word(const struct decoder *d);
int decoder_cpu_word(const struct decoder *d);

/* Cpu of any record, -1 where it has none. */
int decoder_cpu(const struct decoder *d, const struct perf_event_header *rec);

/* Fills ev[0..] with the events the record stands for: one for each class of its attribute, at
 * most max. Returns how many (0: not asked for), or -EBADMSG for a record that lies about its
 * contents, or -ENOSPC. time, ring and flags are left to the caller. */
int decoder_decode(const struct decoder *d, const struct perf_event_header *rec, struct event *ev,
		   int max);

/* The same for a run of slots, as far as they are plain samples: on time, of one class, from `from`
 * on (ns). Their events are complete but for the key; base is subtracted from the times. Returns
 * how many of the n it decoded; the next one is for decoder_decode(). */
int decoder_decode_run(const struct decoder *d, const struct slot *slots, int n, uint64_t base,
		       uint64_t from, struct event *ev);
