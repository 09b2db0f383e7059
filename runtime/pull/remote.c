/* SPDX-License-Identifier: GPL-2.0-only */
#include "pull/remote.h"
#include <errno.h>
#include <math.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
#include "clocks/vm.h"
#include "decode/decoder.h"
#include "error.h"
#include "formats/formats.h"
#include "formats/tracepoint.h"
#include "os/clock.h"
#include "pull/gaps.h"
#include "pull/handshake.h"
#include "pull/remote_clock.h"
#include "recording/header.h"
#include "recording/recording.h"
#include "source.h"
#include "wire/channel.h"
#include "wire/own_records.h"
#include "wire/preamble.h"

enum {
	HEAD_STEP = 1 << 16,
	MAX_HEAD = 64 << 20,	  /* bytes; the formats of all events of a kernel are 4 MB */
	HEAD_TIME = 2000000000,	  /* ns after which a silent peer is reported */
	BACK_OFF_MIN = 100000000, /* ns */
	PING_PERIOD = 1000000000  /* ns */
};
#define BACK_OFF_MAX 5000000000ull

enum state { IDLE, CONNECTING, READING_HEAD, OPEN, ENDED };

struct remote {
	struct source source;
	struct channel *channel;
	enum state state;
	int fd; /* while the header is read; then it belongs to the stream */
	uint8_t *head;
	size_t head_size, head_room;
	uint64_t head_since; /* when the connection was made, or has brought something */
	uint64_t retry_at, back_off;
	struct handshake handshake;
	struct secret secret;
	struct vm *vm;	  /* the virtual machine that sends; NULL: it is none, or unknown */
	struct error why; /* why it is not connected */

	struct source *first;  /* the first stream: its formats and names live as long as this */
	struct source *stream; /* NULL: not connected */
	struct event_request *requests;
	uint32_t nr_requests;
	bool stopped, told; /* told: that it is connected */
	bool aligns;	    /* its first records will say how its clock relates to ours */

	struct wire_hello hello; /* all 0: not a stream of profscript */
	bool is_own_kernel, said_bye, is_damaged;
	struct remote_clock clock;
	struct wire_pair pair; /* the latest one, not yet taken; tsc 0: none */
	struct gaps gaps;
	uint64_t ping_at;

	struct slot held[BATCH_MAX]; /* converted, not yet delivered */
	int at, n;
	uint64_t last_time; /* of the newest slot */
};

static struct remote *remote_of(struct source *src)
{
	return (struct remote *)src;
}

static const struct remote *const_of(const struct source *src)
{
	return (const struct remote *)src;
}

static bool is_ours(const struct remote *r)
{
	return r->hello.version;
}

const char *remote_address(const struct source *src)
{
	return channel_address(const_of(src)->channel);
}

bool remote_is_own_kernel(const struct source *src)
{
	return const_of(src)->is_own_kernel;
}

double remote_clock_error(const struct source *src, const char **method)
{
	if (method)
		*method = const_of(src)->clock.method;
	return const_of(src)->clock.error;
}

bool remote_take_pair(struct source *src, struct wire_pair *out)
{
	struct remote *r = remote_of(src);
	bool has_pair = r->pair.tsc;

	*out = r->pair;
	r->pair.tsc = 0;
	return has_pair;
}

/* Own records ---------------------------------------------------------------------------------- */

static void notify(struct remote *r, const char *what, const char *why)
{
	struct error *notice = &r->source.notice;

	error_set(notice, 0, "%s%s%s %s%s%s", notice->text, notice->text[0] ? "; " : "", what,
		  channel_peer(r->channel), why[0] ? ": " : "", why);
	r->source.is_urgent = true;
}

/* A stream of profscript is told when its first group is there: from then on nothing is missed. */
static void tell_connected(struct remote *r)
{
	enum channel_kind kind = channel_kind(r->channel);

	if (!r->told && kind != CHANNEL_FILE && kind != CHANNEL_STDIO)
		notify(r, "Connected to", "");
	r->told = true;
}

static bool has_tag(const struct perf_event_header *rec, const char *tag, size_t size)
{
	const struct wire_head *head = (const void *)rec;

	return rec->size >= size && !memcmp(head->tag, tag, WIRE_TAG);
}

static uint64_t read_group(struct remote *r, const struct wire_group *group)
{
	struct gaps_read read;

	if (group->last_time < group->first_time || group->last_time >= INT64_MAX) {
		r->is_damaged = true;
		return 0;
	}
	recording_read(r->stream, &read.samples, &read.lost);
	gaps_group(&r->gaps, group, r->hello.epoch,
		   remote_clock_convert(&r->clock, group->first_time),
		   remote_clock_convert(&r->clock, group->last_time), &read);
	r->back_off = BACK_OFF_MIN;
	tell_connected(r);
	return group->last_time;
}

static void read_pair(struct remote *r, const struct wire_pair *pair)
{
	r->pair = *pair;
	remote_clock_pair(&r->clock, pair, &r->hello);
}

/* Reads a record that perf does not know. Unknown tags are those of later versions. */
static uint64_t read_own(void *arg, const struct perf_event_header *rec)
{
	struct remote *r = arg;

	if (rec->size < sizeof(struct wire_head))
		return 0;
	if (has_tag(rec, WIRE_GROUP, sizeof(struct wire_group)))
		return read_group(r, (const void *)rec);
	if (has_tag(rec, WIRE_PAIR, sizeof(struct wire_pair)))
		read_pair(r, (const void *)rec);
	else if (has_tag(rec, WIRE_PONG, sizeof(struct wire_pong)))
		remote_clock_pong(&r->clock, (const void *)rec);
	else if (has_tag(rec, WIRE_BYE, sizeof(struct wire_bye)))
		r->said_bye = true;
	return 0;
}

/* Reads the own records that follow the header: HELLO and the first PAIR. Returns 1, 0 if they are
 * not all there, or -EPROTO with a message. */
static int read_hello(struct remote *r, size_t at, struct error *err)
{
	struct perf_event_header rec;
	struct wire_hello here = {};

	memcpy(&rec, r->head + at, sizeof(rec));
	memset(&r->hello, 0, sizeof(r->hello));
	r->is_own_kernel = false;
	if (rec.type != WIRE_RECORD || rec.size < sizeof(struct wire_head) ||
	    memcmp(r->head + at + sizeof(rec), WIRE_HELLO, WIRE_TAG) != 0)
		return 1;
	memcpy(&r->hello, r->head + at, rec.size < sizeof(r->hello) ? rec.size : sizeof(r->hello));
	r->hello.hostname[sizeof(r->hello.hostname) - 1] = '\0';
	if (rec.size < sizeof(r->hello) || r->hello.version != WIRE_VERSION)
		return error_set(err, -EPROTO,
				 "the sender speaks version %u of the protocol, this is version %u",
				 r->hello.version, WIRE_VERSION);
	at += rec.size;
	if (at + sizeof(rec) > r->head_size)
		return 0;
	memcpy(&rec, r->head + at, sizeof(rec));
	if (at + rec.size > r->head_size)
		return 0;
	preamble_fill(&here);
	r->is_own_kernel = !memcmp(here.boot_id, r->hello.boot_id, sizeof(here.boot_id));
	remote_clock_start(&r->clock, r->is_own_kernel);
	if (rec.type == WIRE_RECORD && rec.size >= sizeof(struct wire_pair)) {
		struct wire_pair pair;

		memcpy(&pair, r->head + at, sizeof(pair));
		if (!memcmp(pair.head.tag, WIRE_PAIR, WIRE_TAG))
			read_pair(r, &pair);
	}
	return 1;
}

/* Connecting ----------------------------------------------------------------------------------- */

static void retry_later(struct remote *r)
{
	if (r->fd >= 0)
		close(r->fd);
	r->fd = -1;
	r->head_size = 0;
	r->state = IDLE;
	r->retry_at = clock_monotonic() + r->back_off;
	r->back_off = r->back_off * 2 < BACK_OFF_MAX ? r->back_off * 2 : BACK_OFF_MAX;
}

/* Whether trying again may help: the sender is not there yet. */
static bool is_temporary(const struct remote *r)
{
	return channel_is_socket(r->channel) || channel_kind(r->channel) == CHANNEL_DEVICE;
}

static void start_reading(struct remote *r, int fd)
{
	r->fd = fd;
	r->state = READING_HEAD;
	r->head_size = 0;
	r->head_since = clock_monotonic();
	r->handshake = (struct handshake){0};
	r->said_bye = r->is_damaged = r->told = false;
}

/* Returns 0, or a negative errno with a message if there is no point in trying again. */
static int open_channel(struct remote *r, struct error *err)
{
	int fd = channel_open(r->channel, false, &r->why);

	if (fd >= 0)
		start_reading(r, fd);
	else if (fd == -EINPROGRESS)
		r->state = CONNECTING;
	else if (!is_temporary(r))
		return error_set(err, fd, "%s", r->why.text);
	else
		retry_later(r);
	return 0;
}

static const char *field_change(struct tracepoint *was, struct tracepoint *is)
{
	uint32_t n = tracepoint_nr_fields(was);

	if (n != tracepoint_nr_fields(is))
		return "the number of fields";
	for (uint32_t i = 0; i < n; i++) {
		const struct field *a = tracepoint_field(was, i), *b = tracepoint_field(is, i);

		if (strcmp(a->name, b->name) || a->offset != b->offset || a->size != b->size ||
		    a->flags != b->flags)
			return a->name;
	}
	return NULL;
}

/* Finds an event of the first stream in this one, whose ids may be others, and checks that its
 * fields are still the same. */
static int find_again(struct remote *r, struct source *stream, struct event_request *req,
		      struct error *err)
{
	struct formats *were = r->first->ops->formats(r->first, NULL);
	struct formats *are = stream->ops->formats(stream, NULL);
	struct tracepoint *was, *is;
	const char *change, *colon;
	char system[128];

	if (req->attr.type != PERF_TYPE_TRACEPOINT || req->record)
		return 0;
	colon = strchr(req->name, ':');
	if (!colon || (size_t)(colon - req->name) >= sizeof(system))
		return 0;
	memcpy(system, req->name, colon - req->name);
	system[colon - req->name] = '\0';
	was = formats_find(were, system, colon + 1, NULL);
	is = formats_find(are, system, colon + 1, NULL);
	if (!was || !is)
		return error_set(err, -ENOENT, "it no longer sends %s", req->name);
	change = field_change(was, is);
	if (change)
		return error_set(err, -EINVAL, "%s has changed there (%s)", req->name, change);
	req->attr.config = tracepoint_id(is);
	return 0;
}

/* Gives the events of the run to a new stream. */
static int attach_again(struct remote *r, struct source *stream, struct error *err)
{
	int ret = 0;

	for (uint32_t i = 0; i < r->nr_requests && !ret; i++) {
		ret = find_again(r, stream, &r->requests[i], err);
		if (!ret)
			ret = stream->ops->add_event(stream, &r->requests[i], err);
	}
	return ret ? ret : decoder_check(stream->decoder, err);
}

static void use_first(struct remote *r, struct source *stream)
{
	struct source_info *info = &r->source.info;

	r->first = stream;
	*info = stream->info;
	info->host = r->hello.hostname[0] ? r->hello.hostname : channel_address(r->channel);
	info->is_live = is_ours(r) && channel_kind(r->channel) != CHANNEL_FILE;
	if (info->is_live) /* times are converted */
		info->clock = (struct source_clock){.id = CLOCK_MONOTONIC, .is_live = true};
	r->source.nr_rings = stream->nr_rings;
	r->source.start = UINT64_MAX;
	if (is_ours(r)) /* it may be booted from the same file, and be at another address */
		info->own_kernel = stream->info.own_kernel = r->is_own_kernel;
	if (r->clock.is_known)
		clock_wall_zero(&info->wall_sec, &info->wall_nsec);
}

static int open_stream(struct remote *r, bool is_pipe, struct error *err)
{
	/* Other recordings are files with a table of contents, which are mapped. */
	bool from_start = !is_pipe && lseek(r->fd, 0, SEEK_SET) == 0;
	struct recording_stream input = {
		.fd = r->fd,
		.name = channel_address(r->channel),
		.start = from_start ? NULL : r->head,
		.start_size = r->head_size,
		.own = read_own,
		.arg = r,
		.own_kernel = r->is_own_kernel,
		.formats = r->first ? r->first->ops->formats(r->first, NULL) : NULL,
	};
	struct source *stream = recording_open_stream(&input, err);
	int ret;

	r->fd = -1;
	free(r->head);
	r->head = NULL;
	r->head_size = r->head_room = 0;
	if (!stream)
		return -EPROTO;
	if (r->first) {
		ret = attach_again(r, stream, err);
		if (ret) {
			stream->ops->free(stream);
			return ret;
		}
	} else {
		use_first(r, stream);
	}
	r->stream = stream;
	r->source.decoder = stream->decoder;
	r->state = OPEN;
	r->ping_at = 0;
	if (!is_ours(r))
		tell_connected(r);
	return 0;
}

/* The connection ended before its header did. */
static int lose_header(struct remote *r, int code, struct error *err)
{
	if (r->handshake.state == HANDSHAKE_ANSWERED)
		return error_set(err, -EACCES, "%s: the sender does not accept the secret",
				 channel_peer(r->channel));
	error_set(&r->why, 0, "%s: %s", channel_peer(r->channel),
		  code		 ? strerror(code)
		  : r->head_size ? "the connection ended inside the header"
				 : "the connection ended before anything was sent");
	if (!is_temporary(r))
		return error_set(err, -EPROTO, "%s", r->why.text);
	retry_later(r);
	return 0;
}

/* Removes from the head what the sender says about the secret. Returns 0 if the stream follows;
 * -EAGAIN, or another negative errno with a message. */
static int shake_hands(struct remote *r, struct error *err)
{
	int n = handshake_step(&r->handshake, &r->secret, r->fd, r->head, r->head_size, err);

	if (n <= 0)
		return n;
	r->head_size -= n;
	memmove(r->head, r->head + n, r->head_size);
	return 0;
}

/* Reads the header as far as it has arrived, without waiting. */
static int read_head(struct remote *r, struct error *err)
{
	for (;;) {
		int64_t size = 0;
		int ret = shake_hands(r, err);
		ssize_t n;

		if (!ret)
			size = header_size(r->head, r->head_size);
		if (size)
			ret = size > 0 ? read_hello(r, size, err) : 1;
		if (ret < 0 && ret != -EAGAIN)
			return error_set(err, ret, "%s: %s", channel_peer(r->channel), err->text);
		if (ret == -EAGAIN)
			ret = 0;
		if (ret)
			return open_stream(r, size > 0, err);
		if (r->head_size >= MAX_HEAD)
			return error_set(err, -E2BIG,
					 "%s: its header has no end (more than %d MiB)",
					 channel_peer(r->channel), MAX_HEAD >> 20);
		if (r->head_room - r->head_size < HEAD_STEP) {
			size_t room = r->head_room ? r->head_room * 2 : HEAD_STEP;
			uint8_t *grown = realloc(r->head, room);

			if (!grown)
				return error_set(err, -ENOMEM, "out of memory");
			r->head = grown;
			r->head_room = room;
		}
		n = read(r->fd, r->head + r->head_size, r->head_room - r->head_size);
		if (n < 0 && (errno == EAGAIN || errno == EINTR)) {
			if (clock_monotonic() - r->head_since > HEAD_TIME)
				error_set(&r->why, 0, "%s: it has sent %s so far",
					  channel_peer(r->channel),
					  r->head_size ? "only a part of its header" : "nothing");
			return 0;
		}
		if (n <= 0)
			return lose_header(r, n ? errno : 0, err);
		r->head_size += n;
		r->head_since = clock_monotonic();
	}
}

/* Goes on connecting without waiting. Returns 0, or a negative errno with a message if there is no
 * point in going on. */
static int connect_step(struct remote *r, struct error *err)
{
	int ret = 0;

	if (r->state == IDLE && clock_monotonic() >= r->retry_at)
		ret = open_channel(r, err);
	if (!ret && r->state == CONNECTING) {
		struct pollfd poll_fd = {channel_connecting(r->channel), POLLOUT, 0};

		if (poll(&poll_fd, 1, 0) > 0)
			ret = open_channel(r, err);
	}
	if (!ret && r->state == READING_HEAD)
		ret = read_head(r, err);
	return ret;
}

static int remote_poll_fd(struct source *src, short *events)
{
	const struct remote *r = const_of(src);

	*events = POLLIN;
	switch (r->state) {
	case CONNECTING:
		*events = POLLOUT;
		return channel_connecting(r->channel);
	case READING_HEAD:
		return r->fd;
	case OPEN:
		return recording_fd(r->stream);
	default:
		return -1;
	}
}

static void sleep_until(struct remote *r, uint64_t end)
{
	struct pollfd poll_fd = {.fd = -1};
	uint64_t now = clock_monotonic();

	if (r->state == IDLE && r->retry_at < end)
		end = r->retry_at;
	poll_fd.fd = remote_poll_fd(&r->source, &poll_fd.events);
	if (end > now) {
		struct timespec ts = {(end - now) / 1000000000, (end - now) % 1000000000};

		ppoll(&poll_fd, 1, &ts, NULL);
	}
}

int remote_connect(struct source *src, uint64_t timeout, struct error *err)
{
	struct remote *r = remote_of(src);
	uint64_t end = clock_monotonic() + timeout;

	do {
		int ret = connect_step(r, err);

		if (ret)
			return ret;
		if (r->state == OPEN)
			return 1;
		sleep_until(r, end);
	} while (clock_monotonic() < end);
	error_set(err, 0, "%s", r->why.text);
	return 0;
}

/* Delivering ----------------------------------------------------------------------------------- */

static void send_ping(struct remote *r)
{
	uint64_t now = clock_monotonic();
	struct wire_ping ping;

	if (!(r->hello.flags & WIRE_PONGS) || r->is_own_kernel || now < r->ping_at ||
	    !is_temporary(r))
		return;
	r->ping_at = now + PING_PERIOD;
	remote_clock_ping(&r->clock, &ping);
	/* A ping that does not fit now is of no use later. */
	if (channel_is_socket(r->channel))
		send(recording_fd(r->stream), &ping, sizeof(ping), MSG_DONTWAIT | MSG_NOSIGNAL);
	else if (write(recording_fd(r->stream), &ping, sizeof(ping)) < 0)
		r->ping_at = UINT64_MAX; /* the device goes one way only */
}

static void drop_stream(struct remote *r)
{
	if (r->stream && r->stream != r->first)
		r->stream->ops->free(r->stream);
	else if (r->stream)
		recording_close(r->stream);
	r->stream = NULL;
	r->source.decoder = r->first->decoder;
}

/* The stream has ended, and everything in it was delivered. */
static void end_stream(struct remote *r)
{
	const char *warning = r->stream->warning.text;
	bool again = is_ours(r) && !r->said_bye && is_temporary(r) && !r->stopped;
	struct gaps_read read;

	if (again) {
		recording_read(r->stream, &read.samples, &read.lost);
		gaps_broken(&r->gaps, &read);
		notify(r, "Disconnect from", r->is_damaged ? "its data is damaged" : warning);
	} else {
		if (channel_is_socket(r->channel) && !r->stopped)
			notify(r, "Disconnect from", "");
		if (!r->said_bye && warning[0])
			error_set(&r->source.warning, 0, "%s", warning);
	}
	drop_stream(r);
	r->why.text[0] = '\0';
	r->state = again ? IDLE : ENDED;
	r->retry_at = clock_monotonic() + r->back_off;
}

int remote_set_vm(struct source *src, const char *which, struct error *err)
{
	struct remote *r = remote_of(src);

	r->vm = vm_find("", which, err);
	if (!r->vm)
		return -ENOENT;
	if (remote_clock_set_vm(&r->clock, r->vm))
		return error_set(err, -ENOMEM, "out of memory");
	return 0;
}

const struct vm *remote_vm(const struct source *src)
{
	return const_of(src)->vm;
}

void remote_align(struct source *src)
{
	struct remote *r = remote_of(src);
	struct source_info *info = &src->info;
	const struct source_info *theirs = &r->first->info;
	double sec, nsec;

	if (r->clock.is_known)
		return;
	clock_wall_zero(&sec, &nsec);
	r->aligns = isnan(theirs->wall_sec);
	if (!r->aligns)
		remote_clock_set(&r->clock,
				 (int64_t)(theirs->wall_sec - sec) * 1000000000 +
					 (int64_t)(theirs->wall_nsec - nsec),
				 INFINITY);
	info->wall_sec = sec;
	info->wall_nsec = nsec;
}

/* Its records cannot be newer than now. Those without a time do not tell anything. */
static void align_to_now(struct remote *r, uint64_t newest)
{
	if (!newest)
		return;
	r->aligns = false;
	remote_clock_set(&r->clock, (int64_t)(clock_monotonic() - newest), INFINITY);
}

static int fill(struct remote *r, struct error *err)
{
	struct error why = {};
	int n;

	r->at = r->n = 0;
	gaps_recycle(&r->gaps);
	if (r->state != OPEN && r->state != ENDED) {
		int ret = r->stopped ? 0 : connect_step(r, &why);

		if (ret == -ENOMEM || ret == -EINVAL || ret == -ENOENT)
			return error_set(err, ret, "%s: %s", channel_address(r->channel), why.text);
		if (ret) { /* someone else may have answered there */
			notify(r, "Waiting for", why.text);
			retry_later(r);
		}
		if (r->stopped)
			r->state = ENDED;
	}
	if (r->state == ENDED)
		return gaps_next(&r->gaps, UINT64_MAX) ? 0 : -ENODATA;
	if (r->state != OPEN)
		return 0;
	send_ping(r);
	n = r->is_damaged ? -ENODATA
			  : r->stream->ops->next(r->stream, r->held, BATCH_MAX, UINT64_MAX, err);
	if (n == -ENODATA) {
		end_stream(r);
		return r->state == ENDED && !gaps_next(&r->gaps, UINT64_MAX) ? -ENODATA : 0;
	}
	if (n < 0)
		return n;
	if (n && r->aligns)
		align_to_now(r, r->held[n - 1].time);
	for (int i = 0; i < n; i++) {
		uint64_t time = remote_clock_convert(&r->clock, r->held[i].time);

		r->held[i].time = time;
		if (time > r->last_time)
			r->last_time = time;
	}
	r->n = n;
	return 0;
}

/* Adds the gaps up to a time to the output. */
static int take_gaps(struct remote *r, struct slot *out, int max, uint64_t until)
{
	int n = 0;

	while (n < max) {
		const struct gap *gap = gaps_next(&r->gaps, until);

		if (!gap)
			break;
		gaps_take(&r->gaps);
		out[n++] = (struct slot){
			.time = gap->from, .rec = gap, .flags = REMOTE_GAP << SLOT_OWN_SHIFT};
	}
	return n;
}

/* Up to which time everything was delivered, when nothing is held. */
static uint64_t stream_horizon(const struct remote *r)
{
	uint64_t horizon = r->stream ? r->stream->horizon : 0;

	if (r->state == ENDED)
		return UINT64_MAX;
	/* A stream that has ended is complete, but what follows it is not known. */
	return horizon && horizon != UINT64_MAX ? remote_clock_convert(&r->clock, horizon)
						: r->last_time;
}

static int remote_next(struct source *src, struct slot *out, int max, uint64_t until,
		       struct error *err)
{
	struct remote *r = remote_of(src);
	uint64_t horizon;
	int n = 0;

	if (r->at == r->n) {
		int ret = fill(r, err);

		if (ret < 0)
			return ret;
	}
	while (n < max && r->at < r->n && r->held[r->at].time <= until) {
		n += take_gaps(r, out + n, max - n, r->held[r->at].time);
		if (n < max)
			out[n++] = r->held[r->at++];
	}
	horizon = r->at < r->n ? r->held[r->at].time - 1 : stream_horizon(r);
	if (r->at == r->n && n < max)
		n += take_gaps(r, out + n, max - n, horizon < until ? horizon : until);
	if (horizon > until)
		horizon = until;
	if (horizon > src->horizon && n < max)
		src->horizon = horizon;
	return n;
}

static int remote_wait(struct source *src, int64_t timeout)
{
	struct remote *r = remote_of(src);

	sleep_until(r, clock_monotonic() + timeout);
	return 0;
}

static void remote_stop(struct source *src)
{
	struct remote *r = remote_of(src);

	r->stopped = true;
	if (r->stream && r->stream->ops->stop)
		r->stream->ops->stop(r->stream);
}

static uint64_t remote_now(struct source *src)
{
	(void)src;
	return UINT64_MAX;
}

static uint64_t remote_convert(struct source *src, uint64_t time)
{
	return remote_clock_convert(&remote_of(src)->clock, time);
}

static int remote_decode(struct source *src, const struct slot *slot, struct event *ev)
{
	const struct gap *gap = slot->rec;

	(void)src;
	*ev = (struct event){.class = EVENT_LOST,
			     .pid = -1,
			     .tid = -1,
			     .cpu = -1,
			     .period = gap->lost,
			     .key = gap->to};
	return 1;
}

static int remote_decode_run(struct source *src, const struct slot *slots, int n, uint64_t base,
			     uint64_t from, struct event *ev)
{
	(void)src, (void)slots, (void)n, (void)base, (void)from, (void)ev;
	return 0;
}

static struct formats *remote_formats(struct source *src, struct error *err)
{
	struct source *first = remote_of(src)->first;

	return first->ops->formats(first, err);
}

static uint64_t remote_sample_type(struct source *src, const struct event_request *req)
{
	struct source *first = remote_of(src)->first;

	return first->ops->sample_type(first, req);
}

static bool remote_has_records(struct source *src, uint32_t kind)
{
	struct source *first = remote_of(src)->first;

	return first->ops->has_records(first, kind);
}

static int remote_add_event(struct source *src, const struct event_request *req, struct error *err)
{
	struct remote *r = remote_of(src);
	struct event_request *grown = reallocarray(r->requests, r->nr_requests + 1, sizeof(*grown));

	if (!grown)
		return error_set(err, -ENOMEM, "out of memory");
	r->requests = grown;
	if (event_request_copy(&grown[r->nr_requests], req))
		return error_set(err, -ENOMEM, "out of memory");
	r->nr_requests++;
	return r->first->ops->add_event(r->first, req, err);
}

static int remote_attach(struct source *src, const struct source_target *target, struct error *err)
{
	struct remote *r = remote_of(src);

	return r->first->ops->open(r->first, target, err);
}

void remote_free(struct source *src)
{
	struct remote *r = remote_of(src);

	if (r->stream && r->stream != r->first)
		r->stream->ops->free(r->stream);
	if (r->first)
		r->first->ops->free(r->first);
	if (r->fd >= 0)
		close(r->fd);
	for (uint32_t i = 0; i < r->nr_requests; i++)
		event_request_clear(&r->requests[i]);
	free(r->requests);
	remote_clock_clear(&r->clock);
	vm_free(r->vm);
	explicit_bzero(&r->secret, sizeof(r->secret));
	free(r->head);
	if (r->channel)
		channel_free(r->channel);
	free(r);
}

static const struct source_ops remote_ops = {
	.formats = remote_formats,
	.sample_type = remote_sample_type,
	.has_records = remote_has_records,
	.add_event = remote_add_event,
	.open = remote_attach,
	.next = remote_next,
	.wait = remote_wait,
	.poll_fd = remote_poll_fd,
	.stop = remote_stop,
	.now = remote_now,
	.convert = remote_convert,
	.decode = remote_decode,
	.decode_run = remote_decode_run,
	.free = remote_free,
};

struct source *remote_new(const char *address, const char *secret, struct error *err)
{
	struct remote *r = calloc(1, sizeof(*r));

	if (!r) {
		error_set(err, -ENOMEM, "out of memory");
		return NULL;
	}
	r->source.ops = &remote_ops;
	r->source.start = UINT64_MAX;
	r->source.wake_fd = -1;
	r->fd = -1;
	r->back_off = BACK_OFF_MIN;
	remote_clock_clear(&r->clock);
	r->channel = channel_new(address, err);
	if (r->channel && !secret_read(&r->secret, secret, err)) {
		/* Who sent to a file is known otherwise. */
		if (!channel_is_socket(r->channel))
			r->secret.size = 0;
		return &r->source;
	}
	remote_free(&r->source);
	return NULL;
}
