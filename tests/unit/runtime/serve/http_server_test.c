/* SPDX-License-Identifier: GPL-2.0-only */
/* runtime/serve/http_server.c: documents, the log, questions, and who is refused. */
#include "serve/http_server.h"

#include <arpa/inet.h>
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#define TOKEN "0123456789abcdef"

static char answer[8192];
static const char *body;

/* Requests a path. Returns the status; the body is in `body`. host: NULL: the server's address. */
static int get(struct http_server *s, const char *path, const char *host)
{
	const char *at = http_server_address(s), *colon = strrchr(at, ':');
	struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons(atoi(colon + 1))};
	int fd = socket(AF_INET, SOCK_STREAM, 0), status;
	size_t size = 0;
	ssize_t n;

	to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	assert_int_equal(connect(fd, (void *)&to, sizeof(to)), 0);
	dprintf(fd, "GET %s HTTP/1.1\r\nHost: %s\r\nConnection: close\r\n\r\n", path,
		host ? host : at);
	while ((n = read(fd, answer + size, sizeof(answer) - 1 - size)) > 0)
		size += n;
	close(fd);
	answer[size] = 0;
	body = strstr(answer, "\r\n\r\n");
	assert_non_null(body);
	body += 4;
	assert_int_equal(sscanf(answer, "HTTP/1.1 %d", &status), 1);
	return status;
}

static struct http_server *open_server(const char *token)
{
	struct error err = {};
	int32_t code = 0;
	struct http_server *s = http_server_open("127.0.0.1:0", token, &code, &err);

	if (!s)
		fail_msg("%s", err.text);
	return s;
}

static void test_documents(void **state)
{
	struct http_server *s = open_server(NULL);

	(void)state;
	assert_int_equal(get(s, "/rows", NULL), 404);
	assert_int_equal(http_server_set(s, "/rows", "text/x-rows", "one", 3), 0);
	assert_int_equal(get(s, "/rows", NULL), 200);
	assert_string_equal(body, "one");
	assert_non_null(strstr(answer, "text/x-rows"));
	assert_int_equal(http_server_set(s, "/rows", "text/x-rows", "two and more", 3), 0);
	assert_int_equal(get(s, "/rows", NULL), 200);
	assert_string_equal(body, "two");
	assert_int_equal(get(s, "/row", NULL), 404);
	http_server_close(s);
}

static void test_log(void **state)
{
	struct http_server *s = open_server(NULL);

	(void)state;
	for (const char *item = "12345"; *item; item++)
		assert_int_equal(http_server_log(s, item, 1, 3), 0);
	assert_int_equal(get(s, "/log", NULL), 200);
	assert_string_equal(body, "{\"next\":5,\"items\":[3,4,5]}");
	assert_int_equal(get(s, "/log?after=4", NULL), 200);
	assert_string_equal(body, "{\"next\":5,\"items\":[5]}");
	assert_int_equal(get(s, "/log?after=5", NULL), 200);
	assert_string_equal(body, "{\"next\":5,\"items\":[]}");
	http_server_close(s);
}

static void test_questions(void **state)
{
	struct http_server *s = open_server(TOKEN);
	struct pollfd waits = {.fd = http_server_question_fd(s), .events = POLLIN};
	char text[HTTP_QUESTION];
	uint64_t number;

	(void)state;
	assert_int_equal(http_server_question(s, text), 0);
	assert_int_equal(poll(&waits, 1, 0), 0);
	assert_int_equal(get(s, "/ask?q=why%3f&token=" TOKEN, NULL), 202);
	assert_int_equal(poll(&waits, 1, 0), 1);
	number = http_server_question(s, text);
	assert_int_not_equal(number, 0);
	assert_string_equal(text, "why?");
	assert_int_equal(http_server_question(s, text), 0);
	assert_int_equal(get(s, "/ask?q=why%3f&token=" TOKEN, NULL), 202);
	assert_int_equal(http_server_question(s, text), 0);
	assert_int_equal(http_server_answer(s, number, "42", 2), 0);
	assert_int_equal(get(s, "/ask?q=why%3f&token=" TOKEN, NULL), 200);
	assert_string_equal(body, "42");
	http_server_close(s);
}

static void test_refused(void **state)
{
	struct http_server *s = open_server(TOKEN);
	struct error err = {};
	int32_t code = 0;

	(void)state;
	http_server_set(s, "/rows", "text/plain", "secret", 6);
	assert_int_equal(get(s, "/rows?token=" TOKEN, NULL), 200);
	assert_int_equal(get(s, "/rows", NULL) / 100, 4);
	assert_null(strstr(body, "secret"));
	assert_int_equal(get(s, "/rows?token=0123456789abcdeX", NULL) / 100, 4);
	assert_int_equal(get(s, "/rows?token=" TOKEN, "other.example") / 100, 4);
	assert_null(strstr(body, "secret"));
	assert_null(http_server_open(http_server_address(s), NULL, &code, &err));
	assert_int_equal(code, 0);
	assert_non_null(strstr(err.text, "another program listens there"));
	http_server_close(s);
	s = open_server(NULL);
	assert_int_equal(get(s, "/ask?q=x", NULL) / 100, 4);
	http_server_close(s);
	assert_null(http_server_open("127.0.0.1:99999", NULL, &code, &err));
	assert_int_equal(code, 1);
	assert_true(err.text[0]);
}

static void test_token(void **state)
{
	char one[HTTP_TOKEN], other[HTTP_TOKEN];

	(void)state;
	http_token(one);
	http_token(other);
	assert_int_equal(strspn(one, "0123456789abcdef"), HTTP_TOKEN - 1);
	assert_int_equal(one[HTTP_TOKEN - 1], 0);
	assert_string_not_equal(one, other);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_documents), cmocka_unit_test(test_log),
		cmocka_unit_test(test_questions), cmocka_unit_test(test_refused),
		cmocka_unit_test(test_token),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
