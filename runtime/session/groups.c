/* SPDX-License-Identifier: GPL-2.0-only */
#include "session/groups.h"
#include <linux/perf_event.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_GROUPS = 65536 };

struct group {
	uint64_t id;
	char *path;
};

struct groups {
	struct group *list;
	uint32_t n, room;
};

struct groups *groups_new(void)
{
	return calloc(1, sizeof(struct groups));
}

void groups_free(struct groups *g)
{
	if (!g)
		return;
	for (uint32_t i = 0; i < g->n; i++)
		free(g->list[i].path);
	free(g->list);
	free(g);
}

/* The kernel never uses an id again. */
void groups_note(struct groups *g, const struct perf_event_header *rec)
{
	const struct {
		struct perf_event_header header;
		uint64_t id;
		char path[];
	} *group = (const void *)rec;
	char *path;

	if (rec->size <= sizeof(*group) || g->n == MAX_GROUPS || groups_path(g, group->id))
		return;
	if (g->n == g->room) {
		uint32_t room = g->room ? 2 * g->room : 64;
		struct group *grown = reallocarray(g->list, room, sizeof(*grown));

		if (!grown)
			return;
		g->list = grown;
		g->room = room;
	}
	path = strndup(group->path, rec->size - sizeof(*group));
	if (path)
		g->list[g->n++] = (struct group){group->id, path};
}

const char *groups_path(const struct groups *g, uint64_t id)
{
	for (uint32_t i = g->n; i > 0; i--)
		if (g->list[i - 1].id == id)
			return g->list[i - 1].path;
	return NULL;
}

uint64_t groups_id(const struct groups *g, uint32_t i)
{
	return i < g->n ? g->list[i].id : 0;
}
