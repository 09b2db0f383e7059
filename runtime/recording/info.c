/* SPDX-License-Identifier: GPL-2.0-only */
#include "recording/info.h"
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include "decode/decoder.h"
#include "formats/formats.h"
#include "formats/tracepoint.h"
#include "recording/header.h"
#include "source.h"
#include "symbols/buildids.h"

static char *name_event(const struct header *h, uint32_t index)
{
	const struct perf_event_attr *attr = decoder_attr(h->decoder, index);
	const struct tracepoint *t = NULL;
	char *name;

	if (index < h->features.nr_names)
		return strdup(h->features.names[index]);
	if (attr->type == PERF_TYPE_TRACEPOINT)
		t = formats_by_id(h->features.formats, attr->config);
	if (t)
		return strdup(tracepoint_key(t));
	return asprintf(&name, "%u:%" PRIu64, attr->type, (uint64_t)attr->config) < 0 ? NULL : name;
}

/* Says how many events are named even if it fails, for info_clear(). */
static int list_events(struct source_info *info, const struct header *h)
{
	int nr = decoder_nr_attrs(h->decoder);
	struct recorded_event *events = calloc(nr, sizeof(*events));

	if (!events)
		return -ENOMEM;
	info->events = events;
	for (int i = 0; i < nr; i++) {
		const struct perf_event_attr *attr = decoder_attr(h->decoder, i);
		char *name = name_event(h, i);

		if (!name)
			return -ENOMEM;
		events[i] = (struct recorded_event){
			.name = name,
			.type = attr->type,
			.config = attr->config,
			.sample_type = attr->sample_type,
			.is_member = attr->read_format & PERF_FORMAT_GROUP && !attr->sample_period};
		info->nr_events = i + 1;
	}
	return 0;
}

/* Whether it was recorded on the running kernel: compares build ids, or releases without them. */
static bool is_own_kernel(const struct features *f)
{
	uint8_t theirs[BUILD_ID_MAX], ours[BUILD_ID_MAX];
	uint32_t size = buildids_find(f->build_ids, BUILDIDS_KERNEL, theirs);
	uint32_t our_size = buildids_own_kernel(ours);
	struct utsname here;

	if (size && our_size)
		return size == our_size && memcmp(theirs, ours, size) == 0;
	return f->release && !uname(&here) && strcmp(here.release, f->release) == 0;
}

static int32_t clock_of(const struct perf_event_attr *attr)
{
	return attr->use_clockid ? attr->clockid : SOURCE_CLOCK_LOCAL;
}

/* A conversion to the TSC is that of the local clock. */
static struct source_clock find_clock(const struct header *h)
{
	struct source_clock clock = h->features.clock;
	int nr = decoder_nr_attrs(h->decoder);

	clock.id = nr ? clock_of(decoder_attr(h->decoder, 0)) : SOURCE_CLOCK_LOCAL;
	for (int i = 1; i < nr; i++)
		if (clock_of(decoder_attr(h->decoder, i)) != clock.id)
			clock.id = SOURCE_CLOCK_MIXED;
	if (clock.id != SOURCE_CLOCK_LOCAL)
		clock.has_conversion = false;
	return clock;
}

int info_fill(struct source_info *info, const struct header *h)
{
	const struct features *f = &h->features;
	int64_t zero = f->wall_ns - f->clock_ns;

	info->is_recorded = true;
	info->own_kernel = is_own_kernel(f);
	info->arch = f->arch;
	info->build_ids = f->build_ids;
	info->clock = find_clock(h);
	info->wall_sec = f->has_wall ? (double)(zero / 1000000000) : NAN;
	info->wall_nsec = f->has_wall ? (double)(zero % 1000000000) : NAN;
	for (int i = 0; i < CACHE_LEVELS; i++)
		info->first_sharers[i] = f->first_sharers[i];
	info->nodes = f->nodes;
	return list_events(info, h);
}

void info_clear(struct source_info *info)
{
	for (uint32_t i = 0; i < info->nr_events; i++)
		free((char *)info->events[i].name);
	free((struct recorded_event *)info->events);
}

/* perf adds a dummy event to every recording, for records other than samples. */
static bool is_dummy(const struct recorded_event *ev)
{
	return ev->type == PERF_TYPE_SOFTWARE && ev->config == PERF_COUNT_SW_DUMMY;
}

void info_name_events(const struct source_info *info, char *out, size_t size)
{
	size_t n = 0;

	out[0] = '\0';
	for (uint32_t i = 0; i < info->nr_events && n < size; i++)
		if (!is_dummy(&info->events[i]))
			n += snprintf(out + n, size - n, "%s%s", n ? ", " : "",
				      info->events[i].name);
}
