/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Address spaces: what is mapped where in an address space. One space may be that of several
 * processes (a fork changes nothing) and of stacks that were seen in it; who changes it while
 * others hold it works on a copy.
 */
#pragma once
#include <stdbool.h>
#include <stdint.h>

struct mapping {
	uint64_t start, end;
	uint64_t offset; /* in the file, of start */
	uint32_t file;	 /* number in symbols; 0: anonymous memory */
};

struct address_space {
	uint32_t refs;
	uint32_t id;	 /* of the space it was handed out as; 0 not yet */
	uint32_t before; /* id of what the process had before it; 0 unknown */
	int32_t pid;	 /* process it was made for */
	uint32_t count, room;
	struct mapping *mappings; /* ascending, no two overlap */
	uint64_t *bytes;	  /* sum of the memory of all address spaces */
};

enum space_change {
	SPACE_SAME,    /* the mapping is in already */
	SPACE_ADDS,    /* what was known stays true */
	SPACE_REPLACES /* at some address there was something else */
};

/* One reference is the caller's. bytes: a sum that is kept up to date, and outlives the space.
 * NULL without memory. */
struct address_space *address_space_new(int32_t pid, uint64_t *bytes);
struct address_space *address_space_copy(const struct address_space *l, int32_t pid);
struct address_space *address_space_get(struct address_space *l);
void address_space_put(struct address_space *l);

enum space_change address_space_check(const struct address_space *l, const struct mapping *m);
/* Maps m over what is there. False without memory. */
bool address_space_insert(struct address_space *l, const struct mapping *m);
/* The mapping that has addr; NULL. */
const struct mapping *address_space_find(const struct address_space *l, uint64_t addr);
/* Gives back its memory; whoever holds it finds nothing any more. */
void address_space_clear(struct address_space *l);
