/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Join: a source that merges others by time: member 0 is that of this machine, the others are
 * remotes. A slot has the index of its member in its flags (SLOT_MEMBER_SHIFT), and its record and
 * own forms are those of that member.
 *
 * Nothing is delivered before all members have delivered everything older. A member that falls
 * silent delays the others by `slack` at most; what it delivers after that is EVENT_LATE.
 */
#pragma once
#include <stdint.h>

struct error;
struct source;

enum { JOIN_MEMBERS = 128 };

/* Takes over the source of this machine. It is not opened unless an event is added to it. NULL
 * without memory: then it remains the caller's. */
struct source *join_new(struct source *local);
/* Takes over a remote, also on failure. Returns its index, or a negative errno with a message. */
int join_add(struct source *join, struct source *remote, struct error *err);
/* Replaces the source of this machine by one that wraps it. */
void join_replace_local(struct source *join, struct source *source);
struct source *join_member(const struct source *join, uint32_t index);
void join_set_slack(struct source *join, uint64_t ns);
