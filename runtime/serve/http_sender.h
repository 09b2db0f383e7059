/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * HTTP sender: posts bodies to an URL on a thread of its own, one after the other, so the owner
 * never waits. The queue is bounded: when it is full, the oldest body is dropped. A body that the
 * server cannot take now (no connection, 429, 502, 503, 504) is tried again, after pauses that grow
 * to 30 s.
 *
 * libcurl does the work. It is loaded when a sender is created.
 */
#pragma once
#include <stddef.h>
#include <stdint.h>
#include "error.h"

struct http_sender;

struct http_sender_stats {
	uint64_t sent, failed, dropped; /* bodies; failed: the server has refused them */
	uint64_t attempts_failed;
	char problem[256]; /* of the last attempt that failed, "" if there was none */
};

/* Returns NULL with a message. *bad: the URL is wrong. */
struct http_sender *http_sender_new(const char *url, const char *content_type, int32_t *bad,
				    struct error *err);
/* Copies a body into the queue. Returns 0 or -ENOMEM. */
int http_sender_put(struct http_sender *s, const void *body, size_t size);
void http_sender_read(struct http_sender *s, struct http_sender_stats *stats);
/* Waits until the queue is empty, at most ms milliseconds. */
void http_sender_flush(struct http_sender *s, uint32_t ms);
/* Drops what is left. */
void http_sender_free(struct http_sender *s);
