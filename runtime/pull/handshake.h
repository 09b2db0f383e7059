/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Handshake: the receiver's half of proving that both ends know the secret, see wire/secret.h. It
 * is fed with what the sender has sent before its stream.
 */
#pragma once
#include <stddef.h>
#include "wire/secret.h"

struct error;

struct handshake {
	enum { HANDSHAKE_NONE, HANDSHAKE_ANSWERED, HANDSHAKE_DONE } state;
	char theirs[SECRET_NONCE], ours[SECRET_NONCE];
};

/* Looks at the first size bytes. Returns how many of them are not part of the stream; 0: none;
 * -EAGAIN: more are needed; other negative errno with a message. Answers through fd. */
int handshake_step(struct handshake *h, const struct secret *s, int fd, const void *bytes,
		   size_t size, struct error *err);
