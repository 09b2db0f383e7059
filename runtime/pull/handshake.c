/* SPDX-License-Identifier: GPL-2.0-only */
#include "pull/handshake.h"
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include "error.h"

/* Returns the length of the first line with its newline; -EAGAIN: it is not complete. */
static int line_size(const char *bytes, size_t size, struct error *err)
{
	const char *end = memchr(bytes, '\n', size);

	if (end && end - bytes < SECRET_LINE_MAX)
		return end - bytes + 1;
	if (size < SECRET_LINE_MAX)
		return -EAGAIN;
	return error_set(err, -EPROTO, "the sender's line about the secret has no end");
}

static int answer(struct handshake *h, const struct secret *s, int fd, struct error *err)
{
	char proof[SECRET_PROOF], line[SECRET_LINE_MAX];
	int n;

	if (!s->size)
		return error_set(err, -EACCES,
				 "the sender asks for a secret: use --secret FILE or "
				 "PROFSCRIPT_SECRET");
	secret_nonce(h->ours);
	secret_prove(s, "receiver", h->theirs, h->ours, proof);
	n = snprintf(line, sizeof(line), "%s %s\n", h->ours, proof);
	/* Only sockets ask for a secret. A sender that has hung up must not kill us by SIGPIPE. */
	if (send(fd, line, n, MSG_NOSIGNAL) != n)
		return error_set(err, -EPROTO, "cannot answer the sender: %s", strerror(errno));
	h->state = HANDSHAKE_ANSWERED;
	return 0;
}

static int read_proof(struct handshake *h, const struct secret *s, const char *line, int size,
		      struct error *err)
{
	char proof[SECRET_PROOF] = "";

	if (size == SECRET_PROOF)
		memcpy(proof, line, SECRET_PROOF - 1);
	if (!secret_check(s, "sender", h->theirs, h->ours, proof))
		return error_set(err, -EACCES, "the sender does not know the secret");
	h->state = HANDSHAKE_DONE;
	return size;
}

int handshake_step(struct handshake *h, const struct secret *s, int fd, const void *bytes,
		   size_t size, struct error *err)
{
	const size_t hello = strlen(SECRET_HELLO);
	const char *line = bytes;
	int n, first, ret;

	if (h->state == HANDSHAKE_DONE || !size ||
	    memcmp(line, SECRET_HELLO, size < hello ? size : hello) != 0) {
		if (h->state != HANDSHAKE_DONE && size && s->size)
			return error_set(err, -EACCES, "the sender does not ask for the secret");
		return size || h->state == HANDSHAKE_DONE ? 0 : -EAGAIN;
	}
	first = line_size(line, size, err);
	if (first < 0)
		return first;
	if (h->state == HANDSHAKE_NONE) {
		if ((size_t)first != hello + SECRET_NONCE)
			return error_set(err, -EPROTO, "the sender's nonce is damaged");
		memcpy(h->theirs, line + hello, SECRET_NONCE - 1);
		h->theirs[SECRET_NONCE - 1] = '\0';
		ret = answer(h, s, fd, err);
		if (ret)
			return ret;
	}
	n = line_size(line + first, size - first, err);
	if (n < 0) /* a sender that does not accept the proof ends the connection */
		return n;
	n = read_proof(h, s, line + first, n, err);
	return n < 0 ? n : first + n;
}
