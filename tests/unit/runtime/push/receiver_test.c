/* SPDX-License-Identifier: GPL-2.0-only */
/* What a receiver says is answered, and what its queue holds is counted. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <fcntl.h>
#include "made_push.h"
#include "os/clock.h"
#include "push/group.h"
#include "push/receiver.h"
#include "wire/own_records.h"
#include "wire/secret.h"
#include <zstd.h>

static void pings(void **state)
{
	struct run run = open_run((const char *[]){address, NULL}, NULL);
	struct wire_ping ping = {.seq = 5, .tsc = 77};
	static uint8_t bytes[1 << 20];
	const struct wire_pong *pong = NULL;
	ssize_t size = 0, n;
	int fd = connect_here();
	uint64_t before = clock_monotonic();

	(void)state;
	steps(&run, 20);
	memcpy(ping.tag, WIRE_PING, WIRE_TAG);
	assert_int_equal(write(fd, &ping, sizeof(ping)), sizeof(ping));
	steps(&run, 20);
	while ((n = recv(fd, bytes + size, sizeof(bytes) - size, MSG_DONTWAIT)) > 0)
		size += n;
	for (ssize_t i = 0; i + (ssize_t)sizeof(*pong) <= size && !pong; i += 8)
		if (!memcmp(bytes + i + 8, WIRE_PONG, WIRE_TAG))
			pong = (void *)(bytes + i);
	assert_non_null(pong);
	assert_int_equal(pong->seq, 5);
	assert_int_equal(pong->asked_tsc, 77);
	assert_true(pong->received_mono >= before && pong->sent_mono >= pong->received_mono);
	assert_true(pong->sent_tsc >= pong->received_tsc);
	run.source->ops->free(run.source);
	close(fd);
}

/* Sends the receiver's line and returns whether the stream follows. */
static bool prove(struct run *run, const char *text)
{
	struct secret s = {.size = strlen(text)};
	char line[SECRET_LINE_MAX] = "", nonce[SECRET_NONCE], own[SECRET_NONCE];
	char proof[SECRET_PROOF], answer[SECRET_LINE_MAX + 8] = "";
	int fd = connect_here();
	bool right;

	memcpy(s.text, text, s.size);
	steps(run, 3);
	assert_true(recv(fd, line, sizeof(line) - 1, MSG_DONTWAIT) > 0);
	assert_int_equal(sscanf(line, SECRET_HELLO "%32[0-9a-f]\n", nonce), 1);
	secret_nonce(own);
	secret_prove(&s, "receiver", nonce, own, proof);
	snprintf(line, sizeof(line), "%s %s\n", own, proof);
	assert_int_equal(write(fd, line, strlen(line)), strlen(line));
	steps(run, 10);
	right = recv(fd, answer, SECRET_PROOF + 8, MSG_DONTWAIT) == SECRET_PROOF + 8 &&
		!memcmp(answer + SECRET_PROOF, "PERFILE2", 8);
	if (right) {
		answer[SECRET_PROOF - 1] = 0;
		assert_true(secret_check(&s, "sender", nonce, own, answer));
	}
	close(fd);
	steps(run, 3);
	return right;
}

/* Opens a run for receivers that know "word". file: the secret's, which the caller unlinks. */
static struct run open_secret_run(char *file, size_t size)
{
	int secret;

	snprintf(file, size, "%s/secret", dir);
	secret = open(file, O_WRONLY | O_CREAT, 0600);
	assert_int_equal(write(secret, "word\n", 5), 5);
	close(secret);
	return open_run((const char *[]){address, NULL}, file);
}

static void secrets(void **state)
{
	char file[80];
	int fd;
	struct run run;
	char byte;

	(void)state;
	run = open_secret_run(file, sizeof(file));
	assert_true(prove(&run, "word"));
	push_take_messages(run.push);
	assert_false(prove(&run, "sword"));
	assert_non_null(strstr(push_take_messages(run.push), "it does not know the secret"));
	fd = connect_here(); /* one that says nothing gets nothing but the question */
	produce(&run, 3000);
	steps(&run, 10);
	assert_int_equal(recv(fd, (char[SECRET_LINE_MAX]){0}, SECRET_LINE_MAX, MSG_DONTWAIT),
			 strlen(SECRET_HELLO) + SECRET_NONCE);
	assert_int_equal(recv(fd, &byte, 1, MSG_DONTWAIT), -1);
	close(fd);
	run.source->ops->free(run.source);
	unlink(file);
}

static uint32_t count_lines(const char *text)
{
	uint32_t n = 0;

	for (; (text = strchr(text, '\n')); text++)
		n++;
	return n;
}

/* However many clients do not know the secret, one that does is served, and few lines are told. */
static void strangers(void **state)
{
	enum { STRANGERS = 200 };
	struct run run;
	char file[80];
	int fds[STRANGERS];
	const uint64_t period = 5000000000; /* after which further refusals are told */
	uint64_t since = clock_monotonic();
	const char *lines;
	bool more;

	(void)state;
	run = open_secret_run(file, sizeof(file));
	push_take_messages(run.push);
	for (int i = 0; i < STRANGERS; i++) {
		fds[i] = connect_here();
		steps(&run, 2);
	}
	assert_true(prove(&run, "word"));
	for (int i = 0; i < STRANGERS; i++)
		close(fds[i]);
	steps(&run, 10);
	lines = push_take_messages(run.push);
	assert_non_null(strstr(lines, "Accept client unix:"));
	/* A refusal, and one that comes and goes; on a slow machine, two lines a period. */
	assert_true(count_lines(lines) <= 3 + 2 * (clock_monotonic() - since) / period);
	more = strstr(lines, " more clients of unix:");
	end_run(&run);
	assert_true(more || strstr(push_take_messages(run.push), " more clients of unix:"));
	run.source->ops->free(run.source);
	unlink(file);
}

/* However many clients come and go, few lines are told, which account for all that was sent. */
static void crowd(void **state)
{
	enum { AT_ONCE = 12, CROWD = 5 * AT_ONCE, TOLD = 16 };
	struct run run = open_run((const char *[]){address, NULL}, NULL);
	uint64_t start = clock_monotonic(), periods;
	struct push_totals totals;
	unsigned long long sent = 0, n;
	uint32_t lines = 0, gone = 0, m;
	const char *at;

	(void)state;
	for (int i = 0; i < CROWD / AT_ONCE; i++) {
		int fds[AT_ONCE];

		for (int k = 0; k < AT_ONCE; k++)
			fds[k] = connect_here();
		await(&run, AT_ONCE);
		produce(&run, 100 * (i + 1));
		steps(&run, 2);
		for (int k = 0; k < AT_ONCE; k++)
			close(fds[k]);
		await(&run, 0);
	}
	end_run(&run);
	for (at = push_take_messages(run.push); *at; at = strchr(at, '\n') + 1) {
		lines++;
		if (sscanf(at, "Client hangs up unix:%*[^:]: %llu events sent", &n) == 1)
			sent += n, gone++;
		if (sscanf(at, "%u more client%*[s of] unix:%*s %*[hangsup ]: %llu", &m, &n) == 2)
			sent += n, gone += m;
	}
	push_read_totals(run.push, 0, &totals);
	periods = 2 + (clock_monotonic() - start) / 5000000000;
	assert_true(lines <= 1 + periods * (2 * TOLD + 2)); /* half of all, unless this is slow */
	assert_int_equal(gone, CROWD);
	assert_int_equal(sent, totals.sent);
	assert_true(sent > 0);
	run.source->ops->free(run.source);
}

/* A receiver that takes nothing is closed after a minute. */
static void stuck(void **state)
{
	struct group_pool pool = {0};
	struct receiver *r;
	int ends[2];

	(void)state;
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, ends), 0);
	r = receiver_new(ends[0], -1, "one", NULL, false);
	receiver_start(r, NULL, NULL);
	for (int i = 0; i < 64; i++) {
		struct group *g = group_new(&pool);

		g->size = GROUP_ROOM;
		receiver_add(r, group_end(g), NULL);
		receiver_send(r);
	}
	assert_true(receiver_is_behind(r));
	r->stuck_since -= 59000000000ull;
	receiver_send(r);
	assert_int_equal(r->state, RECEIVER_READS);
	r->stuck_since -= 2000000000ull;
	receiver_send(r);
	assert_int_equal(r->state, RECEIVER_ENDED);
	assert_string_equal(r->why.text, "it has taken nothing for 60 s");
	receiver_free(r);
	close(ends[1]);
	group_pool_clear(&pool);
}

/* A queue counts its own memory: that of a near receiver is not the same as that of a far one,
 * whose groups are compressed. */
static void shared_groups(void **state)
{
	enum { GROUPS = 3 };
	struct group_pool pool = {0};
	struct receiver *receivers[2];
	ZSTD_CCtx *zstd = ZSTD_createCCtx();
	int ends[2][2];

	(void)state;
	for (int i = 0; i < 2; i++) {
		assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, ends[i]), 0);
		receivers[i] = receiver_new(ends[i][0], -1, "one", NULL, i);
		receiver_start(receivers[i], NULL, NULL);
	}
	for (int n = 0; n < GROUPS; n++) {
		struct group *g = group_new(&pool);

		memset(g->data, n, GROUP_ROOM);
		g->size = GROUP_ROOM;
		g = group_end(g);
		for (int i = 0; i < 2; i++)
			receiver_add(receivers[i], g, zstd);
	}
	for (int i = 0; i < 2; i++) {
		static uint8_t bytes[GROUPS * 2 * GROUP_ROOM];

		assert_true(receivers[i]->charge >= GROUPS * GROUP_ROOM);
		do {
			receiver_send(receivers[i]);
		} while (recv(ends[i][1], bytes, sizeof(bytes), MSG_DONTWAIT) > 0);
		assert_int_equal(receivers[i]->n, 0);
		assert_int_equal(receivers[i]->charge, 0);
		receiver_free(receivers[i]);
		close(ends[i][1]);
	}
	group_pool_clear(&pool);
	ZSTD_freeCCtx(zstd);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(pings, clean),
		cmocka_unit_test_teardown(secrets, clean),
		cmocka_unit_test_teardown(strangers, clean),
		cmocka_unit_test_teardown(crowd, clean),
		cmocka_unit_test(stuck),
		cmocka_unit_test(shared_groups),
	};

	return cmocka_run_group_tests_name("receiver", tests, make_dir, remove_dir);
}
