/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Secret: both ends of a channel prove to each other that they know the same secret, without
 * sending it. Before the stream, the sender writes a line with a random number, its nonce. The
 * receiver answers with its own nonce and the HMAC-SHA256 of "receiver" and both nonces, the sender
 * with that of "sender" and both nonces:
 *
 *   sender    PROFSCRIPT-AUTH 1 NONCE_S
 *   receiver  NONCE_R HMAC("receiver" NONCE_S NONCE_R)
 *   sender    HMAC("sender" NONCE_S NONCE_R)
 *
 * Numbers are hexadecimal, lines end with a newline. What follows is neither encrypted nor
 * authenticated.
 */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include "error.h"

enum {
	SECRET_NONCE = 33,     /* bytes of a nonce as text, with its 0 */
	SECRET_PROOF = 65,     /* bytes of an HMAC as text, with its 0 */
	SECRET_LINE_MAX = 128, /* no line of the above is longer, with its newline */
	SECRET_MAX = 4096
};

#define SECRET_HELLO "PROFSCRIPT-AUTH 1 "

struct secret {
	size_t size; /* 0: there is none */
	char text[SECRET_MAX];
};

/* Reads the secret from a file, without the newline at its end; NULL: from the environment's
 * PROFSCRIPT_SECRET, if it is set. Other users must not be able to read the file. Returns 0, or a
 * negative errno with a message. */
int secret_read(struct secret *s, const char *path, struct error *err);

void secret_nonce(char nonce[SECRET_NONCE]);
/* role: "sender" or "receiver", the one that proves. */
void secret_prove(const struct secret *s, const char *role, const char *sender_nonce,
		  const char *receiver_nonce, char proof[SECRET_PROOF]);
/* Compares a proof with the right one, in constant time. */
bool secret_check(const struct secret *s, const char *role, const char *sender_nonce,
		  const char *receiver_nonce, const char *proof);

/* The sender's half: checks the receiver's line, without its newline, and writes the answer. */
bool secret_answer(const struct secret *s, const char *sender_nonce, const char *line,
		   char answer[SECRET_LINE_MAX]);
