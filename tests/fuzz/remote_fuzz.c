/* SPDX-License-Identifier: GPL-2.0-only */
/* The receiver of a stream from another host, or if its size is even from a guest, as a file. The
 * input is the stream: a recording in perf's pipe format, with the records of wire/own_records.h.
 */
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#include "decode/decoder.h"
#include "error.h"
#include "event.h"
#include "pull/remote.h"
#include "pull/remote_state.h"
#include "source.h"

enum { BATCH = 64, MS = 1000000 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void drain(struct source *s)
{
	struct slot slots[BATCH];
	struct event events[4];
	struct error err;
	int n;

	for (int i = 0; i < decoder_nr_attrs(s->decoder); i++)
		decoder_add_class(s->decoder, i, EVENT_FIRST, 0);
	while ((n = s->ops->next(s, slots, BATCH, UINT64_MAX, &err)) >= 0)
		for (int i = 0; i < n; i++) {
			if (slots[i].flags >> SLOT_OWN_SHIFT & SLOT_OWN_MASK)
				s->ops->decode(s, &slots[i], events);
			else
				decoder_decode(s->decoder, slots[i].rec, events, 4);
		}
	if (n != -ENODATA)
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char path[64];
	struct source *s;
	struct error err;
	FILE *file;

	snprintf(path, sizeof(path), "/dev/shm/remote_fuzz.%d", getpid());
	file = fopen(path, "w");
	if (!file || fwrite(data, 1, size, file) != size || fclose(file))
		abort();
	s = remote_new(path, NULL, &err);
	if (!s)
		abort();
	if (size % 2 == 0 && remote_clock_set_vm(&((struct remote *)s)->clock, NULL))
		abort();
	if (remote_connect(s, 100 * MS, &err) > 0) {
		remote_align(s);
		drain(s);
	}
	s->ops->free(s);
	unlink(path);
	return 0;
}
