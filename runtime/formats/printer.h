/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Prints payloads with libtraceevent: by the print format of the running kernel's events, or with
 * the plugins that are installed (tep_load_plugins(3)), which print some events better than their
 * print formats do. libtraceevent trusts the text of a format: a recording's could crash it
 * (division by a constant zero, a negative count in __print_hex). So for plugins the text is made
 * anew from the parsed fields.
 */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct addresses;
struct field;
struct printer;
struct tep_event;

/* The printers of a set of formats, each made when it is first used. */
struct printers {
	struct addresses *symbols;
	struct printer *of_formats, *of_plugins;
};

/* symbols answers %pS and must outlive the printer. plugins: loads them, from the directories of
 * tep_load_plugins(3); from none if TRACEEVENT_PLUGIN_DIR is set and empty. Returns NULL without
 * memory. */
struct printer *printer_new(struct addresses *symbols, bool plugins);
void printer_free(struct printer *p);

/* Adds an event of the running kernel, whose id is not in use yet. text ends with a NUL. The event
 * lasts as long as the printer. Returns NULL if libtraceevent does not understand the print format
 * or cannot bound it. */
struct tep_event *printer_add_text(struct printer *p, const char *system, uint32_t id,
				   const char *text, size_t size);
/* Adds an event by its parsed fields. Returns NULL if no plugin prints it. */
struct tep_event *printer_add_fields(struct printer *p, const char *system, const char *name,
				     const struct field *fields, uint32_t nr_fields);

/* Returns the length; if that is >= size, the text is cut. A payload that is shorter than its
 * fields is printed as if zeros followed. *more: a plugin printed only what comes before the text
 * of the print format. */
size_t printer_print(struct printer *p, const struct tep_event *event, const uint8_t *raw,
		     uint32_t raw_size, bool *more, char *buf, size_t size);
