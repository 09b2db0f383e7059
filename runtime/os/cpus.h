/* SPDX-License-Identifier: GPL-2.0-only */
/* A set of CPUs, and its text form "0-3,7", which is the kernel's and the user's. */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct error;

enum { CPUS_MAX = 8192 }; /* what the kernel can be configured for */

struct cpus {
	uint64_t bits[CPUS_MAX / 64];
};

/* -EINVAL with a message when the text is no list, or empty, or has a CPU beyond CPUS_MAX. */
int cpus_parse(struct cpus *set, const char *text, struct error *err);
/* The CPUs that are online now. */
int cpus_online(struct cpus *set, struct error *err);

void cpus_add(struct cpus *set, uint32_t cpu);
void cpus_remove(struct cpus *set, uint32_t cpu);
bool cpus_has(const struct cpus *set, uint32_t cpu);
/* Removes from the set what is not in both. */
void cpus_and(struct cpus *set, const struct cpus *other);
/* Removes from the set what is in the other. */
void cpus_subtract(struct cpus *set, const struct cpus *other);
/* The first CPU behind `after` (-1: of all), -1 when there is none. */
int cpus_next(const struct cpus *set, int after);
/* Writes the list, cut with "..." where it does not fit; "none" for an empty set. Returns buf. */
const char *cpus_text(const struct cpus *set, char *buf, size_t size);
