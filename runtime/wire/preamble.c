/* SPDX-License-Identifier: GPL-2.0-only */
/* The layouts are those of tools/perf/Documentation/perf.data-file-format.txt in the kernel. */
#include "wire/preamble.h"
#include <ctype.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>
#include "wire/bytes.h"
#include "wire/own_records.h"

enum {
	RECORD_ATTR = 64,
	RECORD_TRACING_DATA = 66,
	RECORD_EVENT_UPDATE = 78,
	RECORD_FEATURE = 80,
	UPDATE_NAME = 1,
	PIPE_HEADER = 16,
	STRING_ALIGN = 64,
	RECORD_MAX = UINT16_MAX & ~7,
	ZSTD_TYPE = 1,
	ROOM_TO_UNPACK = 1 << 18 /* bytes that a receiver needs for a decompressed record */
};

enum feature {
	FEATURE_HOSTNAME = 3,
	FEATURE_OSRELEASE = 4,
	FEATURE_ARCH = 6,
	FEATURE_NRCPUS = 7,
	FEATURE_CMDLINE = 11,
	FEATURE_EVENT_DESC = 12,
	FEATURE_CLOCKID = 23,
	FEATURE_COMPRESSED = 27,
	FEATURE_CLOCK_DATA = 29
};

/* Appends the rest of a file; nothing if it cannot be read. */
static void add_file(struct bytes *out, const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	char buf[4096];
	ssize_t n;

	if (fd < 0)
		return;
	while ((n = read(fd, buf, sizeof(buf))) > 0)
		bytes_add(out, buf, n);
	close(fd);
}

/* Starts a record and returns its place. */
static size_t begin(struct bytes *out, uint32_t type)
{
	struct perf_event_header header = {.type = type};

	bytes_add(out, &header, sizeof(header));
	return out->size - sizeof(header);
}

/* Ends a record, or takes it back if it is too large for one. */
static void end(struct bytes *out, size_t at)
{
	struct perf_event_header *header;

	bytes_align(out, at, 8);
	if (out->failed)
		return;
	header = (struct perf_event_header *)(out->data + at);
	if (out->size - at > RECORD_MAX)
		out->size = at;
	else
		header->size = out->size - at;
}

static void add_attr(struct bytes *out, const struct wire_event *ev)
{
	size_t at = begin(out, RECORD_ATTR);

	bytes_add(out, &ev->attr, sizeof(ev->attr));
	bytes_add(out, ev->ids, ev->nr_ids * sizeof(*ev->ids));
	end(out, at);
}

/* perf names events other than tracepoints by this. */
static void add_name(struct bytes *out, const struct wire_event *ev)
{
	size_t at;

	if (!ev->nr_ids)
		return;
	at = begin(out, RECORD_EVENT_UPDATE);
	bytes_add_u64(out, UPDATE_NAME);
	bytes_add_u64(out, ev->ids[0]);
	bytes_add(out, ev->name, strlen(ev->name) + 1);
	end(out, at);
}

static size_t begin_feature(struct bytes *out, enum feature id)
{
	size_t at = begin(out, RECORD_FEATURE);

	bytes_add_u64(out, id);
	return at;
}

static void add_string(struct bytes *out, const char *text)
{
	size_t size = strlen(text) + 1, at;

	bytes_add_u32(out, (size + STRING_ALIGN - 1) / STRING_ALIGN * STRING_ALIGN);
	at = out->size;
	bytes_add(out, text, size);
	bytes_align(out, at, STRING_ALIGN);
}

static void add_string_feature(struct bytes *out, enum feature id, const char *text)
{
	size_t at = begin_feature(out, id);

	add_string(out, text);
	end(out, at);
}

static void add_command_line(struct bytes *out)
{
	size_t at = begin_feature(out, FEATURE_CMDLINE), nr_at = out->size;
	struct bytes words = {0};
	uint32_t n = 0;

	bytes_add_u32(out, 0);
	add_file(&words, "/proc/self/cmdline");
	bytes_add(&words, "", 1);
	for (size_t i = 0; !words.failed && i + 1 < words.size; n++) {
		add_string(out, (const char *)words.data + i);
		i += strlen((const char *)words.data + i) + 1;
	}
	if (!out->failed)
		memcpy(out->data + nr_at, &n, sizeof(n));
	free(words.data);
	end(out, at);
}

static void add_event_desc(struct bytes *out, const struct wire_event *events, uint32_t n)
{
	size_t at = begin_feature(out, FEATURE_EVENT_DESC);

	bytes_add_u32(out, n);
	bytes_add_u32(out, sizeof(events->attr));
	for (uint32_t i = 0; i < n; i++) {
		bytes_add(out, &events[i].attr, sizeof(events[i].attr));
		bytes_add_u32(out, events[i].nr_ids);
		add_string(out, events[i].name);
		bytes_add(out, events[i].ids, events[i].nr_ids * sizeof(*events[i].ids));
	}
	end(out, at);
}

static void add_clocks(struct bytes *out, const struct wire_hello *hello, uint64_t mono,
		       uint64_t real)
{
	struct timespec resolution = {.tv_nsec = 1};
	size_t at = begin_feature(out, FEATURE_CLOCKID);

	clock_getres(hello->clockid, &resolution);
	bytes_add_u64(out, resolution.tv_nsec);
	end(out, at);
	if (!real)
		return;
	at = begin_feature(out, FEATURE_CLOCK_DATA);
	bytes_add_u32(out, 1); /* version */
	bytes_add_u32(out, hello->clockid);
	bytes_add_u64(out, real);
	bytes_add_u64(out, mono);
	end(out, at);
}

static void add_features(struct bytes *out, const struct wire_event *events, uint32_t n,
			 const struct wire_hello *hello, uint64_t mono, uint64_t real)
{
	struct utsname name;
	size_t at;

	uname(&name);
	add_string_feature(out, FEATURE_HOSTNAME, name.nodename);
	add_string_feature(out, FEATURE_OSRELEASE, name.release);
	add_string_feature(out, FEATURE_ARCH, name.machine);
	at = begin_feature(out, FEATURE_NRCPUS);
	bytes_add_u32(out, sysconf(_SC_NPROCESSORS_CONF));
	bytes_add_u32(out, sysconf(_SC_NPROCESSORS_ONLN));
	end(out, at);
	add_command_line(out);
	add_event_desc(out, events, n);
	add_clocks(out, hello, mono, real);
	if (hello->flags & WIRE_ZSTD) {
		at = begin_feature(out, FEATURE_COMPRESSED);
		bytes_add_u32(out, 1); /* version */
		bytes_add_u32(out, ZSTD_TYPE);
		bytes_add_u32(out, 1); /* level */
		bytes_add_u32(out, 1); /* ratio: unknown yet */
		bytes_add_u32(out, ROOM_TO_UNPACK);
		end(out, at);
	}
}

static void add_sized_file(struct bytes *out, const char *dir, const char *name)
{
	char path[128];
	size_t at;
	uint64_t size;

	snprintf(path, sizeof(path), "%s/events/%s", dir, name);
	bytes_add(out, name, strlen(name) + 1);
	at = out->size;
	bytes_add_u64(out, 0);
	add_file(out, path);
	size = out->size - at - sizeof(size);
	if (!out->failed)
		memcpy(out->data + at, &size, sizeof(size));
}

/* Whether an earlier event has the same format, or system. */
static bool is_known(const struct wire_event *events, uint32_t i, bool system)
{
	for (uint32_t j = 0; j < i; j++)
		if (events[j].system && (system ? !strcmp(events[j].system, events[i].system)
						: events[j].format == events[i].format))
			return true;
	return false;
}

static bool is_in(const struct wire_event *events, uint32_t i, const char *system)
{
	return events[i].system && !strcmp(events[i].system, system) && !is_known(events, i, false);
}

static void add_systems(struct bytes *out, const struct wire_event *events, uint32_t n)
{
	uint32_t systems = 0;

	for (uint32_t i = 0; i < n; i++)
		systems += events[i].system && !is_known(events, i, true);
	bytes_add_u32(out, systems);
	for (uint32_t i = 0; i < n; i++) {
		uint32_t formats = 0;

		if (!events[i].system || is_known(events, i, true))
			continue;
		bytes_add(out, events[i].system, strlen(events[i].system) + 1);
		for (uint32_t j = i; j < n; j++)
			formats += is_in(events, j, events[i].system);
		bytes_add_u32(out, formats);
		for (uint32_t j = i; j < n; j++) {
			if (!is_in(events, j, events[i].system))
				continue;
			bytes_add_u64(out, events[j].format_size);
			bytes_add(out, events[j].format, events[j].format_size);
		}
	}
}

/* The formats, as trace-cmd stores them: version 0.6. */
static void add_tracing_data(struct bytes *out, const struct wire_event *events, uint32_t n)
{
	const char *dir = access("/sys/kernel/tracing/events", F_OK) ? "/sys/kernel/debug/tracing"
								     : "/sys/kernel/tracing";
	const struct perf_event_header header = {.type = RECORD_TRACING_DATA, .size = 16};
	const uint8_t machine[] = {0 /* little-endian */, sizeof(long)};
	char path[128];
	uint32_t size;
	size_t size_at, at, strings_at;

	bytes_add(out, &header, sizeof(header));
	size_at = out->size;
	bytes_add_u64(out, 0); /* u32 size, and room that keeps what follows aligned */
	at = out->size;
	bytes_add(out, "\x17\x08\x44tracing", 10);
	bytes_add(out, "0.6", 4);
	bytes_add(out, machine, sizeof(machine));
	bytes_add_u32(out, sysconf(_SC_PAGESIZE));
	add_sized_file(out, dir, "header_page");
	add_sized_file(out, dir, "header_event");
	bytes_add_u32(out, 0); /* formats of ftrace's own events */
	add_systems(out, events, n);
	bytes_add_u32(out, 0); /* kallsyms */
	strings_at = out->size;
	bytes_add_u32(out, 0);
	snprintf(path, sizeof(path), "%s/printk_formats", dir);
	add_file(out, path);
	size = out->size - strings_at - sizeof(size);
	if (!out->failed)
		memcpy(out->data + strings_at, &size, sizeof(size));
	bytes_add_u64(out, 0); /* names of tasks */
	bytes_align(out, at, 8);
	size = out->size - at;
	if (!out->failed)
		memcpy(out->data + size_at, &size, sizeof(size));
}

static void read_id(const char *path, uint8_t id[16])
{
	FILE *f = fopen(path, "re");
	int digits = 0, c;

	while (f && digits < 32 && (c = fgetc(f)) != EOF) {
		int value = isdigit(c) ? c - '0' : tolower(c) - 'a' + 10;

		if (!isxdigit(c))
			continue;
		id[digits / 2] |= digits % 2 ? value : value << 4;
		digits++;
	}
	if (f)
		fclose(f);
}

void preamble_fill(struct wire_hello *hello)
{
	struct utsname name;

	hello->head = wire_head(WIRE_HELLO, sizeof(*hello));
	hello->version = WIRE_VERSION;
	read_id("/proc/sys/kernel/random/boot_id", hello->boot_id);
	read_id("/etc/machine-id", hello->machine_id);
	hello->nr_cpus = sysconf(_SC_NPROCESSORS_CONF);
	uname(&name);
	snprintf(hello->hostname, sizeof(hello->hostname), "%.63s", name.nodename);
}

void preamble_write(struct bytes *out, const struct wire_event *events, uint32_t n,
		    const struct wire_hello *hello, uint64_t mono, uint64_t real)
{
	bytes_add(out, "PERFILE2", 8);
	bytes_add_u64(out, PIPE_HEADER);
	for (uint32_t i = 0; i < n; i++)
		add_attr(out, &events[i]);
	for (uint32_t i = 0; i < n; i++)
		add_name(out, &events[i]);
	add_features(out, events, n, hello, mono, real);
	add_tracing_data(out, events, n);
	bytes_add(out, hello, sizeof(*hello));
}
