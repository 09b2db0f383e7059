/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Layouts: what is mapped where in an address space. One layout may be that of several processes
 * (a fork changes nothing) and of stacks that were seen in it; who changes it while others hold it
 * works on a copy.
 */
#pragma once
#include <stdbool.h>
#include <stdint.h>

struct mapping {
	uint64_t start, end;
	uint64_t offset; /* in the file, of start */
	uint32_t file;	 /* number in symbols; 0: anonymous memory */
};

struct layout {
	uint32_t refs;
	uint32_t id;	 /* of the space it was handed out as; 0 not yet */
	uint32_t before; /* id of what the process had before it; 0 unknown */
	int32_t pid;	 /* process it was made for */
	uint32_t count, room;
	struct mapping *mappings; /* ascending, no two overlap */
	uint64_t *bytes;	  /* sum of the memory of all layouts */
};

enum layout_change {
	LAYOUT_SAME,	/* the mapping is in already */
	LAYOUT_ADDS,	/* what was known stays true */
	LAYOUT_REPLACES /* at some address there was something else */
};

/* One reference is the caller's. bytes: a sum that is kept up to date, and outlives the layout.
 * NULL without memory. */
struct layout *layout_new(int32_t pid, uint64_t *bytes);
struct layout *layout_copy(const struct layout *l, int32_t pid);
struct layout *layout_get(struct layout *l);
void layout_put(struct layout *l);

enum layout_change layout_check(const struct layout *l, const struct mapping *m);
/* Maps m over what is there. False without memory. */
bool layout_insert(struct layout *l, const struct mapping *m);
/* The mapping that has addr; NULL. */
const struct mapping *layout_find(const struct layout *l, uint64_t addr);
/* Gives back its memory; whoever holds it finds nothing any more. */
void layout_clear(struct layout *l);
