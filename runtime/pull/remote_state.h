/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The state of a remote, private to remote.c (the source) and remote_stream.c (what arrives: the
 * streams of one sender, one after the other, with converted times).
 */
#pragma once
#include <stdbool.h>
#include <stdint.h>
#include "event.h"
#include "pull/gaps.h"
#include "pull/remote_clock.h"
#include "pull/requests.h"
#include "pull/slew.h"
#include "source.h"
#include "wire/own_records.h"

struct error;
struct link;
struct vm;

struct remote {
	struct source source;
	struct link *link;
	const struct wire_hello *hello; /* of the link */
	struct vm *vm;	/* the virtual machine that sends; NULL: it is none, or unknown */
	char *vm_given; /* as the user named it */

	struct source *first;  /* the first stream: its formats and names live as long as this */
	struct source *stream; /* NULL: not connected */
	struct requests requests;
	bool ended;
	uint64_t stopped_at; /* CLOCK_MONOTONIC; 0: the run goes on */
	bool is_complete;    /* everything up to then was read */
	bool is_ahead;	     /* it has sent events of a later time than now */
	bool is_idle;	     /* there was nothing to read */
	uint64_t silence;    /* ns without anything after which the link counts as broken */
	uint64_t heard_at;   /* when the stream brought something, to within LISTEN_PERIOD */
	bool told;	     /* that it is connected */
	bool aligns;	     /* its first records will say how its clock relates to ours */

	bool is_own_kernel, said_bye, is_damaged, is_silent;
	struct remote_clock clock;
	struct wire_pair pair; /* the latest one, not yet taken; tsc 0: none */
	struct gaps gaps;
	uint64_t read_before; /* samples of earlier streams */
	uint64_t dropped;     /* see source_account; without twins of this stream */
	uint64_t ping_at;

	struct slot held[BATCH_MAX]; /* converted, not yet delivered */
	int at, n;
	struct slew slew;   /* of the times of slots */
	uint64_t delivered; /* time of the latest slot */
};

/* Goes on connecting without waiting. Returns 0, or a negative errno with a message if there is no
 * point in going on. */
int remote_connect_step(struct remote *r, struct error *err);
/* Fills the held slots anew, or connects. Returns 0; -ENODATA: all has ended, also the gaps; other
 * negative errno with a message. */
int remote_fill(struct remote *r, struct error *err);
/* Up to which time everything was delivered, when nothing is held. */
uint64_t remote_stream_horizon(const struct remote *r);
/* Returns the latest time that an event can have now. */
uint64_t remote_latest(const struct remote *r);
/* The run ends: what was sent up to now is still read. */
void remote_end(struct remote *r);
