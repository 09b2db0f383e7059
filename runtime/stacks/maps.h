/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What every process had mapped at any time of the stream. Seeded from /proc, then updated from the
 * records of the stream, so that addresses keep their meaning after the process has executed
 * another program, loaded a library, or exited. A space gets an id when a stack is seen in it;
 * within a space an address never means two things.
 *
 * Memory is bounded: processes that have exited are forgotten in the order of their exits, and
 * beyond some millions of mappings also the mappings of spaces that no process has any more.
 */
#pragma once
#include <stdbool.h>
#include <stdint.h>

struct maps;
struct symbol;
struct symbols;

/* The place of an address. */
struct place {
	uint32_t file; /* number in symbols; 0: memory without a file */
	int32_t pid;   /* the process that the space was made for */
	uint64_t offset;
	/* Of data without a file: that of the mapping right before it, whose variables may go on
	 * here (.bss); 0: none. */
	uint32_t file_before;
	uint64_t offset_before;
};

struct maps_stats {
	uint64_t bytes;
	uint32_t processes;
	uint64_t forgotten; /* spaces whose mappings were dropped, and mappings that were refused,
			       because of the bound */
};

/* live: unknown processes are looked up in /proc. Returns NULL without memory. */
struct maps *maps_new(struct symbols *symbols, bool live);
void maps_free(struct maps *m);
/* Data mappings are noted, too. To be called first. */
void maps_want_data(struct maps *m);

/* Adds what all processes have mapped now, as if they always had. Processes with known maps are
 * skipped. Returns the number of processes, or a negative errno. */
int maps_seed_all(struct maps *m);

/* Reads a PERF_RECORD_MMAP, MMAP2, COMM, FORK or EXIT; others are ignored. payload: the body of the
 * record. Times are as in struct event. */
void maps_record(struct maps *m, uint32_t type, uint16_t misc, const void *payload, uint32_t size,
		 double time);

/* Returns the id of the space of process pid at time; 0: unknown. */
uint32_t maps_space(struct maps *m, int32_t pid, double time);
/* Finds the place of an address. Returns false if nothing known is mapped there. */
bool maps_find(const struct maps *m, uint32_t space, uint64_t addr, struct place *out);
/* Returns the module of the kernel that has the address, "[ath9k]", according to a recording; NULL:
 * none. */
const char *maps_find_module(const struct maps *m, uint64_t addr);
/* Returns the space that the process had before this one, for example before execve(); 0:
 * unknown. */
uint32_t maps_space_before(const struct maps *m, uint32_t space);
/* Finds a function that process pid has compiled for itself. path: of the map that lists it. */
bool maps_find_jit(struct maps *m, int32_t pid, uint64_t addr, struct symbol *out,
		   const char **path);
/* Forgets all ids that maps_space() has returned. */
void maps_forget_spaces(struct maps *m);
void maps_read_stats(const struct maps *m, struct maps_stats *out);
