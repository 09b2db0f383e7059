/* SPDX-License-Identifier: GPL-2.0-only */
/* A buffer of protobuf messages and JSON; see bytes.h. */
#include "bytes.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "text.h"

enum { VARINT = 0, FIXED64 = 1, LENGTH = 2 };
enum { VARINT_MAX = 10, PADDED = 4, DIGITS = 20 };
#define EXACT (1LL << 53)

struct bytes *bytes_new(void)
{
	return calloc(1, sizeof(struct bytes));
}

void bytes_free(struct bytes *b)
{
	if (!b)
		return;
	free(b->data);
	free(b);
}

static int grow(struct bytes *b, size_t n)
{
	size_t capacity = b->capacity ? b->capacity : 4096;
	uint8_t *data;

	while (capacity - b->size < n)
		capacity *= 2;
	data = realloc(b->data, capacity);
	if (!data) {
		b->failed = -ENOMEM;
		return -ENOMEM;
	}
	b->data = data;
	b->capacity = capacity;
	return 0;
}

/* Returns the end of the data with room for n bytes; NULL without memory. */
static inline uint8_t *room(struct bytes *b, size_t n)
{
	if (__builtin_expect(b->capacity - b->size < n, 0) && grow(b, n) < 0)
		return NULL;
	return b->data + b->size;
}

void bytes_put(struct bytes *b, const void *from, size_t n)
{
	uint8_t *p = room(b, n);

	if (!p || !n)
		return;
	memcpy(p, from, n);
	b->size += n;
}

void bytes_base64(struct bytes *b, const void *from, size_t n)
{
	static const char digits[] =
		"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
	const uint8_t *in = from;
	uint8_t *p = room(b, (n + 2) / 3 * 4);

	if (!p)
		return;
	for (size_t i = 0; i < n; i += 3) {
		uint32_t word = in[i] << 16;

		if (i + 1 < n)
			word |= in[i + 1] << 8;
		if (i + 2 < n)
			word |= in[i + 2];
		*p++ = digits[word >> 18];
		*p++ = digits[word >> 12 & 63];
		*p++ = i + 1 < n ? digits[word >> 6 & 63] : '=';
		*p++ = i + 2 < n ? digits[word & 63] : '=';
	}
	b->size = (size_t)(p - b->data);
}

static uint8_t *varint(uint8_t *p, uint64_t value)
{
	while (value >= 0x80) {
		*p++ = (uint8_t)(value | 0x80);
		value >>= 7;
	}
	*p++ = (uint8_t)value;
	return p;
}

static size_t varint_size(uint64_t value)
{
	return (size_t)(70 - __builtin_clzll(value | 1)) / 7;
}

static uint8_t *tag(uint8_t *p, uint32_t field, uint32_t type)
{
	return varint(p, (uint64_t)field << 3 | type);
}

void proto_uint(struct bytes *b, uint32_t field, uint64_t value)
{
	uint8_t *p = room(b, 2 * VARINT_MAX);

	if (p)
		b->size = (size_t)(varint(tag(p, field, VARINT), value) - b->data);
}

void proto_fixed64(struct bytes *b, uint32_t field, uint64_t value)
{
	uint8_t *p = room(b, VARINT_MAX + sizeof(value));

	if (!p)
		return;
	p = tag(p, field, FIXED64);
	for (uint32_t i = 0; i < sizeof(value); i++)
		*p++ = (uint8_t)(value >> 8 * i);
	b->size = (size_t)(p - b->data);
}

void proto_double(struct bytes *b, uint32_t field, double value)
{
	uint64_t bits;

	memcpy(&bits, &value, sizeof(bits));
	proto_fixed64(b, field, bits);
}

/* Copies text, with '?' in place of the bytes that are not UTF-8. */
static void copy_utf8(uint8_t *to, const char *text, size_t n)
{
	size_t at = 0;

	memcpy(to, text, n);
	if (text_clean(text, n, TEXT_CELL))
		return;
	while (at < n) {
		size_t len = text_utf8(text + at, n - at);

		if (!len)
			to[at] = '?';
		at += len ? len : 1;
	}
}

void proto_text(struct bytes *b, uint32_t field, const char *text, size_t n)
{
	uint8_t *p = room(b, 2 * VARINT_MAX + n);

	if (!p)
		return;
	p = varint(tag(p, field, LENGTH), n);
	copy_utf8(p, text, n);
	b->size = (size_t)(p + n - b->data);
}

size_t proto_open(struct bytes *b, uint32_t field)
{
	uint8_t *p = room(b, VARINT_MAX + PADDED);

	if (!p)
		return 0;
	b->size = (size_t)(tag(p, field, LENGTH) + PADDED - b->data);
	return b->size;
}

/* All readers accept a length of four bytes, whatever its value is. */
void proto_close(struct bytes *b, size_t at)
{
	size_t n = b->size - at;
	uint8_t *p = b->data + at - PADDED;

	if (at < PADDED)
		return;
	for (int i = 0; i < PADDED; i++)
		p[i] = (uint8_t)((n >> 7 * i & 0x7f) | (i < PADDED - 1 ? 0x80 : 0));
}

void proto_entry(struct bytes *b, uint32_t field, uint32_t key, uint32_t of_value, int64_t value)
{
	uint8_t *p = room(b, 6 * VARINT_MAX), *length;

	if (!p)
		return;
	length = tag(p, field, LENGTH); /* of one byte: the message has at most 22 */
	p = varint(tag(length + 1, 1, VARINT), key);
	p = varint(tag(p, of_value, VARINT), (uint64_t)value);
	*length = (uint8_t)(p - length - 1);
	b->size = (size_t)(p - b->data);
}

void proto_entry_text(struct bytes *b, uint32_t field, uint32_t key, uint32_t of_value,
		      const char *text, size_t n)
{
	size_t inner =
		1 + varint_size(key) + varint_size((uint64_t)of_value << 3) + varint_size(n) + n;
	uint8_t *p = room(b, 6 * VARINT_MAX + n);

	if (!p)
		return;
	p = varint(tag(p, field, LENGTH), inner);
	p = varint(tag(p, 1, VARINT), key);
	p = varint(tag(p, of_value, LENGTH), n);
	copy_utf8(p, text, n);
	b->size = (size_t)(p + n - b->data);
}

/* Returns element i of an array of integers of this size. */
static uint64_t element(const void *values, uint32_t size, uint32_t is_signed, uint32_t i)
{
	const uint8_t *from = (const uint8_t *)values + (size_t)i * size;
	uint64_t value = 0;

	memcpy(&value, from, size);
	if (is_signed && size < sizeof(value) && value >> (8 * size - 1))
		value |= ~0ULL << 8 * size;
	return value;
}

void proto_list(struct bytes *b, uint32_t field, uint32_t of_value, const void *values,
		uint32_t size, uint32_t is_signed, uint32_t n)
{
	uint8_t *p = room(b, (size_t)n * 4 * VARINT_MAX), *length;

	if (!p)
		return;
	for (uint32_t i = 0; i < n; i++) {
		length = tag(p, field, LENGTH);
		p = tag(length + 1, of_value, VARINT);
		p = varint(p, element(values, size, is_signed, i));
		*length = (uint8_t)(p - length - 1);
	}
	b->size = (size_t)(p - b->data);
}

void json_text(struct bytes *b, const char *text, size_t n)
{
	uint8_t *p = room(b, 6 * n + 2);

	if (!p)
		return;
	*p++ = '"';
	if (text_clean(text, n, TEXT_JSON)) {
		memcpy(p, text, n);
		p += n;
	} else {
		p += text_escape((char *)p, text, n, TEXT_JSON);
	}
	*p++ = '"';
	b->size = (size_t)(p - b->data);
}

/* Writes the digits of value, at least min of them, to the end of a text of DIGITS. Returns how
 * many. */
static int digits(uint8_t *text, uint64_t value, int min)
{
	static const char pairs[] = "00010203040506070809101112131415161718192021222324"
				    "25262728293031323334353637383940414243444546474849"
				    "50515253545556575859606162636465666768697071727374"
				    "75767778798081828384858687888990919293949596979899";
	int at = DIGITS;

	while (value >= 100) {
		at -= 2;
		memcpy(text + at, pairs + value % 100 * 2, 2);
		value /= 100;
	}
	if (value >= 10) {
		at -= 2;
		memcpy(text + at, pairs + value * 2, 2);
	} else {
		text[--at] = (uint8_t)('0' + value);
	}
	while (DIGITS - at < min)
		text[--at] = '0';
	return DIGITS - at;
}

static void integer(struct bytes *b, uint64_t size, int is_negative)
{
	uint8_t *p = room(b, DIGITS + 3), text[DIGITS];
	int is_exact = size <= (uint64_t)EXACT, n;

	if (!p)
		return;
	n = digits(text, size, 1);
	if (!is_exact)
		*p++ = '"';
	if (is_negative)
		*p++ = '-';
	memcpy(p, text + DIGITS - n, (size_t)n);
	p += n;
	if (!is_exact)
		*p++ = '"';
	b->size = (size_t)(p - b->data);
}

void json_int(struct bytes *b, int64_t value)
{
	integer(b, value < 0 ? -(uint64_t)value : (uint64_t)value, value < 0);
}

void json_uint(struct bytes *b, uint64_t value)
{
	integer(b, value, 0);
}

void json_list(struct bytes *b, const void *values, uint32_t size, uint32_t is_signed, uint32_t n)
{
	bytes_put(b, "[", 1);
	for (uint32_t i = 0; i < n; i++) {
		uint64_t value = element(values, size, is_signed, i);

		if (i)
			bytes_put(b, ",", 1);
		if (is_signed)
			json_int(b, (int64_t)value);
		else
			json_uint(b, value);
	}
	bytes_put(b, "]", 1);
}

void json_hex(struct bytes *b, uint64_t value)
{
	uint8_t *p = room(b, 24);
	int shift = 60;

	if (!p)
		return;
	memcpy(p, "\"0x", 3);
	p += 3;
	while (shift > 0 && !(value >> shift))
		shift -= 4;
	for (; shift >= 0; shift -= 4)
		*p++ = (uint8_t) "0123456789abcdef"[value >> shift & 15];
	*p++ = '"';
	b->size = (size_t)(p - b->data);
}

void json_time(struct bytes *b, double ns, uint32_t decimals)
{
	uint8_t *p = room(b, DIGITS + 2), text[DIGITS];
	size_t n, whole;

	if (!p)
		return;
	n = (size_t)digits(text, (uint64_t)(ns < 0 ? -ns : ns), (int)decimals + 1);
	whole = n - decimals;
	if (ns < 0)
		*p++ = '-';
	memcpy(p, text + DIGITS - n, whole);
	p += whole;
	*p++ = '.';
	memcpy(p, text + DIGITS - decimals, decimals);
	b->size = (size_t)(p + decimals - b->data);
}
