/* SPDX-License-Identifier: GPL-2.0-only */
/* perf dumps its rings one after the other and marks the end of each round. At the end of round
 * n + 1, all records older than the newest one of round n are in the file: they can be delivered in
 * order. Rounds often contain only a few records; several of them are combined, which does not
 * change the order and costs less per record. */
#include "recording/recording.h"
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "decode/decoder.h"
#include "decode/records.h"
#include "decode/sample.h"
#include "error.h"
#include "recording/header.h"
#include "recording/info.h"
#include "recording/sorter.h"
#include "source.h"
#include "recording/stream.h"
#include "recording/twins.h"
#include "formats/formats.h"
#include "stacks/unwind.h"

enum {
	RECORD_USER = 64, /* first type of perf's own records; below are those of the kernel */
	RECORD_OWN = 65,  /* unknown to perf, see struct recording_stream */
	OWN_TAG = 8,	  /* bytes */
	RECORD_FINISHED_ROUND = 68,
	MAX_RINGS = 1 << 16,
	MIN_ROUND = 1024,	  /* records */
	MAX_ROUND = 512 * 1 << 20 /* bytes of memory; longer rounds are split */
};

/* Bit set of the kernel records to deliver. */
static const uint64_t delivered =
	1 << PERF_RECORD_LOST | 1 << PERF_RECORD_COMM | 1 << PERF_RECORD_EXIT |
	1 << PERF_RECORD_FORK | 1 << PERF_RECORD_SAMPLE | 1 << PERF_RECORD_LOST_SAMPLES |
	1 << PERF_RECORD_MMAP | 1 << PERF_RECORD_MMAP2 | 1 << PERF_RECORD_KSYMBOL |
	1 << PERF_RECORD_BPF_EVENT | 1 << PERF_RECORD_CGROUP | 1 << PERF_RECORD_TEXT_POKE |
	1 << PERF_RECORD_NAMESPACES;

/* Tags of records of profscript, as in wire/own_records.h: a piece of the sender's kernel symbols,
 * the begin of a group, and the end of the stream. */
static const char symbols_tag[OWN_TAG] = {'P', 'S', 'K', 'S', 'Y', 'M', '0', '1'};
static const char group_tag[OWN_TAG] = {'P', 'S', 'G', 'R', 'O', 'U', 'P', '1'};
static const char bye_tag[OWN_TAG] = {'P', 'S', 'B', 'Y', 'E', '0', '0', '1'};

struct group_counts { /* of struct wire_group, after its tag */
	uint64_t seq, first_time, last_time;
	uint32_t events, unknown_before;
	uint64_t events_before;
};

/* What the groups of a sender say. */
struct told {
	uint64_t made;	/* events since the first group began */
	uint64_t after; /* of the sender's epoch up to the end of the last group */
	bool has_group, said_bye;
};

static const char truncated[] = "truncated while it was read: the events after that are missing";

struct recording {
	struct source source;
	int fd;
	char *name;
	struct stream *stream;
	struct header header;
	struct sorter *sorter;
	struct twins *twins; /* or NULL */
	bool ended;
	int time_word, cpu_word; /* word of time and CPU in all samples; -1: it differs */
	uint64_t last_scanned;	 /* time of the previous record, for records without a time */
	uint64_t *ring_time;	 /* of the last record of each ring */
	uint64_t newest;	 /* time of the newest record so far */
	uint64_t round_end;	 /* value of newest at the end of the last round */
	uint64_t complete;	 /* all records up to this time are read when the round ends */
	uint64_t released;	 /* all records up to this time may be delivered */
	uint64_t last_out;	 /* time of the newest delivered record */
	uint64_t promised;	 /* complete up to here when the round ends; 0: nobody said it */
	uint64_t nr_samples;	 /* read */
	uint64_t nr_lost;	 /* according to LOST records */
	uint32_t nr_unknown;	 /* of those records tell no number */
	struct told told;
	uint64_t (*own)(void *arg, const struct perf_event_header *rec); /* or NULL */
	void *own_arg;
	struct formats *symbols; /* get the kernel symbols in the stream; NULL: nobody does */
	uint32_t round_records;	 /* since the last release */
	size_t round_bytes;	 /* of memory */
};

/* Keeps only the first warning, which explains the others. */
static void warn(struct recording *r, const char *text)
{
	if (!r->source.warning.text[0] && text[0])
		error_set(&r->source.warning, 0, "%s: %s", r->name, text);
}

/* Advances the bounds at the end of a round: records complete at the end of the previous round may
 * be delivered. */
static void end_round(struct recording *r)
{
	if (r->complete > r->released)
		r->released = r->complete;
	r->complete = r->round_end;
	r->round_bytes = r->round_records = 0;
}

/* Returns when the gap of a LOST record began that belongs to no ring: all records up to the newest
 * one, or up to what the sender promised, are there. */
static uint64_t gap_start(const struct recording *r, uint64_t end)
{
	uint64_t known = r->newest > r->complete ? r->newest : r->complete;

	return known && known < end ? known : end;
}

static int add_record(struct recording *r, const struct perf_event_header *rec)
{
	const struct decoder *d = r->source.decoder;
	const uint64_t *word = (const uint64_t *)(rec + 1);
	unsigned int nr_words = (rec->size - sizeof(*rec)) / 8;
	bool sample = rec->type == PERF_RECORD_SAMPLE;
	uint64_t time;
	uint32_t ring;
	int cpu;

	if (sample && (unsigned int)r->time_word < nr_words)
		time = word[r->time_word];
	else if (!decoder_time(d, rec, &time))
		time = r->last_scanned;
	if (sample && (unsigned int)r->cpu_word < nr_words)
		cpu = (int)word[r->cpu_word];
	else
		cpu = decoder_cpu(d, rec);
	ring = (uint32_t)cpu < r->source.nr_rings ? cpu : 0;
	if (rec->type == PERF_RECORD_LOST && cpu < 0 && r->promised) {
		time = gap_start(r, time);
	} else {
		/* A gap starts after the previous record of its ring. */
		if (rec->type == PERF_RECORD_LOST && r->ring_time[ring])
			time = r->ring_time[ring];
		r->ring_time[ring] = time;
	}
	r->last_scanned = time;
	if (time > r->newest)
		r->newest = time;
	r->nr_samples += sample;
	if (rec->type == PERF_RECORD_LOST && nr_words > 1) {
		r->nr_lost += word[1];
		r->nr_unknown += !word[1];
	}
	if (sample && twins_have(r->twins, rec, ring, time))
		return 0;
	r->round_records++;
	r->round_bytes += sizeof(struct slot) + stream_keep(r->stream, rec, time);
	return sorter_add(r->sorter, time, rec, ring);
}

/* Handles a stream without further records, for now or at its end. */
static int end_of_stream(struct recording *r, int ret, struct error *err)
{
	if (ret == -EAGAIN || ret == -EINTR) {
		if (r->promised ? r->complete <= r->released : r->round_end <= r->complete)
			return -EAGAIN;
		end_round(r);
		return 0;
	}
	if (ret == -ENODATA)
		warn(r, "ends inside a record");
	else if (ret == -EBADMSG)
		warn(r, stream_is_cut(r->stream)
				? truncated
				: "damaged: skipped everything after the last readable record");
	else if (ret == -ENOMEM)
		return error_set(err, ret, "%s: out of memory", r->name);
	else if (ret)
		warn(r, strerror(-ret));
	r->ended = true;
	r->released = UINT64_MAX;
	return 0;
}

static void read_group(struct told *t, const char *body)
{
	struct group_counts g;

	memcpy(&g, body, sizeof(g));
	t->made += g.events;
	if (t->has_group &&
	    g.events_before > t->after) /* otherwise the file has another stream, too */
		t->made += g.events_before - t->after;
	t->after = g.events_before + g.events;
	t->has_group = true;
	t->said_bye = false;
}

static void read_own(struct recording *r, const struct perf_event_header *rec)
{
	const char *tag = (const char *)(rec + 1), *text = tag + OWN_TAG;
	const char *end = (const char *)rec + rec->size;
	uint64_t promised;

	if (text <= end && !memcmp(tag, symbols_tag, OWN_TAG)) {
		if (r->symbols)
			formats_add_symbols(r->symbols, text, end - text);
		return;
	}
	if (text + sizeof(struct group_counts) <= end && !memcmp(tag, group_tag, OWN_TAG))
		read_group(&r->told, text);
	else if (text <= end && !memcmp(tag, bye_tag, OWN_TAG))
		r->told.said_bye = true;
	promised = r->own ? r->own(r->own_arg, rec) : 0;
	if (promised)
		r->promised = promised;
}

/* Reads until more records may be delivered. Returns -EAGAIN if the pipe is empty now. */
static int scan(struct recording *r, struct error *err)
{
	for (;;) {
		const struct perf_event_header *rec = r->header.first;
		int ret = rec ? 1 : stream_next(r->stream, false, &rec);

		r->header.first = NULL;
		if (ret != 1)
			return end_of_stream(r, ret, err);
		if (rec->type < RECORD_USER) {
			if (delivered >> rec->type & 1 && add_record(r, rec))
				return error_set(err, -ENOMEM, "%s: out of memory", r->name);
			if (r->round_bytes < MAX_ROUND)
				continue;
			r->round_end = r->newest;
		} else if (rec->type == RECORD_OWN) {
			read_own(r, rec);
			continue;
		} else if (rec->type == RECORD_FINISHED_ROUND) {
			r->round_end = r->promised ? r->promised : r->newest;
			if (r->promised)
				r->complete = r->promised;
			if (r->round_records < MIN_ROUND)
				continue;
		} else {
			continue;
		}
		end_round(r);
		return 0;
	}
}

static int recording_next(struct source *src, struct slot *out, int max, uint64_t until,
			  struct error *err)
{
	struct recording *r = (struct recording *)src;
	uint64_t certain;
	int n = 0, ret = 0;

	if (stream_is_cut(r->stream)) {
		warn(r, truncated);
		return -ENODATA;
	}
	stream_release(r->stream, sorter_oldest(r->sorter));
	for (;;) {
		certain = until < r->released ? until : r->released;
		n += sorter_take(r->sorter, out + n, max - n, certain);
		if (n == max || r->ended || until <= r->released)
			break;
		ret = scan(r, err);
		if (ret == -EAGAIN)
			break;
		if (ret)
			return ret;
	}
	for (int i = 0; i < n; i++) {
		if (out[i].time < r->last_out)
			out[i].flags |= EVENT_LATE;
		else
			r->last_out = out[i].time;
	}
	if (n == max && n)
		certain = r->last_out ? r->last_out - 1 : 0;
	if (certain > src->horizon)
		src->horizon = certain;
	if (!n && r->ended && sorter_oldest(r->sorter) == UINT64_MAX)
		return -ENODATA;
	return n;
}

static int recording_wait(struct source *src, int64_t timeout)
{
	struct recording *r = (struct recording *)src;
	struct pollfd polled[] = {{.fd = r->fd, .events = POLLIN},
				  {.fd = src->wake_fd, .events = POLLIN}};
	struct timespec ts = {.tv_sec = timeout / 1000000000, .tv_nsec = timeout % 1000000000};

	return ppoll(polled, 2, &ts, NULL) < 0 && errno != EINTR ? -errno : 0;
}

/* What was read is delivered, without waiting for what the other rings may have had before it. */
static void recording_stop(struct source *src)
{
	struct recording *r = (struct recording *)src;

	r->ended = true;
	r->released = UINT64_MAX;
}

static uint64_t recording_now(struct source *src)
{
	(void)src;
	return UINT64_MAX;
}

static struct formats *recording_formats(struct source *src, struct error *err)
{
	(void)err;
	return ((struct recording *)src)->header.features.formats;
}

static uint64_t recording_sample_type(struct source *src, const struct event_request *req)
{
	const struct source_info *info = &src->info;
	uint64_t found = 0;

	for (uint32_t i = 0; i < info->nr_events; i++) {
		const struct recorded_event *ev = &info->events[i];

		if (ev->type != req->attr.type || ev->config != req->attr.config)
			continue;
		if (found && found != ev->sample_type)
			return 0;
		found = ev->sample_type;
	}
	return found;
}

static bool recording_has_records(struct source *src, uint32_t kind)
{
	for (int i = 0; i < decoder_nr_attrs(src->decoder); i++)
		if (records_are_asked(decoder_attr(src->decoder, i), kind))
			return true;
	return false;
}

/* Records other than samples belong to no particular attribute. */
static int add_records(struct source *src, const struct event_request *req, struct error *err)
{
	const uint32_t *types = records_types(req->record);

	if (!recording_has_records(src, req->record))
		return error_set(err, -ENOENT, "the recording contains no %s records", req->name);
	for (int i = 0; types[i]; i++)
		if (decoder_add_record(src->decoder, -1, types[i], req->class))
			return error_set(err, -ENOMEM, "out of memory");
	return 0;
}

static int recording_add_event(struct source *src, const struct event_request *req,
			       struct error *err)
{
	struct decoder *d = src->decoder;
	char names[sizeof(err->text)];
	int found = 0;

	if (req->record)
		return add_records(src, req, err);
	for (int i = 0; i < decoder_nr_attrs(d); i++) {
		const struct perf_event_attr *attr = decoder_attr(d, i);

		if (attr->type != req->attr.type || attr->config != req->attr.config)
			continue;
		if (req->attr.sample_stack_user && !unwind_is_for(attr))
			return error_set(err, -ENODATA,
					 "the recording contains no stack copies of %s to unwind; "
					 "use perf record --call-graph dwarf",
					 req->name);
		if (req->perf_event)
			decoder_set_payload(d, i, sample_payload(req->sample));
		if (decoder_add_class(d, i, req->class, req->payload))
			return error_set(err, -E2BIG, "%s is selected too many times", req->name);
		found++;
	}
	if (found)
		return 0;
	info_name_events(&src->info, names, sizeof(names));
	return error_set(err, -ENOENT, "the recording contains no samples of %s; it contains %s",
			 req->name, names);
}

static int recording_attach(struct source *src, const struct source_target *target,
			    struct error *err)
{
	struct recording *r = (struct recording *)src;

	(void)target;
	if (src->info.own_kernel && formats_use_own_symbols(r->header.features.formats))
		return error_set(err, -ENOMEM, "out of memory for symbols");
	return decoder_check(src->decoder, err);
}

static void recording_free(struct source *src)
{
	struct recording *r = (struct recording *)src;

	info_clear(&src->info);
	free(r->ring_time);
	features_clear(&r->header.features);
	stream_free(r->stream);
	sorter_free(r->sorter);
	twins_free(r->twins);
	decoder_free(src->decoder);
	if (r->fd >= 0)
		close(r->fd);
	free(r->name);
	free(r);
}

static uint64_t recording_position(const struct source *src, uint64_t *total)
{
	const struct recording *r = (const struct recording *)src;

	if (!stream_is_file(r->stream, total))
		*total = 0;
	return stream_position(r->stream);
}

/* perf counts nothing, but a stream of profscript that was sent to a file has its sender's counts.
 */
static bool recording_account(struct source *src, uint16_t class, struct source_account *out)
{
	const struct recording *r = (const struct recording *)src;

	(void)class;
	if (!r->told.has_group)
		return false;
	*out = (struct source_account){.fired = r->told.made,
				       .per_sample = 1,
				       .is_exact = r->ended && r->told.said_bye,
				       .is_sum = true,
				       .read = r->nr_samples};
	return true;
}

static const struct source_ops file_ops = {
	.formats = recording_formats,
	.sample_type = recording_sample_type,
	.has_records = recording_has_records,
	.add_event = recording_add_event,
	.open = recording_attach,
	.next = recording_next,
	.now = recording_now,
	.position = recording_position,
	.account = recording_account,
	.free = recording_free,
};

static const struct source_ops pipe_ops = {
	.formats = recording_formats,
	.sample_type = recording_sample_type,
	.has_records = recording_has_records,
	.add_event = recording_add_event,
	.open = recording_attach,
	.next = recording_next,
	.wait = recording_wait,
	.stop = recording_stop,
	.now = recording_now,
	.position = recording_position,
	.free = recording_free,
};

static int set_up(struct recording *r, struct error *err)
{
	struct header *h = &r->header;
	uint64_t size;
	int ret;

	if (!r->stream)
		r->stream = stream_new(r->fd);
	if (!r->stream)
		return error_set(err, -errno, "%s", strerror(errno));
	r->source.decoder = h->decoder = decoder_new();
	r->sorter = sorter_new();
	if (!h->decoder || !r->sorter || !features_init(&h->features) ||
	    decoder_split_groups(h->decoder))
		return error_set(err, -ENOMEM, "out of memory");
	ret = header_read(h, r->stream, err);
	if (!ret)
		ret = decoder_check(h->decoder, err);
	if (ret)
		return ret;
	if (info_fill(&r->source.info, h))
		return error_set(err, -ENOMEM, "out of memory");
	warn(r, h->warning.text);
	if (h->features.trace) {
		error_set(&r->source.notice, 0,
			  "%s: the %s in it is not decoded; only its other events are read",
			  r->name, h->features.trace);
		r->source.is_urgent = true;
	}
	r->time_word = decoder_time_word(h->decoder);
	r->cpu_word = decoder_cpu_word(h->decoder);
	r->source.ops = stream_is_file(r->stream, &size) ? &file_ops : &pipe_ops;
	r->source.start = h->features.first_time ? h->features.first_time : UINT64_MAX;
	r->source.nr_rings = h->features.nr_cpus ? h->features.nr_cpus : 1;
	if (r->source.nr_rings > MAX_RINGS)
		r->source.nr_rings = MAX_RINGS;
	r->ring_time = calloc(r->source.nr_rings, sizeof(*r->ring_time));
	if (!r->ring_time || twins_new(h->decoder, r->source.nr_rings, &r->twins))
		return error_set(err, -ENOMEM, "out of memory");
	return 0;
}

struct source *recording_open_stream(const struct recording_stream *stream, struct error *err)
{
	struct recording *r = calloc(1, sizeof(*r));
	struct error why;
	bool ok;

	if (!r) {
		close(stream->fd);
		error_set(err, -ENOMEM, "%s: out of memory", stream->name);
		return NULL;
	}
	r->fd = stream->fd;
	r->source.wake_fd = -1;
	r->own = stream->own;
	r->own_arg = stream->arg;
	r->name = strdup(stream->name);
	if (stream->start)
		r->stream = stream_continue(r->fd, stream->start, stream->start_size);
	ok = r->name && (r->stream || !stream->start);
	if (ok && !set_up(r, &why)) {
		if (!stream->own_kernel)
			r->symbols = stream->formats ? stream->formats : r->header.features.formats;
		if (r->symbols)
			formats_restart_symbols(r->symbols);
		return &r->source;
	}
	error_set(err, -EINVAL, "%s: %s", stream->name, ok ? why.text : "out of memory");
	recording_free(&r->source);
	return NULL;
}

struct source *recording_open_fd(int fd, const char *name, struct error *err)
{
	struct recording_stream stream = {.fd = fd, .name = name};

	return recording_open_stream(&stream, err);
}

void recording_read(const struct source *src, uint64_t *samples, uint64_t *lost, uint32_t *unknown)
{
	const struct recording *r = (const struct recording *)src;

	*samples = r->nr_samples;
	*lost = r->nr_lost;
	*unknown = r->nr_unknown;
}

uint64_t recording_twins(const struct source *src)
{
	return twins_count(((const struct recording *)src)->twins);
}

int recording_fd(const struct source *src)
{
	return ((const struct recording *)src)->fd;
}

void recording_close(struct source *src)
{
	struct recording *r = (struct recording *)src;

	stream_free(r->stream);
	sorter_free(r->sorter);
	close(r->fd);
	r->stream = NULL;
	r->sorter = NULL;
	r->fd = -1;
}

struct source *recording_open(const char *path, struct error *err)
{
	struct stat st;
	int fd;

	if (!strcmp(path, "-"))
		return recording_open_fd(STDIN_FILENO, "standard input", err);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0 || fstat(fd, &st)) {
		error_set(err, -errno, "%s: %s", path, strerror(errno));
		return NULL;
	}
	if (S_ISDIR(st.st_mode)) { /* the other files are not needed, or the header says so */
		int dir = fd;

		fd = openat(dir, "data", O_RDONLY | O_CLOEXEC);
		close(dir);
	}
	if (fd >= 0)
		return recording_open_fd(fd, path, err);
	error_set(err, -EISDIR, "%s: not a perf recording (a directory)", path);
	return NULL;
}
