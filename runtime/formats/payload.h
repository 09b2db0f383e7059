/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Prints the fields of a payload one by one, "name=value name=value", for events whose print
 * format cannot be used. Bounded by the payload: nothing in it can make this read outside.
 */
#pragma once
#include <stddef.h>
#include <stdint.h>

struct field;

/* Leaves common_* out. Fields that a short payload does not hold print as "name=?". Control bytes
 * in strings are shown as \xNN. Returns the length, which may be >= size (then it is cut). */
size_t payload_print(const struct field *fields, uint32_t nr, const uint8_t *raw, uint32_t raw_size,
		     char *buf, size_t size);
