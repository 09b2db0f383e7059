/* SPDX-License-Identifier: GPL-2.0-only */
#include "push/receiver.h"
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>
#include "clocks/clock_pair.h"
#include "os/clock.h"
#include "push/group.h"
#include "push/task_scan.h"
#include "wire/own_records.h"

enum {
	MIN_ROOM = 64, /* groups */
	SCAN_AHEAD = 1 << 16,
	PROOF_TIME = 5 /* seconds */
};

/* ns. Long enough to look at a receiver in a debugger. One on a machine that is gone must not hold
 * its place and 8 MiB for ever, and TCP may try for a quarter of an hour. */
#define STUCK_MAX 60000000000ull

/* Whether an error only means that the other end is gone. Devices hang up, or are unplugged. */
static bool is_hang_up(const struct receiver *r, int code)
{
	return code == -EPIPE || code == -ECONNRESET ||
	       (!r->is_socket && (code == -EIO || code == -ENODEV || code == -ENXIO));
}

static void end(struct receiver *r, int code, const char *what)
{
	if (r->state == RECEIVER_ENDED)
		return;
	r->state = RECEIVER_ENDED;
	if (what)
		error_set(&r->why, 0, "%s", what);
	else if (code && !is_hang_up(r, code))
		error_set(&r->why, 0, "%s", strerror(-code));
	close(r->fd);
	r->fd = -1;
}

/* Returns false for regular files and some devices, which never block. */
static bool watch(struct receiver *r, int op)
{
	struct epoll_event ev = {.events = (r->hears_nothing ? 0 : EPOLLIN) |
					   (r->polls_out ? EPOLLOUT : 0)};

	return r->fd >= 0 && !epoll_ctl(r->poller, op, r->fd, &ev);
}

/* Polls for room to write only as long as there is none. */
static void poll_out(struct receiver *r, bool on)
{
	if (r->polls_out == on)
		return;
	r->polls_out = on;
	watch(r, EPOLL_CTL_MOD);
}

/* There is no room for what is to be sent. */
static void wait_for_room(struct receiver *r)
{
	uint64_t now = clock_monotonic();

	poll_out(r, true);
	if (!r->stuck_since)
		r->stuck_since = now;
	else if (r->is_socket && now - r->stuck_since > STUCK_MAX)
		end(r, 0, "it has taken nothing for 60 s");
}

static void add_urgent(struct receiver *r, const void *data, size_t size)
{
	if (size > sizeof(r->urgent) - r->urgent_size)
		return; /* it sends faster than it reads */
	memcpy(r->urgent + r->urgent_size, data, size);
	r->urgent_size += size;
}

struct receiver *receiver_new(int fd, int poller, const char *name, const struct secret *secret,
			      bool packs)
{
	struct receiver *r = calloc(1, sizeof(*r));
	char line[SECRET_LINE_MAX];
	struct stat st;

	if (!r) {
		close(fd);
		return NULL;
	}
	snprintf(r->name, sizeof(r->name), "%s", name);
	r->fd = fd;
	r->poller = poller;
	r->is_socket = !fstat(fd, &st) && S_ISSOCK(st.st_mode);
	r->packs = packs;
	r->since = clock_monotonic();
	r->state = RECEIVER_NEW;
	r->hears_nothing = !watch(r, EPOLL_CTL_ADD);
	if (!secret || !secret->size)
		return r;
	r->state = RECEIVER_PROVES;
	secret_nonce(r->nonce);
	snprintf(line, sizeof(line), SECRET_HELLO "%s\n", r->nonce);
	add_urgent(r, line, strlen(line));
	receiver_send(r);
	return r;
}

/* Takes the oldest group out of the queue. */
static void take_first(struct receiver *r)
{
	struct group *g = r->queue[r->first];

	r->first = (r->first + 1) & (r->room - 1);
	r->n--;
	r->first_sent = 0;
	r->charge -= group_charge(g, r->packs);
	if (!--g->users)
		group_free(g);
}

void receiver_free(struct receiver *r)
{
	if (!r)
		return;
	end(r, 0, NULL);
	while (r->n)
		take_first(r);
	free(r->queue);
	free(r->front.data);
	task_scan_free(r->scan);
	free(r);
}

void receiver_start(struct receiver *r, struct task_scan *scan, const struct bytes *symbols)
{
	r->scan = scan;
	r->symbols = symbols;
	r->state = RECEIVER_READS;
	if (r->front.failed)
		end(r, -ENOMEM, NULL);
}

static bool grow_queue(struct receiver *r)
{
	uint32_t room = r->room ? r->room * 2 : MIN_ROOM;
	struct group **grown;

	if (r->n < r->room)
		return true;
	grown = malloc(room * sizeof(*grown));
	if (!grown)
		return false;
	for (uint32_t i = 0; i < r->n; i++)
		grown[i] = r->queue[(r->first + i) & (r->room - 1)];
	free(r->queue);
	r->queue = grown;
	r->room = room;
	r->first = 0;
	return true;
}

/* Drops the oldest group whose transmission has not begun. */
static void drop_oldest(struct receiver *r)
{
	uint32_t second = (r->first + 1) & (r->room - 1);
	struct group *kept = r->queue[r->first];
	size_t sent = r->first_sent;

	if (!sent) {
		r->dropped += group_events(kept);
		take_first(r);
		return;
	}
	r->dropped += group_events(r->queue[second]);
	r->queue[r->first] = r->queue[second];
	take_first(r);
	r->queue[r->first] = kept;
	r->first_sent = sent;
}

void receiver_add(struct receiver *r, struct group *g, void *zstd)
{
	if (r->state != RECEIVER_READS)
		return;
	if ((r->packs && !group_pack(g, zstd)) || !grow_queue(r)) {
		end(r, -ENOMEM, NULL);
		return;
	}
	r->queue[(r->first + r->n++) & (r->room - 1)] = g;
	g->users++;
	r->charge += group_charge(g, r->packs);
	while (r->charge > QUEUE_BYTES && r->n > 2)
		drop_oldest(r);
}

void receiver_say_bye(struct receiver *r)
{
	r->says_bye = true;
}

static void answer_ping(struct receiver *r, const struct wire_ping *ping)
{
	struct clock_pair now;
	struct wire_pong pong = {.head = wire_head(WIRE_PONG, sizeof(pong))};

	clock_pair_read(&now);
	pong.seq = ping->seq;
	pong.asked_tsc = ping->tsc;
	pong.received_tsc = now.tsc;
	pong.received_mono = now.mono;
	clock_pair_read(&now);
	pong.sent_tsc = now.tsc;
	pong.sent_mono = now.mono;
	add_urgent(r, &pong, sizeof(pong));
}

/* Returns the bytes of the inbox that were used; 0: more are needed. */
static uint32_t take_input(struct receiver *r, const struct secret *secret)
{
	char *newline, answer[SECRET_LINE_MAX];
	struct wire_ping ping;

	if (r->state == RECEIVER_PROVES) {
		newline = memchr(r->inbox, '\n', r->inbox_size);
		if (!newline) {
			if (r->inbox_size == sizeof(r->inbox))
				end(r, 0, "it does not prove that it knows the secret");
			return 0;
		}
		*newline = 0;
		if (!secret_answer(secret, r->nonce, r->inbox, answer)) {
			end(r, 0, "it does not know the secret");
			return 0;
		}
		add_urgent(r, answer, strlen(answer));
		r->state = RECEIVER_NEW;
		return newline + 1 - r->inbox;
	}
	if (r->inbox_size < sizeof(ping))
		return 0;
	memcpy(&ping, r->inbox, sizeof(ping));
	if (memcmp(ping.tag, WIRE_PING, WIRE_TAG))
		return r->inbox_size; /* not for us */
	answer_ping(r, &ping);
	return sizeof(ping);
}

/* The receiver sends no more, but may still read, as `nc` does at the end of its input. If it does
 * not, the next write fails. */
static void hear_no_more(struct receiver *r)
{
	if (!r->is_socket || r->state == RECEIVER_PROVES || channel_hangs(r->fd)) {
		end(r, 0, NULL);
		return;
	}
	r->hears_nothing = true;
	watch(r, EPOLL_CTL_MOD);
}

bool receiver_is_doubtful(const struct receiver *r)
{
	return r->state == RECEIVER_PROVES || r->hears_nothing;
}

void receiver_read(struct receiver *r, const struct secret *secret)
{
	while (r->fd >= 0 && !r->hears_nothing) {
		ssize_t n = read(r->fd, r->inbox + r->inbox_size, sizeof(r->inbox) - r->inbox_size);
		uint32_t used;

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && (errno == EAGAIN || errno == EBADF)) /* EBADF: opened for writing */
			break;
		if (n < 0)
			end(r, -errno, NULL);
		else if (!n)
			hear_no_more(r);
		if (n <= 0)
			break;
		r->inbox_size += n;
		while (r->inbox_size && (used = take_input(r, secret))) {
			r->inbox_size -= used;
			memmove(r->inbox, r->inbox + used, r->inbox_size);
		}
	}
	if (r->fd >= 0 && r->hears_nothing && r->is_socket && channel_hangs(r->fd))
		end(r, 0, NULL);
	if (r->state == RECEIVER_PROVES &&
	    clock_monotonic() - r->since > PROOF_TIME * 1000000000ull)
		end(r, 0, "it does not prove that it knows the secret");
}

/* Returns the bytes written, 0: none fit, or a negative errno. */
static ssize_t write_some(struct receiver *r, const void *data, size_t size)
{
	for (;;) {
		ssize_t n = r->is_socket ? send(r->fd, data, size, MSG_NOSIGNAL | MSG_DONTWAIT)
					 : write(r->fd, data, size);

		if (n >= 0)
			return n;
		if (errno == EAGAIN)
			return 0;
		if (errno != EINTR)
			return -errno;
	}
}

/* What is sent next; all parts but the urgent one consist of whole records. */
enum part { PART_NONE, PART_URGENT, PART_FRONT, PART_SYMBOLS, PART_GROUP };

static enum part next_part(struct receiver *r, const uint8_t **data, size_t *size)
{
	bool in_group = r->n && r->first_sent;

	/* Answers stand between records. Those of the front are not looked at, so they wait. */
	if (r->urgent_size && !in_group && !(r->front_sent && r->front_sent < r->front.size) &&
	    !(r->symbols_sent && r->symbols && r->symbols_sent < r->symbols->size)) {
		*data = r->urgent;
		*size = r->urgent_size;
		return PART_URGENT;
	}
	if (r->state != RECEIVER_READS)
		return PART_NONE;
	if (r->front_sent < r->front.size) {
		*data = r->front.data + r->front_sent;
		*size = r->front.size - r->front_sent;
		return PART_FRONT;
	}
	if (r->scan)
		return PART_NONE;
	if (r->symbols && r->symbols_sent < r->symbols->size) {
		*data = r->symbols->data + r->symbols_sent;
		*size = r->symbols->size - r->symbols_sent;
		return PART_SYMBOLS;
	}
	if (!r->n)
		return PART_NONE;
	*data = group_bytes(r->queue[r->first], r->packs, size);
	*data += r->first_sent;
	*size -= r->first_sent;
	return PART_GROUP;
}

static void note_sent(struct receiver *r, enum part part, size_t n, size_t size)
{
	switch (part) {
	case PART_URGENT:
		r->urgent_size -= n;
		memmove(r->urgent, r->urgent + n, r->urgent_size);
		break;
	case PART_FRONT:
		r->front_sent += n;
		break;
	case PART_SYMBOLS:
		r->symbols_sent += n;
		break;
	default:
		r->first_sent += n;
		if (n < size)
			break;
		r->sent += group_events(r->queue[r->first]);
		take_first(r);
	}
}

/* Scans some more tasks. Once the front was sent, its memory is used again. */
static void scan_tasks(struct receiver *r)
{
	if (!r->scan || r->front.size - r->front_sent > SCAN_AHEAD)
		return;
	if (r->front_sent == r->front.size)
		r->front.size = r->front_sent = 0;
	if (task_scan_next(r->scan, &r->front))
		return;
	task_scan_free(r->scan);
	r->scan = NULL;
	if (r->front.failed)
		end(r, -ENOMEM, NULL);
}

static void add_bye(struct receiver *r)
{
	struct wire_bye bye = {.head = wire_head(WIRE_BYE, sizeof(bye))};

	add_urgent(r, &bye, sizeof(bye));
	r->says_bye = false;
}

void receiver_send(struct receiver *r)
{
	const uint8_t *data;
	enum part part;
	size_t size;

	while (r->fd >= 0) {
		ssize_t n;

		scan_tasks(r);
		part = next_part(r, &data, &size);
		if (part == PART_NONE && r->says_bye && r->state == RECEIVER_READS && !r->scan) {
			add_bye(r);
			continue;
		}
		if (part == PART_NONE) {
			r->stuck_since = 0;
			poll_out(r, false);
			return;
		}
		n = write_some(r, data, size);
		if (n < 0) {
			end(r, n, NULL);
			return;
		}
		if (n) {
			r->stuck_since = 0;
			note_sent(r, part, n, size);
		}
		if (!n || ((size_t)n < size && r->is_socket)) {
			wait_for_room(r);
			return;
		}
	}
}

uint64_t receiver_queued(const struct receiver *r)
{
	uint64_t events = 0;

	for (uint32_t i = 0; i < r->n; i++)
		events += group_events(r->queue[(r->first + i) & (r->room - 1)]);
	return events;
}

bool receiver_is_behind(const struct receiver *r)
{
	return r->fd >= 0 && r->state == RECEIVER_READS &&
	       (r->n || r->scan || r->urgent_size || r->says_bye || r->front_sent < r->front.size ||
		(r->symbols && r->symbols_sent < r->symbols->size));
}
