/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Clock map: converts times between two clocks, from pairs of readings made at the same moments.
 * It is linear between two neighbouring pairs, and beyond the first and last pair continues with
 * the rate there. So between pairs the error is that of the readings, and a clock whose rate drifts
 * is followed. Both clocks may wrap around at 2^64, and have any unit.
 *
 * The pairs of long runs thin out with age, so a map has a bounded size. A time that lies between
 * two recent pairs is always converted to the same value.
 */
#pragma once
#include <stdint.h>

struct clock_map;

/* rate: units of `to` per unit of `from`, used until the second pair tells. 0: unknown. NULL: out
 * of memory. */
struct clock_map *clock_map_new(double rate);
void clock_map_free(struct clock_map *map);

/* Adds a pair that is later than those before it; error: how far `to` may be off. -ERANGE: a clock
 * did not advance, so one of them was set back; the pair was not added. */
int clock_map_add(struct clock_map *map, uint64_t from, uint64_t to, double error);
/* Forgets all pairs. */
void clock_map_clear(struct clock_map *map);
/* Whether times can be converted: there are two pairs, or one and the rate. */
int clock_map_ready(const struct clock_map *map);

/* Convert between the clocks. The map must be ready. */
uint64_t clock_map_to(struct clock_map *map, uint64_t from);
uint64_t clock_map_from(struct clock_map *map, uint64_t to);
/* Returns units of `to` per unit of `from` at a time. */
double clock_map_rate(struct clock_map *map, uint64_t from);
/* Returns a bound of the error of clock_map_to(from): that of the readings, and what the rate may
 * have changed in between, as far as the neighbouring pairs show. */
double clock_map_error(struct clock_map *map, uint64_t from);
