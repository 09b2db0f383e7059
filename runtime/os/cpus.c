/* SPDX-License-Identifier: GPL-2.0-only */
#include "os/cpus.h"
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "error.h"

/* Reads a number at *text and skips it. Returns a negative number if there is none below
 * CPUS_MAX. */
static long read_cpu(const char **text)
{
	char *end;
	long cpu;

	if (!isdigit((unsigned char)**text))
		return -1;
	cpu = strtol(*text, &end, 10);
	*text = end;
	return cpu < CPUS_MAX ? cpu : -1;
}

int cpus_parse(struct cpus *set, const char *text, struct error *err)
{
	const char *at = text;

	memset(set, 0, sizeof(*set));
	for (;;) {
		long first = read_cpu(&at), last = first;

		if (first >= 0 && *at == '-') {
			at++;
			last = read_cpu(&at);
		}
		if (first < 0 || last < first || (*at && *at != ','))
			return error_set(err, -EINVAL,
					 "invalid CPU list '%s' (expected e.g. 0-3,7)", text);
		for (long cpu = first; cpu <= last; cpu++)
			cpus_add(set, cpu);
		if (!*at++)
			return 0;
	}
}

int cpus_online(struct cpus *set, struct error *err)
{
	const char *path = "/sys/devices/system/cpu/online";
	char *line = NULL;
	size_t size = 0;
	FILE *f = fopen(path, "re");
	int ret;

	if (!f)
		return error_set(err, -errno, "cannot read %s: %s", path, strerror(errno));
	if (getline(&line, &size, f) > 0) {
		line[strcspn(line, "\n")] = 0;
		ret = cpus_parse(set, line, err);
	} else {
		ret = error_set(err, -EIO, "cannot read %s", path);
	}
	free(line);
	fclose(f);
	return ret;
}

void cpus_add(struct cpus *set, uint32_t cpu)
{
	set->bits[cpu / 64] |= 1ull << cpu % 64;
}

void cpus_remove(struct cpus *set, uint32_t cpu)
{
	set->bits[cpu / 64] &= ~(1ull << cpu % 64);
}

bool cpus_has(const struct cpus *set, uint32_t cpu)
{
	return cpu < CPUS_MAX && set->bits[cpu / 64] >> cpu % 64 & 1;
}

void cpus_and(struct cpus *set, const struct cpus *other)
{
	for (int i = 0; i < CPUS_MAX / 64; i++)
		set->bits[i] &= other->bits[i];
}

void cpus_subtract(struct cpus *set, const struct cpus *other)
{
	for (int i = 0; i < CPUS_MAX / 64; i++)
		set->bits[i] &= ~other->bits[i];
}

int cpus_next(const struct cpus *set, int after)
{
	for (uint32_t cpu = after + 1; cpu < CPUS_MAX; cpu++) {
		uint64_t left = set->bits[cpu / 64] >> cpu % 64;

		if (left)
			return cpu + __builtin_ctzll(left);
		cpu |= 63;
	}
	return -1;
}

const char *cpus_text(const struct cpus *set, char *buf, size_t size)
{
	size_t used = 0;

	snprintf(buf, size, "none");
	for (int first = cpus_next(set, -1), last; first >= 0; first = cpus_next(set, last)) {
		char range[32];
		int n;

		for (last = first; cpus_has(set, last + 1);)
			last++;
		n = snprintf(range, sizeof(range), last > first ? "%s%d-%d" : "%s%d",
			     used ? "," : "", first, last);
		if (used + n + sizeof("...") > size) {
			snprintf(buf + used, size - used, "...");
			break;
		}
		memcpy(buf + used, range, n + 1);
		used += n;
	}
	return buf;
}

bool cpus_note(uint16_t **table, const char *list, uint16_t value)
{
	struct cpus cpus;

	if (cpus_parse(&cpus, list, NULL))
		return false;
	if (!*table)
		*table = calloc(CPUS_MAX, sizeof(**table));
	for (int cpu = cpus_next(&cpus, -1); *table && cpu >= 0; cpu = cpus_next(&cpus, cpu))
		(*table)[cpu] = value;
	return *table;
}

uint16_t *cpus_nodes(void)
{
	uint16_t *nodes = NULL;
	struct dirent *entry;
	DIR *dir = opendir("/sys/devices/system/node");

	while (dir && (entry = readdir(dir))) {
		char path[64], list[4096];
		unsigned int node;
		FILE *f;

		if (sscanf(entry->d_name, "node%u", &node) != 1 || node >= UINT16_MAX)
			continue;
		snprintf(path, sizeof(path), "/sys/devices/system/node/node%u/cpulist", node);
		f = fopen(path, "re");
		if (f && fscanf(f, "%4095s", list) == 1) /* none: it has only memory */
			cpus_note(&nodes, list, node + 1);
		if (f)
			fclose(f);
	}
	if (dir)
		closedir(dir);
	return nodes;
}
