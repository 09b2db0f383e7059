/* SPDX-License-Identifier: GPL-2.0-only */
/* A buffer of protobuf messages and JSON; see bytes.h. */
#include "bytes.h"

#include <endian.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "text.h"

enum { VARINT = 0, FIXED64 = 1, LENGTH = 2 };
enum { VARINT_MAX = 10, PADDED = 4, NUMBER_MAX = 40 };
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

/* Copies text, most of which is short: without a call where two words hold it. */
static inline uint8_t *copy(uint8_t *p, const void *from, size_t n)
{
	const uint8_t *text = from;
	uint64_t first[2], last[2];

	if (n >= 16 && n <= 32) {
		memcpy(first, text, 16);
		memcpy(last, text + n - 16, 16);
		memcpy(p, first, 16);
		memcpy(p + n - 16, last, 16);
	} else if (n >= 8 && n < 16) {
		memcpy(first, text, 8);
		memcpy(last, text + n - 8, 8);
		memcpy(p, first, 8);
		memcpy(p + n - 8, last, 8);
	} else if (n) {
		memcpy(p, text, n);
	}
	return p + n;
}

void bytes_put(struct bytes *b, const void *from, size_t n)
{
	uint8_t *p = room(b, n);

	if (p)
		b->size = (size_t)(copy(p, from, n) - b->data);
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
	uint32_t word;

	if (size == sizeof(word)) { /* nearly always */
		memcpy(&word, from, sizeof(word));
		return is_signed ? (uint64_t)(int32_t)word : word;
	}
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

static size_t text_max(size_t n)
{
	return 6 * n + 2;
}

static uint8_t *quoted(uint8_t *p, const char *text, size_t n)
{
	*p++ = '"';
	if (text_clean(text, n, TEXT_JSON))
		p = copy(p, text, n);
	else
		p += text_escape((char *)p, text, n, TEXT_JSON);
	*p++ = '"';
	return p;
}

void json_text(struct bytes *b, const char *text, size_t n)
{
	uint8_t *p = room(b, text_max(n));

	if (p)
		b->size = (size_t)(quoted(p, text, n) - b->data);
}

#define ZEROS 0x3030303030303030ULL /* "00000000" */

/* Returns the eight digits of a value below 10^8 as bytes from 0 to 9, the first one in the lowest
 * byte: all of them at once, as a text that was written in pieces cannot be read without a stall.
 */
static inline uint64_t eight_digits(uint32_t value)
{
	uint64_t all = value / 10000 | (uint64_t)(value % 10000) << 32, tens;

	tens = all * 10486 >> 20 & 0x7f0000007f; /* each half by 100 */
	all = tens | (all - tens * 100) << 16;
	tens = all * 103 >> 10 & 0x000f000f000f000f; /* each quarter by 10 */
	return tens | (all - tens * 10) << 8;
}

/* Writes eight bytes. Returns p + n. */
static inline uint8_t *put_digits(uint8_t *p, uint64_t eight, uint32_t n)
{
	eight = htole64(eight | ZEROS);
	memcpy(p, &eight, sizeof(eight));
	return p + n;
}

/* Writes the digits of value into NUMBER_MAX bytes. */
static inline uint8_t *decimal(uint8_t *p, uint64_t value)
{
	const uint32_t part = 100000000;
	uint64_t parts[2], first;
	uint32_t n = 0, zeros;

	if (value < 100) { /* such as CPUs and priorities */
		if (value >= 10)
			*p++ = (uint8_t)('0' + value / 10);
		*p++ = (uint8_t)('0' + value % 10);
		return p;
	}
	for (; value >= part; value /= part)
		parts[n++] = eight_digits((uint32_t)(value % part));
	first = eight_digits((uint32_t)value);
	zeros = (uint32_t)__builtin_ctzll(first | 1ULL << 56) / 8;
	p = put_digits(p, first >> 8 * zeros, 8 - zeros);
	while (n)
		p = put_digits(p, parts[--n], 8);
	return p;
}

/* Writes an integer into NUMBER_MAX bytes. */
static inline uint8_t *integer(uint8_t *p, uint64_t size, int is_negative)
{
	int is_exact = size <= (uint64_t)EXACT;

	if (!is_exact)
		*p++ = '"';
	if (is_negative)
		*p++ = '-';
	p = decimal(p, size);
	if (!is_exact)
		*p++ = '"';
	return p;
}

static inline uint8_t *signed_integer(uint8_t *p, int64_t value)
{
	return integer(p, value < 0 ? -(uint64_t)value : (uint64_t)value, value < 0);
}

void json_int(struct bytes *b, int64_t value)
{
	json_member_int(b, "", 0, value);
}

void json_uint(struct bytes *b, uint64_t value)
{
	uint8_t *p = room(b, NUMBER_MAX);

	if (p)
		b->size = (size_t)(integer(p, value, 0) - b->data);
}

void json_member_int(struct bytes *b, const char *key, size_t n, int64_t value)
{
	uint8_t *p = room(b, n + NUMBER_MAX);

	if (p)
		b->size = (size_t)(signed_integer(copy(p, key, n), value) - b->data);
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

/* Writes an address into NUMBER_MAX bytes. */
static uint8_t *address(uint8_t *p, uint64_t value)
{
	int shift = 60;

	p = copy(p, "\"0x", 3);
	while (shift > 0 && !(value >> shift))
		shift -= 4;
	for (; shift >= 0; shift -= 4)
		*p++ = (uint8_t) "0123456789abcdef"[value >> shift & 15];
	*p++ = '"';
	return p;
}

void json_time(struct bytes *b, double ns, uint32_t decimals)
{
	json_member_time(b, "", 0, ns, decimals);
}

void json_member_time(struct bytes *b, const char *key, size_t n, double ns, uint32_t decimals)
{
	uint8_t *p = room(b, n + NUMBER_MAX);
	uint64_t size = (uint64_t)(ns < 0 ? -ns : ns);
	uint64_t whole = decimals == 3 ? size / 1000 : size / 1000000;

	if (!p)
		return;
	p = copy(p, key, n);
	if (ns < 0)
		*p++ = '-';
	p = decimal(p, whole);
	*p++ = '.';
	size -= whole * (decimals == 3 ? 1000 : 1000000);
	p = put_digits(p, eight_digits((uint32_t)size) >> 8 * (8 - decimals), decimals);
	b->size = (size_t)(p - b->data);
}

/* Writes a value into NUMBER_MAX bytes, or those of its text. */
static inline uint8_t *field_value(uint8_t *p, const struct json_field *f, const uint8_t *at)
{
	switch (f->kind) {
	case JSON_TEXT:
		return quoted(p, (const char *)at, strnlen((const char *)at, f->size));
	case JSON_INT:
		return signed_integer(p, (int64_t)element(at, f->size, 1, 0));
	case JSON_ADDRESS:
		return address(p, element(at, f->size, 0, 0));
	default:
		return integer(p, element(at, f->size, 0, 0), 0);
	}
}

void json_fields(struct bytes *b, const struct json_field *fields, uint32_t n, const void *record)
{
	for (const struct json_field *f = fields; f < fields + n; f++) {
		uint8_t *p = room(b, f->key_size + text_max(f->size) + NUMBER_MAX);

		if (!p)
			return;
		p = copy(p, f->key, f->key_size);
		p = field_value(p, f, (const uint8_t *)record + f->offset);
		b->size = (size_t)(p - b->data);
	}
}
