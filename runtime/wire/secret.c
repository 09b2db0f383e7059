/* SPDX-License-Identifier: GPL-2.0-only */
#include "wire/secret.h"
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>
#include <nettle/base16.h>
#include <nettle/hmac.h>
#include <nettle/memops.h>

static int check_file(int fd, const char *path, struct error *err)
{
	struct stat st;

	if (fstat(fd, &st))
		return error_set(err, -errno, "%s: %s", path, strerror(errno));
	if (S_ISREG(st.st_mode) && st.st_mode & (S_IRGRP | S_IROTH | S_IWGRP | S_IWOTH))
		return error_set(err, -EPERM,
				 "%s: other users can read or write the secret; use: chmod 600 %s",
				 path, path);
	return 0;
}

static int read_file(struct secret *s, const char *path, struct error *err)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC), ret;
	ssize_t n = 0;

	if (fd < 0)
		return error_set(err, -errno, "cannot read the secret %s: %s", path,
				 strerror(errno));
	ret = check_file(fd, path, err);
	while (!ret && s->size < sizeof(s->text)) {
		n = read(fd, s->text + s->size, sizeof(s->text) - s->size);
		if (n <= 0)
			break;
		s->size += n;
	}
	if (!ret && n < 0)
		ret = error_set(err, -errno, "cannot read the secret %s: %s", path,
				strerror(errno));
	close(fd);
	return ret;
}

int secret_read(struct secret *s, const char *path, struct error *err)
{
	const char *text = getenv("PROFSCRIPT_SECRET");
	int ret;

	s->size = 0;
	if (path) {
		ret = read_file(s, path, err);
		if (ret)
			return ret;
		if (s->size && s->text[s->size - 1] == '\n')
			s->size--;
	} else if (text) {
		s->size = strnlen(text, sizeof(s->text));
		memcpy(s->text, text, s->size);
	} else {
		return 0;
	}
	if (s->size && s->size < sizeof(s->text))
		return 0;
	return error_set(err, -EINVAL, "%s: the secret %s", path ? path : "PROFSCRIPT_SECRET",
			 s->size ? "is too long" : "is empty");
}

void secret_nonce(char nonce[SECRET_NONCE])
{
	uint8_t random[(SECRET_NONCE - 1) / 2];

	/* Never fails for so few bytes, once the system has booted. */
	while (getrandom(random, sizeof(random), 0) != sizeof(random))
		;
	base16_encode_update(nonce, sizeof(random), random);
	nonce[SECRET_NONCE - 1] = 0;
}

void secret_prove(const struct secret *s, const char *role, const char *sender_nonce,
		  const char *receiver_nonce, char proof[SECRET_PROOF])
{
	const char *parts[] = {role, sender_nonce, receiver_nonce};
	uint8_t digest[SHA256_DIGEST_SIZE];
	struct hmac_sha256_ctx ctx;

	hmac_sha256_set_key(&ctx, s->size, (const uint8_t *)s->text);
	for (int i = 0; i < 3; i++)
		hmac_sha256_update(&ctx, strlen(parts[i]), (const uint8_t *)parts[i]);
	hmac_sha256_digest(&ctx, sizeof(digest), digest);
	base16_encode_update(proof, sizeof(digest), digest);
	proof[SECRET_PROOF - 1] = 0;
}

bool secret_check(const struct secret *s, const char *role, const char *sender_nonce,
		  const char *receiver_nonce, const char *proof)
{
	char right[SECRET_PROOF];

	secret_prove(s, role, sender_nonce, receiver_nonce, right);
	return strlen(proof) == SECRET_PROOF - 1 && memeql_sec(right, proof, SECRET_PROOF - 1);
}

bool secret_answer(const struct secret *s, const char *sender_nonce, const char *line,
		   char answer[SECRET_LINE_MAX])
{
	char nonce[SECRET_NONCE], proof[SECRET_PROOF];
	int end = 0;

	if (sscanf(line, "%32[0-9a-f] %64[0-9a-f]%n", nonce, proof, &end) != 2 || line[end] ||
	    strlen(nonce) != SECRET_NONCE - 1)
		return false;
	if (!secret_check(s, "receiver", sender_nonce, nonce, proof))
		return false;
	secret_prove(s, "sender", sender_nonce, nonce, proof);
	snprintf(answer, SECRET_LINE_MAX, "%s\n", proof);
	return true;
}
