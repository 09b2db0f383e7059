/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A dynamic field is first resolved to a window of the payload. Then all kinds are printed alike
 * from (address, bytes), and only resolve() has to get the bounds right.
 */
#include "formats/payload.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "formats/tracepoint.h"

struct line {
	char *buf;
	size_t size;
	size_t len; /* as if size were unlimited */
};

__attribute__((format(printf, 2, 3))) static void add(struct line *l, const char *fmt, ...)
{
	size_t room = l->len < l->size ? l->size - l->len : 0;
	va_list args;
	int n;

	va_start(args, fmt);
	n = vsnprintf(room ? l->buf + l->len : NULL, room, fmt, args);
	va_end(args);
	l->len += n > 0 ? (size_t)n : 0;
}

/* Gets the bytes of the field's value. Returns false if the payload does not have them. */
static bool resolve(const struct field *f, const uint8_t *raw, uint32_t raw_size,
		    const uint8_t **data, uint32_t *len)
{
	uint32_t word, offset = f->offset;

	*len = f->size;
	if (f->offset > raw_size || f->size > raw_size - f->offset)
		return false;
	if (f->size == 0)
		*len = raw_size - f->offset;
	if (f->flags & FIELD_DYNAMIC) {
		memcpy(&word, raw + f->offset, sizeof(word));
		*len = word >> 16;
		offset = word & 0xffff;
		if (f->flags & FIELD_RELATIVE)
			offset += f->offset + (uint32_t)sizeof(word);
		if (offset > raw_size || *len > raw_size - offset)
			return false;
	}
	*data = raw + offset;
	return true;
}

static void add_string(struct line *l, const uint8_t *data, uint32_t len)
{
	for (uint32_t i = 0; i < len && data[i]; i++) {
		if (data[i] < ' ' || data[i] == 0x7f)
			add(l, "\\x%02x", data[i]);
		else
			add(l, "%c", data[i]);
	}
}

static void add_number(struct line *l, const struct field *f, const uint8_t *data, uint32_t size)
{
	int64_t v = 0;

	if (size > sizeof(v))
		size = sizeof(v);
	/* Little endian; the shifts extend the sign of a narrow value. */
	memcpy(&v, data, size);
	if (f->flags & FIELD_SIGNED && size) {
		int shift = (int)(sizeof(v) - size) * 8;

		v = (int64_t)((uint64_t)v << shift) >> shift;
	}
	if (f->flags & FIELD_POINTER)
		add(l, "0x%" PRIx64, (uint64_t)v);
	else if (f->flags & FIELD_SIGNED)
		add(l, "%" PRId64, v);
	else
		add(l, "%" PRIu64, (uint64_t)v);
}

static void add_array(struct line *l, const struct field *f, const uint8_t *data, uint32_t len)
{
	add(l, "{");
	for (uint32_t at = 0; f->elem_size && len - at >= f->elem_size; at += f->elem_size) {
		if (at)
			add(l, ",");
		add_number(l, f, data + at, f->elem_size);
	}
	add(l, "}");
}

size_t payload_print(const struct field *fields, uint32_t nr, const uint8_t *raw, uint32_t raw_size,
		     char *buf, size_t size)
{
	struct line l = {buf, size, 0};
	const uint8_t *data;
	uint32_t len;

	if (size)
		buf[0] = '\0';
	for (const struct field *f = fields; f < fields + nr; f++) {
		if (f->flags & FIELD_COMMON)
			continue;
		add(&l, "%s%s=", l.len ? " " : "", f->name);
		if (!resolve(f, raw, raw_size, &data, &len))
			add(&l, "?");
		else if (f->flags & FIELD_STRING)
			add_string(&l, data, len);
		else if (f->flags & (FIELD_ARRAY | FIELD_DYNAMIC))
			add_array(&l, f, data, len);
		else
			add_number(&l, f, data, len);
	}
	return l.len;
}
