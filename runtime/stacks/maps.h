/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Address spaces: what every process had mapped at any time of the stream. Seeded from /proc, then
 * fed with the stream's records, so that addresses keep their meaning when the process has started
 * another program, loaded a library, or ended. Spaces are numbered as stacks are seen in them:
 * in one space an address never means two things.
 *
 * Bounded: processes that ended are forgotten, those that ended first before others; so are, beyond
 * some millions of mappings, those of the spaces that no process has any more.
 */
#pragma once
#include <stdbool.h>
#include <stdint.h>

struct maps;
struct symbol;
struct symbols;

/* Where an address lies. */
struct place {
	uint32_t file; /* number in symbols; 0: memory without a file */
	int32_t pid;   /* process the space was made for */
	uint64_t offset;
};

struct maps_stats {
	uint64_t bytes;
	uint32_t processes;
	uint64_t forgotten; /* spaces that lost their mappings to the bound, mappings not taken */
};

/* live: unknown processes are looked up in /proc. NULL without memory. */
struct maps *maps_new(struct symbols *symbols, bool live);
void maps_free(struct maps *m);

/* What all processes have mapped now, as if they always had; nothing where their maps are known.
 * Returns the number of processes, or a negative errno. */
int maps_seed_all(struct maps *m);

/* A PERF_RECORD_MMAP, MMAP2, COMM, FORK or EXIT; others are ignored. payload: the record behind its
 * header. Times as in struct event. */
void maps_record(struct maps *m, uint32_t type, uint16_t misc, const void *payload, uint32_t size,
		 double time);

/* The space of process pid at time; 0: unknown. */
uint32_t maps_space(struct maps *m, int32_t pid, double time);
/* False: nothing that is known is mapped there. */
bool maps_find(const struct maps *m, uint32_t space, uint64_t addr, struct place *out);
/* The space that the process had before it got this one, by execve() for example; 0: unknown. */
uint32_t maps_space_before(const struct maps *m, uint32_t space);
/* A function that process pid has compiled for itself; path: of the map that has it. */
bool maps_find_jit(struct maps *m, int32_t pid, uint64_t addr, struct symbol *out,
		   const char **path);
/* No number that maps_space() returned is needed any more. */
void maps_forget_spaces(struct maps *m);
void maps_read_stats(const struct maps *m, struct maps_stats *out);
