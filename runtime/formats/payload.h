/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Prints the fields of a payload as "name=value name=value", for events whose print format cannot
 * be used. It never reads outside the payload, whatever the payload contains.
 */
#pragma once
#include <stddef.h>
#include <stdint.h>

struct field;

/* Skips common_*. Fields that a short payload does not have are printed as "name=?". Control bytes
 * in strings are shown as \xNN. Returns the length; if that is >= size, the text is cut. */
size_t payload_print(const struct field *fields, uint32_t nr, const uint8_t *raw, uint32_t raw_size,
		     char *buf, size_t size);
