/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The state of a push, private to push.c (the source) and push_share.c (which records are sent, and
 * which the session gets).
 */
#pragma once
#include <stdbool.h>
#include <stdint.h>
#include "error.h"
#include "push/outlet.h"
#include "push/push.h"
#include "push/pushed.h"
#include "source.h"

struct push {
	struct source source;
	struct source_ops ops; /* without what the inner source does not have */
	struct source *inner;
	struct outlets all;
	struct outlet *outlets[PUSH_MAX];
	int nr_outlets;
	struct pushed pushed;
	struct error no_ptp; /* why */
	uint64_t left;	     /* samples until the end; UINT64_MAX: no limit */
	bool has_more, stopped, finished, keeps;
	bool converts; /* the times of slots are not those of their records */
	uint64_t turned_at;
};

/* Sends what is to be sent, and keeps the rest of the slots. Returns their number. */
int push_share(struct push *p, struct slot *slots, int n);
