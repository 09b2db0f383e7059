/* SPDX-License-Identifier: GPL-2.0-only */
/* A set of CPUs, and its text form "0-3,7", which both the kernel and users write. */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct error;

enum { CPUS_MAX = 8192 }; /* the kernel's largest CONFIG_NR_CPUS */

struct cpus {
	uint64_t bits[CPUS_MAX / 64];
};

/* Returns -EINVAL with a message if the text is not a list, is empty, or has a CPU that is not
 * below CPUS_MAX. */
int cpus_parse(struct cpus *set, const char *text, struct error *err);
/* Gets the CPUs that are online now. */
int cpus_online(struct cpus *set, struct error *err);

void cpus_add(struct cpus *set, uint32_t cpu);
void cpus_remove(struct cpus *set, uint32_t cpu);
bool cpus_has(const struct cpus *set, uint32_t cpu);
/* Keeps only the CPUs that are in both sets. */
void cpus_and(struct cpus *set, const struct cpus *other);
/* Removes the CPUs that are in the other set. */
void cpus_subtract(struct cpus *set, const struct cpus *other);
/* Returns the first CPU after `after` (-1: the first of all); -1 if there is none. */
int cpus_next(const struct cpus *set, int after);
/* Sets the value of each CPU of a list in a table, which is allocated for the first one (CPUS_MAX
 * zeros). Returns false if the list is invalid or without memory. */
bool cpus_note(uint16_t **table, const char *list, uint16_t value);
/* Returns for each CPU 1 + its NUMA node on this machine; 0: unknown. NULL: unknown for all CPUs.
 * The caller frees it. */
uint16_t *cpus_nodes(void);
/* Writes the list, cut with "..." if it does not fit; "none" for an empty set. Returns buf. */
const char *cpus_text(const struct cpus *set, char *buf, size_t size);
