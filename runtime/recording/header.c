/* SPDX-License-Identifier: GPL-2.0-only */
/* A file starts with a table of contents and ends with the features. A pipe contains the same as
 * records before those of the kernel. A file that is truncated after its attributes, or whose
 * writer was killed, is read without features: its records are still useful. */
#include "recording/header.h"
#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include "decode/decoder.h"
#include "recording/stream.h"

enum {
	RECORD_USER = 64, /* first type of perf's own records; below are those of the kernel */
	RECORD_ATTR = 64,
	RECORD_OWN = 65, /* perf's HEADER_EVENT_TYPE: see wire/own_records.h */
	RECORD_TRACING_DATA = 66,
	RECORD_FINISHED_ROUND = 68,
	RECORD_AUXTRACE_INFO = 70,
	RECORD_TIME_CONV = 79,
	RECORD_FEATURE = 80,
	RECORD_COMPRESSED = 81,
	RECORD_COMPRESSED2 = 83,
	PIPE_HEADER = 16, /* bytes */
	MIN_ATTR = 64,	  /* bytes, PERF_ATTR_SIZE_VER0 */
	MAX_ATTRS = 1 << 16,
	FIRST_WITHIN = 1 << 17 /* bytes of records at the start */
};

/* The start of a file. */
struct section {
	uint64_t offset, size;
};

struct contents {
	char magic[8];
	uint64_t size;
	uint64_t attr_size; /* of an attribute and the section of its ids */
	struct section attrs, data, event_types;
	uint64_t features[FEATURES / 64];
};

/* Keeps only the first warning, which explains the others. */
static void __attribute__((format(printf, 2, 3))) warn(struct header *h, const char *fmt, ...)
{
	char text[256];
	va_list ap;

	if (h->warning.text[0])
		return;
	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	error_set(&h->warning, 0, "%s", text);
}

static void read_feature(struct header *h, uint64_t id, const void *data, size_t size)
{
	if (!features_read(&h->features, id, data, size))
		warn(h, "feature %" PRIu64 " is damaged", id);
}

/* Reads an attribute of any version: missing members are 0, unknown ones are ignored. */
static struct perf_event_attr parse_attr(const void *bytes, size_t size)
{
	struct perf_event_attr attr = {};

	memcpy(&attr, bytes, size < sizeof(attr) ? size : sizeof(attr));
	return attr;
}

static int add_attr(struct decoder *d, const struct perf_event_attr *attr, const uint8_t *ids,
		    size_t nr_ids, struct error *err)
{
	int index;

	if (decoder_nr_attrs(d) >= MAX_ATTRS)
		return error_set(err, -E2BIG, "more than %d events", MAX_ATTRS);
	index = decoder_add_attr(d, attr, err);
	if (index < 0)
		return index;
	for (size_t i = 0; i < nr_ids; i++) {
		uint64_t id;

		memcpy(&id, ids + i * sizeof(id), sizeof(id));
		if (id && decoder_add_id(d, id, index))
			return error_set(err, -ENOMEM, "out of memory for %zu ids", nr_ids);
	}
	return 0;
}

static bool within(const struct section *s, uint64_t size)
{
	return s->offset <= size && s->size <= size - s->offset;
}

static int unreadable(struct error *err)
{
	return error_set(err, -errno, "%s", errno == ENODATA ? "cut off" : strerror(errno));
}

static int read_attrs(struct header *h, const struct contents *c, struct stream *s,
		      uint64_t file_size, struct error *err)
{
	uint64_t attr_size = c->attr_size - sizeof(struct section), nr_ids = 0;

	if (c->attr_size < MIN_ATTR + sizeof(struct section))
		return error_set(err, -EBADMSG, "damaged header (events of %" PRIu64 " bytes)",
				 c->attr_size);
	if (!within(&c->attrs, file_size))
		return error_set(err, -EBADMSG, "cut off inside its header");
	for (uint64_t i = 0; i < c->attrs.size / c->attr_size; i++) {
		const uint8_t *bytes =
			stream_at(s, c->attrs.offset + i * c->attr_size, c->attr_size);
		struct perf_event_attr attr;
		struct section ids;
		int ret;

		if (!bytes)
			return unreadable(err);
		attr = parse_attr(bytes, attr_size);
		memcpy(&ids, bytes + attr_size, sizeof(ids));
		/* Overlapping sections could claim far more ids than the file has room for. */
		if (!within(&ids, file_size) || ids.size / 8 > file_size / 8 - nr_ids)
			return error_set(err, -EBADMSG, "damaged header (ids of event %" PRIu64 ")",
					 i);
		nr_ids += ids.size / 8;
		bytes = stream_at(s, ids.offset, ids.size);
		if (!bytes)
			return unreadable(err);
		ret = add_attr(h->decoder, &attr, bytes, ids.size / 8, err);
		if (ret)
			return ret;
	}
	return 0;
}

/* Reads the features: after the data is a section for each feature in the contents. */
static void read_features(struct header *h, const struct contents *c, struct stream *stream,
			  uint64_t file_size)
{
	uint64_t at = c->data.offset + c->data.size;

	for (unsigned int id = 0; id < FEATURES; id++) {
		const void *bytes;
		struct section s;

		if (!(c->features[id / 64] >> id % 64 & 1))
			continue;
		bytes = file_size - at < sizeof(s) ? NULL : stream_at(stream, at, sizeof(s));
		if (!bytes) {
			warn(h, "cut off after its records: names and formats may be missing");
			return;
		}
		memcpy(&s, bytes, sizeof(s));
		at += sizeof(s);
		bytes = within(&s, file_size) ? stream_at(stream, s.offset, s.size) : NULL;
		if (bytes)
			read_feature(h, id, bytes, s.size);
		else
			warn(h, "cut off inside feature %u: names and formats may be missing", id);
	}
}

/* Reads the records that describe all of the recording. */
static void read_info_record(struct header *h, const struct perf_event_header *rec)
{
	if (rec->type == RECORD_TIME_CONV)
		features_read_conversion(&h->features, rec);
	else if (rec->type == RECORD_AUXTRACE_INFO)
		features_read_trace(&h->features, rec);
}

/* perf writes them before the kernel's records. */
static void read_first_records(struct header *h, const uint8_t *data, uint64_t size)
{
	struct {
		struct perf_event_header header;
		uint64_t words[8]; /* more than what is read of any */
	} rec;			   /* aligned */

	while (size >= sizeof(rec.header)) {
		uint16_t rec_size;

		memcpy(&rec, data, size < sizeof(rec) ? size : sizeof(rec));
		rec_size = rec.header.size;
		if (rec.header.type < RECORD_USER || rec_size < sizeof(rec.header) ||
		    rec_size > size)
			return;
		if (rec_size > sizeof(rec))
			rec.header.size = sizeof(rec);
		read_info_record(h, &rec.header);
		data += rec_size;
		size -= rec_size;
	}
}

static int read_file(struct header *h, struct stream *s, struct error *err)
{
	uint64_t size, end;
	const void *bytes;
	struct contents c;
	int ret;

	if (!stream_is_file(s, &size))
		return error_set(err, -ESPIPE,
				 "cannot read a perf.data file through a pipe: "
				 "give its name");
	if (size < sizeof(c))
		return error_set(err, -EBADMSG, "cut off inside its header");
	bytes = stream_at(s, 0, sizeof(c));
	if (!bytes)
		return unreadable(err);
	memcpy(&c, bytes, sizeof(c));
	ret = read_attrs(h, &c, s, size, err);
	if (ret)
		return ret;
	if (c.data.offset > size)
		return error_set(err, -EBADMSG, "cut off before its records");
	end = c.data.offset + c.data.size;
	if (!c.data.size) {
		warn(h, "not finished by perf: records, names and formats may be missing");
		end = size;
	} else if (!within(&c.data, size)) {
		warn(h, "cut off: contains %" PRIu64 " of %" PRIu64 " bytes of records",
		     size - c.data.offset, c.data.size);
		end = size;
	} else {
		read_features(h, &c, s, size);
	}
	if (c.features[0] >> FEATURE_DIR_FORMAT & 1 && !h->features.is_single)
		return error_set(err, -EOPNOTSUPP,
				 "part of a directory written by perf record --threads, "
				 "which is not supported");
	size = end - c.data.offset < FIRST_WITHIN ? end - c.data.offset : FIRST_WITHIN;
	bytes = stream_at(s, c.data.offset, size);
	if (bytes)
		read_first_records(h, bytes, size);
	ret = stream_limit(s, c.data.offset, end);
	return ret ? error_set(err, ret, "%s", strerror(-ret)) : 0;
}

static int read_attr_record(struct header *h, const struct perf_event_header *rec,
			    struct error *err)
{
	const uint8_t *attr = (const uint8_t *)(rec + 1);
	size_t size = rec->size - sizeof(*rec);
	struct perf_event_attr parsed;
	uint32_t attr_size = 0;

	if (size >= MIN_ATTR)
		memcpy(&attr_size, attr + offsetof(struct perf_event_attr, size),
		       sizeof(attr_size));
	if (!attr_size)
		attr_size = MIN_ATTR;
	if (attr_size < MIN_ATTR || attr_size > size)
		return error_set(err, -EBADMSG, "damaged header (event %d)",
				 decoder_nr_attrs(h->decoder));
	parsed = parse_attr(attr, attr_size);
	return add_attr(h->decoder, &parsed, attr + attr_size, (size - attr_size) / 8, err);
}

static void read_feature_record(struct header *h, const struct perf_event_header *rec)
{
	size_t size = rec->size - sizeof(*rec);
	uint64_t id;

	if (size < sizeof(id))
		return;
	memcpy(&id, rec + 1, sizeof(id));
	read_feature(h, id, (const uint8_t *)(rec + 1) + sizeof(id), size - sizeof(id));
}

static int read_header_record(struct header *h, struct stream *s,
			      const struct perf_event_header *rec, struct error *err)
{
	const void *data;
	size_t size;

	switch (rec->type) {
	case RECORD_ATTR:
		return read_attr_record(h, rec, err);
	case RECORD_FEATURE:
		read_feature_record(h, rec);
		return 0;
	case RECORD_TRACING_DATA:
		data = stream_payload(s, &size);
		if (!data)
			return error_set(err, -errno, "cut off inside its event formats");
		read_feature(h, FEATURE_TRACING_DATA, data, size);
		return 0;
	default:
		read_info_record(h, rec);
		return 0;
	}
}

/* Whether a pipe's header ends before a record of this type. */
static bool ends_header(uint32_t type)
{
	return type < RECORD_USER || type == RECORD_OWN || type == RECORD_FINISHED_ROUND ||
	       type == RECORD_COMPRESSED || type == RECORD_COMPRESSED2;
}

int64_t header_size(const uint8_t *bytes, size_t size)
{
	uint64_t at = PIPE_HEADER, pipe_size;
	struct perf_event_header rec;

	if (size < PIPE_HEADER)
		return memcmp(bytes, "PERFILE2", size < 8 ? size : 8) ? -EBADMSG : 0;
	memcpy(&pipe_size, bytes + 8, sizeof(pipe_size));
	if (memcmp(bytes, "PERFILE2", 8) != 0 || pipe_size != PIPE_HEADER)
		return -EBADMSG;
	while (at + sizeof(rec) <= size) {
		memcpy(&rec, bytes + at, sizeof(rec));
		if (rec.size < sizeof(rec))
			return -EBADMSG;
		if (ends_header(rec.type))
			return at + rec.size <= size ? (int64_t)at : 0;
		if (rec.type == RECORD_TRACING_DATA && rec.size >= sizeof(rec) + sizeof(uint32_t)) {
			uint32_t data;

			if (at + sizeof(rec) + sizeof(data) > size)
				return 0;
			memcpy(&data, bytes + at + sizeof(rec), sizeof(data));
			at += ((uint64_t)data + 7) & ~7ull;
		}
		at += rec.size;
	}
	return 0;
}

static int read_pipe(struct header *h, struct stream *s, struct error *err)
{
	const struct perf_event_header *rec;
	int ret;

	while ((ret = stream_next(s, true, &rec)) == 1 && !ends_header(rec->type)) {
		ret = read_header_record(h, s, rec, err);
		if (ret)
			return ret;
	}
	if (ret == -ENODATA || ret == -EBADMSG)
		return error_set(err, ret, "%s before its first record",
				 ret == -ENODATA ? "cut off" : "damaged");
	if (ret < 0)
		return error_set(err, ret, "%s", strerror(-ret));
	h->first = ret ? rec : NULL;
	return 0;
}

static int reject_foreign(const uint8_t *start, struct error *err)
{
	static const struct {
		const char *magic, *what;
	} kinds[] = {
		{"2ELIFREP", "recorded on a machine with the other byte order"},
		{"PERFFILE", "written by a perf older than Linux 3.0"},
		{"\x17\x08\x44tracing", "a recording of trace-cmd"},
		{"\177ELF", "an ELF file"},
		{"\x1f\x8b", "compressed by gzip"},
		{"\x28\xb5\x2f\xfd", "compressed by zstd"},
		{"\xfd\x37zXZ", "compressed by xz"},
	};
	bool text = true;

	for (unsigned int i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
		if (!memcmp(start, kinds[i].magic, strlen(kinds[i].magic)))
			return error_set(err, -EBADMSG, "not a perf recording (%s)", kinds[i].what);
	for (int i = 0; i < PIPE_HEADER; i++)
		text &= start[i] >= ' ' || (start[i] >= '\t' && start[i] <= '\r');
	return error_set(err, -EBADMSG, "not a perf recording (%s)",
			 text ? "text" : "unknown content");
}

int header_read(struct header *h, struct stream *s, struct error *err)
{
	const uint8_t *start = stream_bytes(s, PIPE_HEADER);
	uint64_t size;

	if (!start && errno != ENODATA)
		return error_set(err, -errno, "%s", strerror(errno));
	if (!start)
		return error_set(err, -EBADMSG, "not a perf recording (%s)",
				 stream_is_file(s, &size) && size ? "shorter than a header"
								  : "empty");
	if (memcmp(start, "PERFILE2", 8))
		return reject_foreign(start, err);
	memcpy(&size, start + 8, sizeof(size));
	if (size == PIPE_HEADER)
		return read_pipe(h, s, err);
	if (size == sizeof(struct contents))
		return read_file(h, s, err);
	return error_set(err, -EBADMSG, "unknown header of %" PRIu64 " bytes", size);
}
