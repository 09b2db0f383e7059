/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * An address space: what is mapped where. It may be shared by several processes (a fork changes
 * nothing) and by the stacks that were seen in it. Whoever changes a space that others hold works
 * on a copy.
 */
#pragma once
#include <stdbool.h>
#include <stdint.h>

struct mapping {
	uint64_t start, end;
	uint64_t offset; /* of start in the file */
	uint32_t file;	 /* number in symbols; 0: anonymous memory */
};

struct address_space {
	uint32_t refs;
	uint32_t id;	 /* of maps_space(); 0: none yet */
	uint32_t before; /* id of the space that the process had before; 0: unknown */
	int32_t pid;	 /* the process it was made for */
	uint32_t count, room;
	struct mapping *mappings; /* sorted by address, without overlaps */
	uint64_t *bytes;	  /* the total memory of all address spaces */
};

enum space_change {
	SPACE_SAME,    /* the mapping is there already */
	SPACE_ADDS,    /* what was known remains true */
	SPACE_REPLACES /* something else was mapped at some of the addresses */
};

/* The caller holds one reference. bytes: a sum that is kept up to date and must outlive the space.
 * Returns NULL without memory. */
struct address_space *address_space_new(int32_t pid, uint64_t *bytes);
struct address_space *address_space_copy(const struct address_space *space, int32_t pid);
struct address_space *address_space_get(struct address_space *space);
void address_space_put(struct address_space *space);

enum space_change address_space_check(const struct address_space *space, const struct mapping *m);
/* Maps m over what is there. Returns false without memory. */
bool address_space_insert(struct address_space *space, const struct mapping *m);
/* Returns the mapping that contains addr, or NULL. */
const struct mapping *address_space_find(const struct address_space *space, uint64_t addr);
/* Frees the mappings; whoever holds the space finds nothing any more. */
void address_space_clear(struct address_space *space);
