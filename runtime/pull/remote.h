/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Remote: the source for the events of another host or guest, which arrive through a channel in
 * perf's pipe format. It connects, reconnects when the link breaks, and converts times to this
 * machine's CLOCK_MONOTONIC as far as the stream tells how. What the sender dropped and what was
 * missed while the link was broken are EVENT_LOST at their place: of the form REMOTE_GAP, with
 * their end in the key.
 *
 * A stream of profscript (wire/own_records.h) ends when its sender says so; that of another writer,
 * such as `perf record -o - | nc`, with the connection.
 */
#pragma once
#include <stdbool.h>
#include <stdint.h>

struct error;
struct source;
struct vm;
struct wire_pair;

enum { REMOTE_GAP = 1 /* slot form of EVENT_LOST, see SLOT_OWN_SHIFT */ };

/* The address is as in wire/channel.h. secret: a file, see secret_read(). NULL with a message. */
struct source *remote_new(const char *address, const char *secret, struct error *err);
/* A sender that may be late by so much (ns) may be silent for as long; by default for 10 s, after
 * which its link counts as broken. Before it is connected. */
void remote_set_slack(struct source *src, uint64_t ns);
/* Says that the sender is the kernel of a virtual machine on this host, by UUID, pid or name.
 * Before it is connected. Returns 0, or a negative errno with a message. */
int remote_set_vm(struct source *src, const char *which, struct error *err);
/* Connects and reads the header, for at most timeout ns. 1: the source can be used. 0: not yet; err
 * says what it waits for, "" if it has just begun. Negative errno with a message: it never will. */
int remote_connect(struct source *src, uint64_t timeout, struct error *err);
/* For one that could not be connected. */
void remote_free(struct source *src);
/* Aligns the clock of a connected stream that does not say how it relates to ours: by the wall time
 * in its header, or else so that its first records have just happened. */
void remote_align(struct source *src);
/* The following are valid once it is connected. */
/* The virtual machine that sends; NULL: it is none, or unknown. */
const struct vm *remote_vm(const struct source *src);
/* Whether it is another process on this kernel. */
bool remote_is_own_kernel(const struct source *src);
/* How much the converted times may be off, in ns; method: what the conversion is based on. */
double remote_clock_error(const struct source *src, const char **method);
/* Takes the latest reading of the sender's clocks. False: there is none since the last call. */
bool remote_take_pair(struct source *src, struct wire_pair *out);
