/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Channel: one place that events are sent to or received from, as the user writes it. No call
 * waits, except that channel_new() looks up host names. All descriptors are non-blocking.
 *
 *   PORT            TCP, this machine
 *   HOST:PORT       TCP; an IPv6 address in brackets
 *   :PORT           TCP, all addresses of this machine (listen only)
 *   unix:PATH       unix socket
 *   vsock:CID:PORT  virtual machine socket; vsock:PORT to listen
 *   PATH            a character device or named pipe if it exists as one, else a file
 *   -               standard input or output
 */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include "error.h"

enum channel_kind {
	CHANNEL_TCP,
	CHANNEL_UNIX,
	CHANNEL_VSOCK,
	CHANNEL_DEVICE,
	CHANNEL_FILE,
	CHANNEL_STDIO
};

enum { CHANNEL_NAME = 128 /* bytes of a printed address with its 0 */ };

struct channel;

/* Parses an address and looks up its host name. NULL with a message. */
struct channel *channel_new(const char *address, struct error *err);
/* Closes what listens or is being connected. Descriptors that were returned stay open. */
void channel_free(struct channel *c);

enum channel_kind channel_kind(const struct channel *c);
/* The address as it was given. */
const char *channel_address(const struct channel *c);
/* Whether it is a named pipe. */
bool channel_is_fifo(const struct channel *c);
/* Whether it is a socket: others connect to the one that listens. */
bool channel_is_socket(const struct channel *c);

/* Listens. Returns the number of listening descriptors, see channel_listener(), or a negative errno
 * with a message. */
int channel_listen(struct channel *c, struct error *err);
/* The i-th listening descriptor; writes its address, with its port if the kernel chose it. */
int channel_listener(const struct channel *c, int i, char name[CHANNEL_NAME]);
/* Whether the other end is a socket of this machine. */
bool channel_is_here(const struct channel *c);
/* Whether other machines can connect: hosts, or this one's guests. */
bool channel_is_public(const struct channel *c);
/* Accepts a peer: returns its descriptor, or a negative errno (-EAGAIN: none). */
int channel_accept(struct channel *c, int i, char name[CHANNEL_NAME]);

/* Opens the channel: connects a socket, opens a device, or a file (for writing: truncated). Returns
 * a descriptor for the caller to close. -EINPROGRESS: poll channel_connecting() for POLLOUT, then
 * call this again. Other negative errno: failed, with a message; all addresses of the host have
 * been tried, and a further call starts again. */
int channel_open(struct channel *c, bool write, struct error *err);
/* The descriptor that is being connected; -1: none. */
int channel_connecting(const struct channel *c);
/* The other end, as the user would write it. */
const char *channel_peer(const struct channel *c);

/* Whether the peer of a socket is on this machine, so that bytes cost next to nothing. */
bool channel_is_near(int fd);
/* Whether the other end of a descriptor, such as a device, is not there. */
bool channel_hangs(int fd);
