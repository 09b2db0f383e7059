/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Prints payloads by a format's print format with libtraceevent. Only for formats the running
 * kernel gave: libtraceevent trusts them. A recording's text can crash it (a constant division by
 * zero, a negative count in __print_hex), so those are never handed to it.
 */
#pragma once
#include <stddef.h>
#include <stdint.h>

struct addresses;
struct printer;

/* NULL where memory is out, or for print formats that libtraceevent does not understand or cannot
 * bound. symbols answers %pS and must outlive the printer. text ends with a NUL. */
struct printer *printer_new(const char *system, const char *text, size_t size,
			    struct addresses *symbols);
void printer_free(struct printer *p);

/* Returns the length, which may be >= size (then it is cut). A payload that is shorter than its
 * fields is printed as if zeros followed. */
size_t printer_print(struct printer *p, const uint8_t *raw, uint32_t raw_size, char *buf,
		     size_t size);
