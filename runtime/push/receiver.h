/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Receiver: one connection that a stream is sent to, or the file that it is written to. First the
 * other end may have to prove that it knows the secret. Then come the preamble, the tasks that
 * exist, kernel symbols, and groups from a bounded queue. If the receiver is too slow, the oldest
 * groups are dropped. Nothing waits.
 */
#pragma once
#include <stdbool.h>
#include <stdint.h>
#include "wire/bytes.h"
#include "wire/channel.h"
#include "wire/secret.h"

struct group;
struct task_scan;

enum { QUEUE_BYTES = 8 << 20 /* of memory, for each receiver */ };

enum receiver_state {
	RECEIVER_PROVES, /* its proof is awaited, and then the preamble */
	RECEIVER_NEW,	 /* it awaits the preamble */
	RECEIVER_READS,
	RECEIVER_ENDED
};

struct receiver {
	char name[CHANNEL_NAME];
	enum receiver_state state;
	struct error why;	/* why it ended; "": it hung up */
	uint64_t sent, dropped; /* events */
	uint64_t since;		/* when it came, CLOCK_MONOTONIC ns */
	bool is_accepted;	/* it has proven what it must, and there is room for it */
	bool is_told;		/* ...and the outlet has told so */

	/* The rest belongs to receiver.c. */
	int fd, poller;
	uint64_t stuck_since; /* it has taken nothing since then; 0: it takes what there is */
	bool is_socket, packs, polls_out, hears_nothing, says_bye;
	char nonce[SECRET_NONCE];
	struct bytes front; /* the preamble and tasks */
	size_t front_sent;
	struct task_scan *scan; /* NULL: all tasks are in the front */
	const struct bytes *symbols;
	size_t symbols_sent;
	struct group **queue; /* a ring, of a power of two */
	uint32_t room, first, n;
	size_t charge; /* bytes of memory of the queue */
	size_t first_sent;
	uint8_t urgent[512]; /* answers, which do not wait for groups */
	uint32_t urgent_size;
	char inbox[SECRET_LINE_MAX];
	uint32_t inbox_size;
};

/* Takes over the descriptor. poller: an epoll descriptor. secret: NULL or empty, no proof is asked
 * for. packs: groups are compressed. NULL: out of memory. */
struct receiver *receiver_new(int fd, int poller, const char *name, const struct secret *secret,
			      bool packs);
void receiver_free(struct receiver *r);

/* Starts the stream: the preamble is in r->front. scan, which is taken over: NULL, no tasks.
 * symbols: records to send before the groups; NULL: none. */
void receiver_start(struct receiver *r, struct task_scan *scan, const struct bytes *symbols);
/* Adds a group that has ended. zstd: a compression context. */
void receiver_add(struct receiver *r, struct group *g, void *zstd);
/* Says that nothing follows. */
void receiver_say_bye(struct receiver *r);

/* Whether it may be gone without the poller's notice: receiver_read() finds out. */
bool receiver_is_doubtful(const struct receiver *r);
/* Reads what the receiver has sent. */
void receiver_read(struct receiver *r, const struct secret *secret);
/* Sends as much as possible without waiting. */
void receiver_send(struct receiver *r);
/* Returns the events in the queue. */
uint64_t receiver_queued(const struct receiver *r);
/* Whether there is something left to send. */
bool receiver_is_behind(const struct receiver *r);
