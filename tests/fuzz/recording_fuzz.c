/* SPDX-License-Identifier: GPL-2.0-only */
/* The recording reader and the decoder. The first byte selects a mapped file or a pipe, and how
 * many slots are requested at a time; the rest is the recording. Seeds without that byte are read
 * as files. */
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include <linux/perf_event.h>
#include "decode/decoder.h"
#include "error.h"
#include "event.h"
#include "os/cpus.h"
#include "recording/recording.h"
#include "decode/records.h"
#include "formats/formats.h"
#include "stacks/resolve.h"
#include "source.h"
#include "stacks/stacks.h"

enum { BATCH = 64, PIPE = 1 << 16 };

static volatile uint64_t sink;

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* The input as a file, or as a pipe if it fits into one. */
static int open_input(const uint8_t *data, size_t size, int pipe_wanted)
{
	int fds[2], fd;

	if (pipe_wanted && size <= PIPE && !pipe(fds)) {
		if (write(fds[1], data, size) != (ssize_t)size)
			abort();
		close(fds[1]);
		return fds[0];
	}
	fd = memfd_create("fuzz", 0);
	if (fd < 0 || write(fd, data, size) != (ssize_t)size)
		abort();
	return fd;
}

/* All names of the stack of an event. */
static uint64_t look_at_stack(struct resolve *r, const struct event *ev)
{
	struct stacks *stacks = resolve_stacks(r);
	uint32_t id = resolve_stack(r, ev);
	struct frame frame;
	uint64_t sum = id;

	for (uint32_t i = 0; stacks_frame(stacks, id, i, &frame); i++)
		sum += (frame.symbol ? strlen(frame.symbol) : 0) +
		       (frame.dso ? strlen(frame.dso) : 0);
	return sum;
}

/* Reads everything that is handed out. */
static uint64_t drain(struct source *s, struct resolve *r, int max)
{
	struct slot slots[BATCH];
	struct records *records = records_new();
	struct event events[4];
	struct error err;
	uint64_t sum = 0;
	int n;

	for (int i = 0; i < decoder_nr_attrs(s->decoder); i++)
		decoder_add_class(s->decoder, i, EVENT_FIRST, 0);
	for (int type = 1; type < 32; type++)
		decoder_add_record(s->decoder, -1, type, EVENT_FIRST + type);
	while ((n = s->ops->next(s, slots, max, UINT64_MAX, &err)) >= 0) {
		resolve_begin_batch(r);
		records_begin_batch(records);
		for (int i = 0; i < n; i++) {
			int nr = decoder_decode(s->decoder, slots[i].rec, events, 4);

			if (slots[i].ring >= s->nr_rings)
				abort();
			for (int k = 0; k < nr; k++)
				events[k].time = (double)slots[i].time;
			for (int k = 0; k < nr; k++)
				if (events[k].class > EVENT_FIRST)
					records_event(records, slots[i].rec, &events[k]);
			if (nr > 0 && events[0].class == EVENT_FIRST) {
				resolve_unwind(r, s->decoder, slots[i].rec, events, nr);
				sum += look_at_stack(r, &events[0]);
			} else if (nr > 0 && events[0].class < EVENT_FIRST &&
				   events[0].class != EVENT_LOST) {
				resolve_record(r, slots[i].rec, &events[0]);
			}
			for (int k = 0; k < nr; k++) {
				for (uint32_t b = 0; b < events[k].raw_size; b++)
					sum += events[k].raw[b];
				if (events[k].chain)
					sum += events[k].chain[events[k].chain[0]];
			}
		}
		if (!n && (!s->ops->wait || s->ops->wait(s, 1000000000)))
			abort();
	}
	records_free(records);
	if (n != -ENODATA)
		abort();
	return sum;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	uint8_t mode = size && *data != 'P' ? *data : 0;
	int skip = size && *data != 'P';
	struct resolve *resolve;
	struct source *r;
	struct error err;

	r = recording_open_fd(open_input(data + skip, size - skip, mode & 1), "input", &err);
	if (!r)
		return 0;
	resolve = resolve_new(r->info.build_ids, false, formats_symbols(r->ops->formats(r, &err)),
			      STACK_KERNEL | STACK_USER);
	sink = drain(r, resolve, 1 + mode / 4);
	for (int level = 0; level < CACHE_LEVELS; level++)
		for (int cpu = 0; r->info.first_sharers[level] && cpu < CPUS_MAX; cpu++)
			sink += r->info.first_sharers[level][cpu];
	resolve_free(resolve);
	r->ops->free(r);
	return 0;
}
