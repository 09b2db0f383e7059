/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Link: the way to a sender until its stream begins. It connects, tries again after growing
 * pauses, proves the secret, and collects the header with the HELLO and the first PAIR that follow
 * it. Then the stream can be opened; link_retry() begins again when it has ended. Nothing waits
 * except link_wait().
 */
#pragma once
#include <stdbool.h>
#include <stdint.h>
#include "wire/own_records.h"

/* ns without a byte from the sender after which a link counts as broken: TCP notices a pulled cable
 * only when it sends. These are a hundred heart-beats. An overloaded machine, or one that is being
 * migrated, does not miss as many, and a sender that is stopped for less loses nothing. */
#define LINK_SILENCE 10000000000ull

struct channel;
struct error;
struct link;
struct recording_stream;
struct source;

/* The address is as in wire/channel.h. secret: a file, see secret_read(). NULL with a message. */
struct link *link_new(const char *address, const char *secret, struct error *err);
void link_free(struct link *l);

/* Goes on connecting. 1: the header is there, see link_open(). 0: not yet. Negative errno with a
 * message: there is no point in going on. */
int link_step(struct link *l, struct error *err);
/* Sleeps until link_step() may get further, or until a time of CLOCK_MONOTONIC. */
void link_wait(const struct link *l, uint64_t until);
/* Returns the descriptor to poll and its events; -1: none now. */
int link_poll_fd(const struct link *l, short *events);
/* When link_step() will connect again, CLOCK_MONOTONIC; UINT64_MAX: it is connecting. */
uint64_t link_retry_time(const struct link *l);
/* Returns what it waits for; "" if it has just begun. */
const char *link_why(const struct link *l);

/* Opens the stream, which has the descriptor from then on. Fills in input what the link knows. NULL
 * with a message. */
struct source *link_open(struct link *l, struct recording_stream *input, struct error *err);
/* What the latest sender has said. All 0: it is not a stream of profscript. */
const struct wire_hello *link_hello(const struct link *l);
/* The PAIR after it; NULL: there was none. */
const struct wire_pair *link_pair(const struct link *l);
/* The stream delivers: the pauses start small again. */
void link_works(struct link *l);
/* Gives up the connection, and connects again after a pause. */
void link_retry(struct link *l);
/* Like link_retry(), for an attempt that came to nothing: the pause after the next one is longer.
 */
void link_failed(struct link *l);

const struct channel *link_channel(const struct link *l);
/* Whether trying again may help: the sender is not there yet. */
bool link_is_temporary(const struct link *l);
