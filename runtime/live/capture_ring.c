/* SPDX-License-Identifier: GPL-2.0-only */
#include "live/capture_ring.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>
#include <linux/perf_event.h>
#include "bpf/bpf.h"
#include "decode/decoder.h"
#include "error.h"
#include "live/merge.h"
#include "live/ring.h"
#include "os/cpus.h"
#include "source.h"

enum {
	PAGE = 4096,
	PATIENCE = 1000,    /* how often capture_rings_stop() looks for running programs */
	LOOK_PERIOD = 10000 /* ns between looks for running programs */
};

struct one_ring {
	uint8_t *base;
	struct ring *ring; /* NULL: not yet added; owned by the merge */
};

struct capture_rings {
	const struct event_request *requests;
	uint32_t nr_requests, nr_rings, size;
	struct one_ring *rings;
	uint8_t *array;
	size_t array_size;
	uint64_t *consumed;	  /* of the bell, written here */
	const uint64_t *produced; /* of the bell, written by the kernel */
	int bell;
	bool overwrite, is_early;
	uint64_t missed_before; /* by the programs, before the start */
};

static uint64_t *word(const struct capture_rings *c, uint32_t i, unsigned int at)
{
	return (uint64_t *)(c->rings[i].base + at);
}

static uint64_t get(const struct capture_rings *c, uint32_t i, unsigned int at)
{
	return __atomic_load_n(word(c, i, at), __ATOMIC_ACQUIRE);
}

uint64_t capture_new_id(struct error *err)
{
	struct perf_event_attr attr = {.type = PERF_TYPE_SOFTWARE,
				       .config = PERF_COUNT_SW_DUMMY,
				       .size = sizeof(attr),
				       .exclude_kernel = 1,
				       .disabled = 1};
	int fd = bpf_perf_open(&attr, 0, -1);
	uint64_t id = 0;

	if (fd < 0 || ioctl(fd, PERF_EVENT_IOC_ID, &id))
		error_set(err, fd < 0 ? fd : -errno, "cannot get an id for captured events");
	if (fd >= 0)
		close(fd);
	return id;
}

static int add_event(const struct event_request *req, struct decoder *decoder, struct error *err)
{
	struct perf_event_attr attr = {
		.type = req->attr.type,
		.config = req->attr.config,
		.size = sizeof(attr),
		.sample_period = 1,
		.sample_type = PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_TID | PERF_SAMPLE_TIME |
			       PERF_SAMPLE_CPU | PERF_SAMPLE_RAW,
		.sample_id_all = 1,
		.use_clockid = 1,
		.clockid = CLOCK_MONOTONIC,
	};
	int index;

	if (req->callchain)
		attr.sample_type |= PERF_SAMPLE_CALLCHAIN;
	index = decoder_add_attr(decoder, &attr, err);
	if (index < 0)
		return index;
	if (decoder_add_id(decoder, req->captured.id, index) ||
	    decoder_add_class(decoder, index, req->class, req->payload))
		return error_set(err, -ENOMEM, "out of memory");
	return 0;
}

/* Maps the two pages of the bell: a BPF ring buffer whose records are not looked at. */
static int map_bell(struct capture_rings *c, int bell, struct error *err)
{
	void *consumed = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, bell, 0);
	void *produced = mmap(NULL, PAGE, PROT_READ, MAP_SHARED, bell, PAGE);

	c->bell = bell;
	c->consumed = consumed == MAP_FAILED ? NULL : consumed;
	c->produced = produced == MAP_FAILED ? NULL : produced;
	if (c->consumed && c->produced)
		return 0;
	return error_set(err, -errno, "cannot map a BPF ring buffer: %s", strerror(errno));
}

static int map_rings(struct capture_rings *c, const struct captured *from, const struct cpus *cpus,
		     struct error *err)
{
	size_t each = CAPTURE_DATA + from->size + CAPTURE_MARGIN;
	void *array;

	c->array_size = each * from->nr_cpus;
	array = mmap(NULL, c->array_size, PROT_READ | PROT_WRITE, MAP_SHARED, from->rings, 0);
	if (array == MAP_FAILED)
		return error_set(err, -errno, "cannot map the rings of captured events: %s",
				 strerror(errno));
	c->array = array;
	c->size = from->size;
	c->overwrite = from->overwrite;
	c->rings = calloc(from->nr_cpus, sizeof(*c->rings));
	if (!c->rings)
		return error_set(err, -ENOMEM, "out of memory");
	for (uint32_t cpu = 0; cpu < from->nr_cpus; cpu++)
		if (cpus_has(cpus, cpu))
			c->rings[c->nr_rings++].base = c->array + cpu * each;
	return map_bell(c, from->bell, err);
}

int capture_rings_open(const struct event_request *requests, uint32_t n, const struct cpus *cpus,
		       struct decoder *decoder, struct capture_rings **rings, struct error *err)
{
	struct capture_rings *c;
	int ret = 0;

	*rings = NULL;
	for (uint32_t i = 0; i < n && !ret; i++) {
		if (!requests[i].captured.rings)
			continue;
		if (!*rings) {
			c = calloc(1, sizeof(*c));
			if (!c)
				return error_set(err, -ENOMEM, "out of memory");
			c->requests = requests;
			c->nr_requests = n;
			*rings = c;
			ret = map_rings(c, &requests[i].captured, cpus, err);
		}
		if (!ret)
			ret = add_event(&requests[i], decoder, err);
		(*rings)->is_early |= requests[i].captured.is_early;
	}
	if (ret) {
		capture_rings_close(*rings);
		*rings = NULL;
	}
	return ret;
}

void capture_rings_close(struct capture_rings *c)
{
	if (!c)
		return;
	if (c->array)
		munmap(c->array, c->array_size);
	if (c->consumed)
		munmap(c->consumed, PAGE);
	if (c->produced)
		munmap((void *)c->produced, PAGE);
	free(c->rings);
	free(c);
}

uint32_t capture_rings_nr(const struct capture_rings *c)
{
	return c->nr_rings;
}

int capture_rings_add(struct capture_rings *c, uint32_t i, struct merge *merge,
		      const struct decoder *decoder)
{
	struct ring *ring =
		ring_new_linear(c->rings[i].base, c->size / PAGE, decoder, c->overwrite);

	if (!ring || merge_add(merge, ring)) {
		ring_free(ring);
		return -ENOMEM;
	}
	c->rings[i].ring = ring;
	return 0;
}

int capture_rings_fd(const struct capture_rings *c)
{
	return c->bell;
}

bool capture_rings_answer(struct capture_rings *c)
{
	uint64_t produced = __atomic_load_n(c->produced, __ATOMIC_ACQUIRE);

	__atomic_store_n(c->consumed, produced, __ATOMIC_RELEASE);
	return c->is_early;
}

static uint64_t bits_of(const struct capture_rings *c, int class)
{
	uint64_t bits = 0;

	for (uint32_t i = 0; i < c->nr_requests; i++) {
		const struct event_request *req = &c->requests[i];

		if (req->captured.rings && (class < 0 || req->class == class))
			bits |= 1ull << req->captured.bit;
	}
	return bits;
}

/* Returns how often programs were skipped because they had interrupted themselves. */
static uint64_t missed(const struct capture_rings *c)
{
	uint64_t n = 0;

	for (uint32_t i = 0; i < c->nr_requests; i++)
		if (c->requests[i].captured.rings)
			n += bpf_recursion_misses(c->requests[i].captured.program);
	return n;
}

void capture_rings_enable(struct capture_rings *c)
{
	c->missed_before = missed(c);
	for (uint32_t i = 0; i < c->nr_rings; i++)
		__atomic_store_n(word(c, i, CAPTURE_ENABLED), bits_of(c, -1), __ATOMIC_RELEASE);
}

void capture_rings_stop_class(struct capture_rings *c, uint16_t class)
{
	uint64_t bits = bits_of(c, class);

	for (uint32_t i = 0; i < c->nr_rings; i++)
		__atomic_fetch_and(word(c, i, CAPTURE_ENABLED), ~bits, __ATOMIC_SEQ_CST);
}

void capture_rings_pause(struct capture_rings *c, bool paused)
{
	struct timespec period = {.tv_nsec = LOOK_PERIOD};

	for (uint32_t i = 0; i < c->nr_rings; i++)
		__atomic_store_n(word(c, i, CAPTURE_PAUSED), paused, __ATOMIC_SEQ_CST);
	for (uint32_t i = 0; paused && i < c->nr_rings; i++) {
		/* Programs do not sleep, so they end. */
		while (get(c, i, CAPTURE_NEST))
			nanosleep(&period, NULL);
		__atomic_store_n(word(c, i, CAPTURE_HEAD), get(c, i, CAPTURE_RESERVED),
				 __ATOMIC_RELEASE);
	}
}

void capture_rings_stop(struct capture_rings *c)
{
	struct timespec period = {.tv_nsec = LOOK_PERIOD};

	for (uint32_t i = 0; i < c->nr_rings; i++)
		__atomic_store_n(word(c, i, CAPTURE_ENABLED), 0, __ATOMIC_SEQ_CST);
	for (uint32_t i = 0; i < c->nr_rings; i++) {
		for (int n = 0; get(c, i, CAPTURE_NEST) && n < PATIENCE; n++)
			nanosleep(&period, NULL);
		/* An interrupt may have written its record after the head was set. */
		if (!get(c, i, CAPTURE_NEST))
			__atomic_store_n(word(c, i, CAPTURE_HEAD), get(c, i, CAPTURE_RESERVED),
					 __ATOMIC_RELEASE);
	}
}

uint64_t capture_rings_unreported(const struct capture_rings *c)
{
	uint64_t n = missed(c) - c->missed_before;

	for (uint32_t i = 0; i < c->nr_rings; i++)
		n += get(c, i, CAPTURE_LOST) - (c->rings[i].ring ? ring_lost(c->rings[i].ring) : 0);
	return n;
}

void capture_rings_account(const struct capture_rings *c, bool is_whole, struct source_account *out)
{
	uint64_t written = 0, lost = missed(c) - c->missed_before;

	for (uint32_t i = 0; i < c->nr_rings; i++) {
		uint64_t reserved = get(c, i, CAPTURE_RESERVED);

		/* Overwritten rings are written backward. */
		written += c->overwrite ? -reserved : reserved;
		lost += get(c, i, CAPTURE_LOST);
	}
	*out = (struct source_account){.fired = written,
				       .lost = lost,
				       .per_sample = 1,
				       .is_exact = is_whole && !lost,
				       .is_sum = true};
}
