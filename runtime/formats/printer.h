/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Prints payloads by their print format with libtraceevent. Only for formats of the running kernel,
 * because libtraceevent trusts them: a recording's text can crash it (division by a constant zero,
 * a negative count in __print_hex).
 */
#pragma once
#include <stddef.h>
#include <stdint.h>

struct addresses;
struct printer;

/* Returns NULL without memory, or if libtraceevent does not understand the print format or cannot
 * bound it. symbols answers %pS and must outlive the printer. text ends with a NUL. */
struct printer *printer_new(const char *system, const char *text, size_t size,
			    struct addresses *symbols);
void printer_free(struct printer *p);

/* Returns the length; if that is >= size, the text is cut. A payload that is shorter than its
 * fields is printed as if zeros followed. */
size_t printer_print(struct printer *p, const uint8_t *raw, uint32_t raw_size, char *buf,
		     size_t size);
