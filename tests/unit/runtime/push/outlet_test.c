/* SPDX-License-Identifier: GPL-2.0-only */
/* Receivers of one address: what they get, record by record, and what they miss. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include "made_push.h"
#include "wire/own_records.h"

enum { FINISHED_ROUND = 68 };

/* Starts a process that connects and saves all that is sent. It stops before it reads, if asked. */
static pid_t start_reader(const char *to, bool stops)
{
	pid_t pid = fork();
	char buf[65536];
	int fd, out;
	ssize_t n;

	assert_true(pid >= 0);
	if (pid)
		return pid;
	fd = connect_here();
	out = open(to, O_WRONLY | O_CREAT | O_TRUNC, 0600);
	if (stops)
		raise(SIGSTOP);
	while ((n = read(fd, buf, sizeof(buf))) > 0)
		if (write(out, buf, n) != n)
			_exit(1);
	_exit(n < 0);
}

/* Ends the run and its readers, and returns the totals. */
static struct push_totals finish(struct run *run, const pid_t *readers, int n)
{
	struct push_totals totals;
	int status;

	assert_int_equal(end_run(run), -ENODATA);
	push_read_totals(run->push, 0, &totals);
	run->source->ops->free(run->source);
	for (int i = 0; i < n; i++) {
		assert_int_equal(waitpid(readers[i], &status, 0), readers[i]);
		assert_int_equal(status, 0);
	}
	return totals;
}

/* What the own records of a saved stream say. */
struct groups {
	uint32_t hellos, groups, rounds, pairs, byes;
	uint64_t events, gaps; /* events in groups, and before groups but in none */
	uint64_t lost;
	uint32_t unknown;
	uint64_t epoch;
};

/* Reads a stream that is not compressed. first: the events before its first group. */
static struct groups read_groups(const char *file, uint64_t *first)
{
	struct groups g = {0};
	static uint8_t bytes[64 << 20];
	int fd = open(file, O_RDONLY);
	ssize_t size = read(fd, bytes, sizeof(bytes)), at = 16;
	uint64_t expected = 0, seq = 0, floor = 0, last = 0, samples = 0, in_group = 0;

	close(fd);
	assert_true(size > 16 && (size_t)size < sizeof(bytes));
	assert_memory_equal(bytes, "PERFILE2", 8);
	while (at < size) {
		const struct perf_event_header *rec = (void *)(bytes + at);
		const struct wire_head *head = (void *)rec;
		const struct wire_group *group = (void *)rec;

		assert_true(rec->size >= 8 && rec->size % 8 == 0 && at + rec->size <= size);
		at += rec->size;
		if (rec->type == 66)
			at += *(const uint32_t *)(rec + 1);
		if (rec->type == PERF_RECORD_SAMPLE) {
			assert_in_range(((const struct sample *)rec)->time, floor, last);
			samples++;
		}
		if (rec->type == FINISHED_ROUND) {
			assert_int_equal(samples, in_group);
			samples = 0;
			g.rounds++;
		}
		if (rec->type != WIRE_RECORD)
			continue;
		if (!memcmp(head->tag, WIRE_HELLO, WIRE_TAG)) {
			const struct wire_hello *hello = (void *)rec;

			assert_int_equal(rec->size, sizeof(*hello));
			assert_int_equal(hello->version, WIRE_VERSION);
			assert_int_equal(hello->clockid, CLOCK_MONOTONIC);
			assert_true(hello->flags & WIRE_ORDERED);
			g.epoch = hello->epoch;
			g.hellos++;
		}
		g.pairs += !memcmp(head->tag, WIRE_PAIR, WIRE_TAG);
		g.byes += !memcmp(head->tag, WIRE_BYE, WIRE_TAG);
		if (memcmp(head->tag, WIRE_GROUP, WIRE_TAG))
			continue;
		if (g.groups++) {
			assert_true(group->seq > seq);
			/* Either no group is missing, or the gap says how many events were. */
			if (group->seq == seq + 1)
				assert_int_equal(group->events_before, expected);
			g.gaps += group->events_before - expected;
		} else if (first) {
			*first = group->events_before;
		}
		assert_true(group->first_time >= last);
		seq = group->seq;
		in_group = group->events;
		expected = group->events_before + group->events;
		floor = last;
		last = group->last_time;
		g.events += group->events;
		g.lost = group->lost_before;
		g.unknown = group->unknown_before;
	}
	assert_int_equal(at, size);
	assert_int_equal(g.rounds, g.groups);
	return g;
}

static void two_receivers(void **state)
{
	enum { FIRST = 3000, N = 9000 };
	struct run run = open_run((const char *[]){address, NULL}, NULL);
	char one[80], two[80];
	struct groups a, b;
	uint64_t before = 0;
	pid_t readers[2];

	(void)state;
	snprintf(one, sizeof(one), "%s.one", path);
	snprintf(two, sizeof(two), "%s.two", path);
	readers[0] = start_reader(one, false);
	await(&run, 1);
	produce(&run, FIRST);
	readers[1] = start_reader(two, false);
	await(&run, 2);
	run.made->loss_after = FIRST + 1000;
	produce(&run, N);
	finish(&run, readers, 2);
	a = read_groups(one, NULL);
	b = read_groups(two, &before);
	assert_int_equal(a.events, pushed_below(N));
	/* Its first group may have begun before it came. */
	assert_in_range(before, 1, pushed_below(FIRST));
	assert_int_equal(b.events, pushed_below(N) - before);
	assert_int_equal(a.gaps + b.gaps, 0);
	assert_int_equal(a.hellos + b.hellos, 2);
	assert_int_equal(a.epoch, b.epoch);
	assert_int_equal(a.byes + b.byes, 2);
	assert_true(a.pairs && b.pairs);
	assert_int_equal(read_recording(one, 0).lost, 7);
	unlink(one);
	unlink(two);
}

/* A receiver that reads nothing for a while: whole groups are dropped, and both ends agree on how
 * many events they had. A loss of unknown size among them is not forgotten. */
static void slow_receiver(void **state)
{
	enum { N = 400000 }; /* more than twice what the queue holds */
	struct run run = open_run((const char *[]){address, NULL}, NULL);
	struct push_totals totals;
	char saved[80];
	struct groups g;
	pid_t reader;

	(void)state;
	snprintf(saved, sizeof(saved), "%s.saved", path);
	reader = start_reader(saved, true);
	await(&run, 1);
	run.made->loss_after = N / 4 * 3;
	run.made->loss_is_unknown = true;
	produce(&run, N);
	push_read_totals(run.push, 0, &totals);
	assert_true(totals.dropped > N / 10);
	assert_int_equal(totals.receivers, 1);
	kill(reader, SIGCONT);
	steps(&run, 20);
	produce(&run, N + 3000);
	totals = finish(&run, &reader, 1);
	g = read_groups(saved, NULL);
	assert_int_equal(totals.events, pushed_below(N + 3000));
	assert_int_equal(totals.sent + totals.dropped, totals.events);
	assert_int_equal(g.events, totals.sent);
	assert_int_equal(g.gaps, totals.dropped);
	assert_int_equal(g.lost, 0);
	assert_int_equal(g.unknown, 1);
	assert_int_equal(g.byes, 1);
	unlink(saved);
}

/* One that is gone does not disturb, and another one can come. */
static void hung_up(void **state)
{
	struct run run = open_run((const char *[]){address, NULL}, NULL);
	struct push_totals totals;
	char saved[80];
	int fd = connect_here();
	pid_t reader;

	(void)state;
	snprintf(saved, sizeof(saved), "%s.saved", path);
	await(&run, 1);
	produce(&run, 3000);
	assert_non_null(strstr(push_take_messages(run.push), "Accept client unix:"));
	close(fd);
	await(&run, 0);
	produce(&run, 6000);
	assert_non_null(strstr(push_take_messages(run.push), "Client hangs up unix:"));
	assert_string_equal(push_take_messages(run.push), "");
	push_read_totals(run.push, 0, &totals);
	assert_int_equal(totals.events, pushed_below(6000));
	reader = start_reader(saved, false);
	await(&run, 1);
	produce(&run, 9000);
	finish(&run, &reader, 1);
	assert_int_equal(read_groups(saved, NULL).events, pushed_below(9000) - pushed_below(6000));
	unlink(saved);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(two_receivers, clean),
		cmocka_unit_test_teardown(slow_receiver, clean),
		cmocka_unit_test_teardown(hung_up, clean),
	};

	return cmocka_run_group_tests_name("outlet", tests, make_dir, remove_dir);
}
