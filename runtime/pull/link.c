/* SPDX-License-Identifier: GPL-2.0-only */
#include "pull/link.h"
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include "error.h"
#include "os/clock.h"
#include "pull/handshake.h"
#include "recording/header.h"
#include "recording/recording.h"
#include "wire/channel.h"

enum {
	HEAD_STEP = 1 << 16,
	MAX_HEAD = 64 << 20,	 /* bytes; the formats of all events of a kernel are 4 MB */
	HEAD_TIME = 2000000000,	 /* ns after which a silent peer is reported */
	BACK_OFF_MIN = 100000000 /* ns */
};

/* ns. Attempts that leave this machine cost others something, too. */
#define BACK_OFF_MAX_FAR  5000000000ull
#define BACK_OFF_MAX_NEAR 500000000ull

struct link {
	struct channel *channel;
	enum { IDLE, CONNECTING, READING_HEAD } state;
	int fd; /* while the header is read; then it belongs to the stream */
	uint8_t *head;
	size_t head_size, head_room;
	bool is_pipe;	     /* the head begins like a stream, not like a file */
	uint64_t head_since; /* when the connection was made, or has brought something */
	uint64_t retry_at, back_off;
	struct handshake handshake;
	struct secret secret;
	struct wire_hello hello;
	struct wire_pair pair;
	struct error why; /* why it is not connected */
};

/* Reads the own records that follow the header. Returns 1, 0 if they are not all there, or -EPROTO
 * with a message. */
static int read_hello(struct link *l, size_t at, struct error *err)
{
	struct perf_event_header rec;

	memcpy(&rec, l->head + at, sizeof(rec));
	memset(&l->hello, 0, sizeof(l->hello));
	memset(&l->pair, 0, sizeof(l->pair));
	if (rec.type != WIRE_RECORD || rec.size < sizeof(struct wire_head) ||
	    memcmp(l->head + at + sizeof(rec), WIRE_HELLO, WIRE_TAG) != 0)
		return 1;
	memcpy(&l->hello, l->head + at, rec.size < sizeof(l->hello) ? rec.size : sizeof(l->hello));
	l->hello.hostname[sizeof(l->hello.hostname) - 1] = '\0';
	if (rec.size < sizeof(l->hello) || l->hello.version != WIRE_VERSION)
		return error_set(err, -EPROTO,
				 "the sender speaks version %u of the protocol, this is version %u",
				 l->hello.version, WIRE_VERSION);
	at += rec.size;
	if (at + sizeof(rec) > l->head_size)
		return 0;
	memcpy(&rec, l->head + at, sizeof(rec));
	if (at + rec.size > l->head_size)
		return 0;
	if (rec.type == WIRE_RECORD && rec.size >= sizeof(l->pair) &&
	    !memcmp(l->head + at + sizeof(rec), WIRE_PAIR, WIRE_TAG))
		memcpy(&l->pair, l->head + at, sizeof(l->pair));
	return 1;
}

void link_retry(struct link *l)
{
	if (l->fd >= 0)
		close(l->fd);
	l->fd = -1;
	l->head_size = 0;
	l->state = IDLE;
	l->retry_at = clock_monotonic() + l->back_off;
}

void link_failed(struct link *l)
{
	uint64_t max = channel_is_here(l->channel) ? BACK_OFF_MAX_NEAR : BACK_OFF_MAX_FAR;

	link_retry(l);
	l->back_off = l->back_off * 2 < max ? l->back_off * 2 : max;
}

void link_works(struct link *l)
{
	l->back_off = BACK_OFF_MIN;
}

bool link_is_temporary(const struct link *l)
{
	return channel_is_socket(l->channel) || channel_kind(l->channel) == CHANNEL_DEVICE;
}

static void start_reading(struct link *l, int fd)
{
	l->fd = fd;
	l->state = READING_HEAD;
	l->head_size = 0;
	l->head_since = clock_monotonic();
	l->handshake = (struct handshake){0};
}

/* Returns 0, or a negative errno with a message if there is no point in trying again. */
static int open_channel(struct link *l, struct error *err)
{
	int fd = channel_open(l->channel, false, &l->why);

	if (fd >= 0)
		start_reading(l, fd);
	else if (fd == -EINPROGRESS)
		l->state = CONNECTING;
	else if (!link_is_temporary(l))
		return error_set(err, fd, "%s", l->why.text);
	else
		link_failed(l);
	return 0;
}

/* The connection ended before its header did. */
static int lose_header(struct link *l, int code, struct error *err)
{
	if (l->handshake.state == HANDSHAKE_ANSWERED)
		return error_set(err, -EACCES, "%s: the sender does not accept the secret",
				 channel_peer(l->channel));
	error_set(&l->why, 0, "%s: %s", channel_peer(l->channel),
		  code		 ? strerror(code)
		  : l->head_size ? "the connection ended inside the header"
				 : "the connection ended before anything was sent");
	if (!link_is_temporary(l))
		return error_set(err, -EPROTO, "%s", l->why.text);
	link_failed(l);
	return 0;
}

/* Removes from the head what the sender says about the secret. Returns 0 if the stream follows;
 * -EAGAIN, or another negative errno with a message. */
static int shake_hands(struct link *l, struct error *err)
{
	int n = handshake_step(&l->handshake, &l->secret, l->fd, l->head, l->head_size, err);

	if (n <= 0)
		return n;
	l->head_size -= n;
	memmove(l->head, l->head + n, l->head_size);
	return 0;
}

/* The header does not come. The sender may still have to be started at the other end of a device,
 * or of a socket that stands for one; other connections are dead. */
static void head_is_late(struct link *l)
{
	uint64_t silence = clock_monotonic() - l->head_since;

	if (silence > HEAD_TIME)
		error_set(&l->why, 0, "%s: it has sent %s so far", channel_peer(l->channel),
			  l->head_size ? "only a part of its header" : "nothing");
	if (silence > LINK_SILENCE && link_is_temporary(l) &&
	    (l->head_size || channel_kind(l->channel) == CHANNEL_TCP))
		link_failed(l);
}

/* Reads the header as far as it has arrived, without waiting. Returns as link_step() does. */
static int read_head(struct link *l, struct error *err)
{
	for (;;) {
		int64_t size = 0;
		int ret = shake_hands(l, err);
		ssize_t n;

		if (!ret)
			size = header_size(l->head, l->head_size);
		if (size)
			ret = size > 0 ? read_hello(l, size, err) : 1;
		if (ret < 0 && ret != -EAGAIN)
			return error_set(err, ret, "%s: %s", channel_peer(l->channel), err->text);
		if (ret == -EAGAIN)
			ret = 0;
		if (ret) {
			l->is_pipe = size > 0;
			return 1;
		}
		if (l->head_size >= MAX_HEAD)
			return error_set(err, -E2BIG,
					 "%s: its header has no end (more than %d MiB)",
					 channel_peer(l->channel), MAX_HEAD >> 20);
		if (l->head_room - l->head_size < HEAD_STEP) {
			size_t room = l->head_room ? l->head_room * 2 : HEAD_STEP;
			uint8_t *grown = realloc(l->head, room);

			if (!grown)
				return error_set(err, -ENOMEM, "out of memory");
			l->head = grown;
			l->head_room = room;
		}
		n = read(l->fd, l->head + l->head_size, l->head_room - l->head_size);
		if (n < 0 && (errno == EAGAIN || errno == EINTR)) {
			head_is_late(l);
			return 0;
		}
		if (n <= 0)
			return lose_header(l, n ? errno : 0, err);
		l->head_size += n;
		l->head_since = clock_monotonic();
	}
}

int link_step(struct link *l, struct error *err)
{
	int ret = 0;

	if (l->state == IDLE && clock_monotonic() >= l->retry_at)
		ret = open_channel(l, err);
	if (!ret && l->state == CONNECTING) {
		struct pollfd poll_fd = {channel_connecting(l->channel), POLLOUT, 0};

		if (poll(&poll_fd, 1, 0) > 0)
			ret = open_channel(l, err);
	}
	if (!ret && l->state == READING_HEAD)
		ret = read_head(l, err);
	return ret;
}

int link_poll_fd(const struct link *l, short *events)
{
	*events = l->state == CONNECTING ? POLLOUT : POLLIN;
	return l->state == CONNECTING ? channel_connecting(l->channel) : l->fd;
}

uint64_t link_retry_time(const struct link *l)
{
	return l->state == IDLE ? l->retry_at : UINT64_MAX;
}

void link_wait(const struct link *l, uint64_t until)
{
	struct pollfd poll_fd = {};
	uint64_t now = clock_monotonic();

	if (link_retry_time(l) < until)
		until = link_retry_time(l);
	poll_fd.fd = link_poll_fd(l, &poll_fd.events);
	if (until > now) {
		struct timespec ts = {(until - now) / 1000000000, (until - now) % 1000000000};

		ppoll(&poll_fd, 1, &ts, NULL);
	}
}

const char *link_why(const struct link *l)
{
	return l->why.text;
}

struct source *link_open(struct link *l, struct recording_stream *input, struct error *err)
{
	/* Other recordings are files with a table of contents, which are mapped. */
	bool from_start = !l->is_pipe && lseek(l->fd, 0, SEEK_SET) == 0;
	struct source *stream;

	input->fd = l->fd;
	input->name = channel_address(l->channel);
	input->start = from_start ? NULL : l->head;
	input->start_size = l->head_size;
	stream = recording_open_stream(input, err);
	l->fd = -1;
	l->state = IDLE;
	free(l->head);
	l->head = NULL;
	l->head_size = l->head_room = 0;
	return stream;
}

const struct wire_hello *link_hello(const struct link *l)
{
	return &l->hello;
}

const struct wire_pair *link_pair(const struct link *l)
{
	return l->pair.head.header.size ? &l->pair : NULL;
}

const struct channel *link_channel(const struct link *l)
{
	return l->channel;
}

void link_free(struct link *l)
{
	if (!l)
		return;
	if (l->fd >= 0)
		close(l->fd);
	explicit_bzero(&l->secret, sizeof(l->secret));
	free(l->head);
	if (l->channel)
		channel_free(l->channel);
	free(l);
}

struct link *link_new(const char *address, const char *secret, struct error *err)
{
	struct link *l = calloc(1, sizeof(*l));

	if (!l) {
		error_set(err, -ENOMEM, "out of memory");
		return NULL;
	}
	l->fd = -1;
	l->back_off = BACK_OFF_MIN;
	l->channel = channel_new(address, err);
	if (l->channel && !secret_read(&l->secret, secret, err)) {
		/* Who sent to a file is known otherwise. */
		if (!channel_is_socket(l->channel))
			l->secret.size = 0;
		return l;
	}
	link_free(l);
	return NULL;
}
