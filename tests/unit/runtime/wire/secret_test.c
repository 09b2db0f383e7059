/* SPDX-License-Identifier: GPL-2.0-only */
/* runtime/wire/secret.c: a published HMAC, the exchange of both ends, and files that are refused.
 */
#include "wire/secret.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

static struct secret secret_of(const char *text)
{
	struct secret s = {.size = strlen(text)};

	memcpy(s.text, text, s.size);
	return s;
}

static void published_value(void **state)
{
	struct secret s = secret_of("key");
	char proof[SECRET_PROOF];

	(void)state;
	secret_prove(&s, "The quick brown fox ", "jumps over ", "the lazy dog", proof);
	assert_string_equal(proof,
			    "f7bc83f430538424b13298e6aa6fb143ef4d59a14946175997479dbc2d1a3cd8");
}

static void exchange(void **state)
{
	struct secret right = secret_of("one"), wrong = secret_of("two");
	char nonce[SECRET_NONCE], own[SECRET_NONCE], proof[SECRET_PROOF];
	char line[SECRET_LINE_MAX], answer[SECRET_LINE_MAX];

	(void)state;
	secret_nonce(nonce);
	secret_nonce(own);
	assert_string_not_equal(nonce, own);
	assert_int_equal(strspn(nonce, "0123456789abcdef"), SECRET_NONCE - 1);

	secret_prove(&right, "receiver", nonce, own, proof);
	snprintf(line, sizeof(line), "%s %s", own, proof);
	assert_true(secret_answer(&right, nonce, line, answer));
	answer[strcspn(answer, "\n")] = 0;
	assert_true(secret_check(&right, "sender", nonce, own, answer));
	/* The answer is not what was asked, so neither end can send back what it got. */
	assert_string_not_equal(answer, proof);

	assert_false(secret_answer(&wrong, nonce, line, answer));
	assert_false(secret_answer(&right, own, line, answer)); /* of another exchange */
	line[strlen(line) - 1] ^= 1;
	assert_false(secret_answer(&right, nonce, line, answer));
	assert_false(secret_answer(&right, nonce, "", answer));
	assert_false(secret_answer(&right, nonce, own, answer));
	snprintf(line, sizeof(line), "%s %s x", own, proof);
	assert_false(secret_answer(&right, nonce, line, answer));
}

static void files(void **state)
{
	char path[] = "/tmp/secret_test.XXXXXX";
	int fd = mkstemp(path);
	struct error err;
	struct secret s;

	(void)state;
	assert_true(fd >= 0);
	assert_int_equal(write(fd, "word\n", 5), 5);
	unsetenv("PROFSCRIPT_SECRET");
	assert_int_equal(secret_read(&s, path, &err), 0);
	assert_int_equal(s.size, 4);
	assert_memory_equal(s.text, "word", 4);
	assert_int_equal(fchmod(fd, 0640), 0);
	assert_int_equal(secret_read(&s, path, &err), -EPERM);
	assert_non_null(strstr(err.text, "chmod 600"));
	assert_int_equal(fchmod(fd, 0600), 0);
	assert_int_equal(ftruncate(fd, 0), 0);
	assert_int_equal(secret_read(&s, path, &err), -EINVAL);
	assert_non_null(strstr(err.text, "is empty"));
	assert_int_equal(ftruncate(fd, SECRET_MAX), 0);
	assert_int_equal(secret_read(&s, path, &err), -EINVAL);
	assert_non_null(strstr(err.text, "too long"));
	unlink(path);
	assert_int_equal(secret_read(&s, path, &err), -ENOENT);
	close(fd);

	assert_int_equal(secret_read(&s, NULL, &err), 0);
	assert_int_equal(s.size, 0);
	setenv("PROFSCRIPT_SECRET", "environment", 1);
	assert_int_equal(secret_read(&s, NULL, &err), 0);
	assert_int_equal(s.size, 11);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(published_value),
		cmocka_unit_test(exchange),
		cmocka_unit_test(files),
	};

	return cmocka_run_group_tests_name("secret", tests, NULL, NULL);
}
