/* SPDX-License-Identifier: GPL-2.0-only */
/* Readers of the feature sections. They use a cursor that never passes the end of the section:
 * counts and sizes in it are not trusted. */
#include "recording/features.h"
#include <stdlib.h>
#include <string.h>
#include "formats/formats.h"
#include "os/cpus.h"
#include "symbols/buildids.h"

struct cursor {
	const uint8_t *at, *end;
};

/* Returns the next size bytes of the section; NULL if it is shorter. */
static const void *get(struct cursor *c, uint64_t size)
{
	const uint8_t *at = c->at;

	if (size > (uint64_t)(c->end - c->at))
		return NULL;
	c->at += size;
	return at;
}

static bool get_value(struct cursor *c, void *value, size_t size)
{
	const void *at = get(c, size);

	if (at)
		memcpy(value, at, size);
	return at;
}

static bool get_u32(struct cursor *c, uint32_t *value)
{
	return get_value(c, value, sizeof(*value));
}

static bool get_u64(struct cursor *c, uint64_t *value)
{
	return get_value(c, value, sizeof(*value));
}

/* Returns a NUL-terminated text; NULL if there is no NUL. */
static const char *get_text(struct cursor *c)
{
	const uint8_t *nul = memchr(c->at, 0, c->end - c->at);

	return nul ? get(c, nul + 1 - c->at) : NULL;
}

/* Reads a string in perf's form: u32 size, then the text padded with NULs. The caller frees it;
 * NULL if it is damaged. */
static char *get_string(struct cursor *c)
{
	const char *text;
	uint32_t size;

	if (!get_u32(c, &size))
		return NULL;
	text = get(c, size);
	return text ? strndup(text, size) : NULL;
}

static bool read_string(struct cursor *c, char **string)
{
	char *text = get_string(c);

	free(*string);
	*string = text;
	return text;
}

static bool read_release(struct features *f, struct cursor *c)
{
	return read_string(c, &f->release);
}

static bool read_arch(struct features *f, struct cursor *c)
{
	return read_string(c, &f->arch);
}

static bool read_nr_cpus(struct features *f, struct cursor *c)
{
	return get_u32(c, &f->nr_cpus);
}

/* perf record --kcore (0) and --threads (1) write directories. */
static bool read_dir_format(struct features *f, struct cursor *c)
{
	uint64_t version;

	if (!get_u64(c, &version))
		return false;
	f->is_single = !version;
	return true;
}

static bool read_event_desc(struct features *f, struct cursor *c)
{
	uint32_t nr, attr_size, nr_ids;

	if (f->nr_names || !get_u32(c, &nr) || !get_u32(c, &attr_size))
		return false;
	for (uint32_t i = 0; i < nr; i++) {
		char *name, **names;

		if (!get(c, attr_size) || !get_u32(c, &nr_ids) || !(name = get_string(c)))
			return false;
		names = realloc(f->names, (f->nr_names + 1) * sizeof(*names));
		if (!names) {
			free(name);
			return false;
		}
		f->names = names;
		names[f->nr_names++] = name;
		if (!get(c, nr_ids * sizeof(uint64_t)))
			return false;
	}
	return true;
}

/* Reads records of header (type, misc, size), pid, 24 bytes with the id, and file name. With
 * HAS_SIZE in misc, the byte after the id is its size. */
static bool read_build_ids(struct features *f, struct cursor *c)
{
	enum { FIXED = 8 + 4 + 24, HAS_SIZE = 1 << 15, SIZE_AT = 8 + 4 + 20 };

	while (c->at < c->end) {
		const uint8_t *record = c->at;
		uint16_t misc, size;

		if (c->end - c->at < FIXED)
			return false;
		memcpy(&misc, record + 4, sizeof(misc));
		memcpy(&size, record + 6, sizeof(size));
		if (size <= FIXED || !get(c, size) || !memchr(record + FIXED, 0, size - FIXED))
			return false;
		if (!buildids_add(f->build_ids, (const char *)record + FIXED, record + 12,
				  misc & HAS_SIZE ? record[SIZE_AT] : BUILD_ID_MAX))
			return false;
	}
	return true;
}

static bool note_cache(struct features *f, uint32_t level, const char *list)
{
	struct cpus cpus;

	return !cpus_parse(&cpus, list, NULL) &&
	       cpus_note(&f->first_sharers[level - 1], list, cpus_next(&cpus, -1) + 1);
}

/* Reads for each cache its level, three more numbers, its type, its size and the CPUs that share
 * it. */
static bool read_cache(struct features *f, struct cursor *c)
{
	enum { PER_CPU = 8 /* upper bound of caches per CPU */ };
	uint32_t version, nr, level;

	if (!get_u32(c, &version) || version != 1 || !get_u32(c, &nr) || nr > CPUS_MAX * PER_CPU)
		return false;
	for (uint32_t i = 0; i < nr; i++) {
		char *type = NULL, *size = NULL, *cpus = NULL;
		bool ok = get_u32(c, &level) && get(c, 3 * sizeof(uint32_t)) &&
			  (type = get_string(c)) && (size = get_string(c)) &&
			  (cpus = get_string(c));

		if (ok && level >= 1 && level <= CACHE_LEVELS && strcmp(type, "Instruction") != 0)
			ok = note_cache(f, level, cpus);
		free(type);
		free(size);
		free(cpus);
		if (!ok)
			return false;
	}
	return true;
}

/* Reads for each node its number, its memory in all and free, and its CPUs: "" if it has none. */
static bool read_nodes(struct features *f, struct cursor *c)
{
	uint32_t nr, node;
	uint64_t memory;

	if (!get_u32(c, &nr))
		return false;
	for (uint32_t i = 0; i < nr; i++) {
		char *cpus = NULL;
		bool ok = get_u32(c, &node) && node < UINT16_MAX && get_u64(c, &memory) &&
			  get_u64(c, &memory) && (cpus = get_string(c));

		if (ok && *cpus)
			ok = cpus_note(&f->nodes, cpus, node + 1);
		free(cpus);
		if (!ok)
			return false;
	}
	return true;
}

static bool read_sample_time(struct features *f, struct cursor *c)
{
	return get_u64(c, &f->first_time);
}

static bool read_clock_data(struct features *f, struct cursor *c)
{
	uint32_t version, clockid;

	if (!get_u32(c, &version) || !get_u32(c, &clockid) || !get_u64(c, &f->wall_ns) ||
	    !get_u64(c, &f->clock_ns))
		return false;
	f->has_wall = version == 1;
	return true;
}

static bool skip_sized(struct cursor *c)
{
	uint64_t size;

	return get_u64(c, &size) && get(c, size);
}

/* Reads the formats of one event system. */
static bool read_system(struct features *f, struct cursor *c)
{
	const char *system = get_text(c), *text;
	uint64_t size;
	uint32_t nr;

	if (!system || !get_u32(c, &nr))
		return false;
	for (uint32_t i = 0; i < nr; i++) {
		if (!get_u64(c, &size) || !(text = get(c, size)))
			return false;
		formats_add_text(f->formats, system, text, size);
	}
	return true;
}

/* Reads the copies of tracefs files: header_page, header_event, ftrace's own formats, the formats
 * of all systems, kallsyms (usually empty) and printk_formats. The rest is not needed. */
static bool read_tracing_data(struct features *f, struct cursor *c)
{
	static const char magic[10] = "\x17\x08\x44tracing";
	const char *text = get(c, sizeof(magic));
	uint32_t nr, size;

	if (!text || memcmp(text, magic, sizeof(magic)) || !get_text(c))
		return false;
	/* u8 endianness, u8 size of long, u32 page size */
	if (!get(c, 6) || !get_text(c) || !skip_sized(c) || !get_text(c) || !skip_sized(c))
		return false;
	if (!get_u32(c, &nr))
		return false;
	for (uint32_t i = 0; i < nr; i++)
		if (!skip_sized(c))
			return false;
	if (!get_u32(c, &nr))
		return false;
	for (uint32_t i = 0; i < nr; i++)
		if (!read_system(f, c))
			return false;
	if (!get_u32(c, &size) || !(text = get(c, size)))
		return false;
	if (size)
		formats_add_kallsyms(f->formats, text, size);
	if (!get_u32(c, &size) || !(text = get(c, size)))
		return false;
	if (size)
		formats_add_strings(f->formats, text, size);
	return true;
}

static bool (*const readers[])(struct features *f, struct cursor *c) = {
	[FEATURE_TRACING_DATA] = read_tracing_data,
	[FEATURE_BUILD_ID] = read_build_ids,
	[FEATURE_OSRELEASE] = read_release,
	[FEATURE_ARCH] = read_arch,
	[FEATURE_NRCPUS] = read_nr_cpus,
	[FEATURE_EVENT_DESC] = read_event_desc,
	[FEATURE_NUMA_TOPOLOGY] = read_nodes,
	[FEATURE_CACHE] = read_cache,
	[FEATURE_SAMPLE_TIME] = read_sample_time,
	[FEATURE_DIR_FORMAT] = read_dir_format,
	[FEATURE_CLOCK_DATA] = read_clock_data,
};

void features_read_conversion(struct features *f, const struct perf_event_header *rec)
{
	struct {
		uint64_t shift, mult, zero;
	} conv;

	if (rec->size < sizeof(*rec) + sizeof(conv))
		return;
	memcpy(&conv, rec + 1, sizeof(conv));
	if (!conv.mult || conv.shift > 32) /* damaged; the kernel's shift is at most 31 */
		return;
	f->clock.has_conversion = true;
	f->clock.shift = conv.shift;
	f->clock.mult = conv.mult;
	f->clock.zero = conv.zero;
}

void features_read_trace(struct features *f, const struct perf_event_header *rec)
{
	static const char *const kinds[] = {
		"hardware trace", "Intel PT trace", "Intel BTS trace",	  "Arm CoreSight trace",
		"Arm SPE trace",  "S/390 trace",    "HiSilicon PTT trace"};
	uint32_t kind = 0;

	if (rec->size >= sizeof(*rec) + sizeof(kind))
		memcpy(&kind, rec + 1, sizeof(kind));
	f->trace = kinds[kind < sizeof(kinds) / sizeof(kinds[0]) ? kind : 0];
}

bool features_init(struct features *f)
{
	*f = (struct features){.formats = formats_new(), .build_ids = buildids_new()};
	return f->formats && f->build_ids;
}

void features_clear(struct features *f)
{
	formats_free(f->formats);
	buildids_free(f->build_ids);
	free(f->release);
	free(f->arch);
	for (uint32_t i = 0; i < f->nr_names; i++)
		free(f->names[i]);
	free(f->names);
	for (int i = 0; i < CACHE_LEVELS; i++)
		free(f->first_sharers[i]);
	free(f->nodes);
}

bool features_read(struct features *f, uint64_t id, const void *data, size_t size)
{
	struct cursor c = {data, (const uint8_t *)data + size};

	if (id >= sizeof(readers) / sizeof(readers[0]) || !readers[id])
		return true;
	return readers[id](f, &c);
}
