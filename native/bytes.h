/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A growing buffer for writers of files, with the pieces of protobuf messages and of JSON. The
 * owner writes the bytes to the file and resets size. If memory runs out, the buffer stays as it
 * is, and failed is set.
 *
 * Text is of unknown origin: bytes of invalid UTF-8 become '?' in protobuf, whose readers reject
 * such strings, and are escaped in JSON.
 */
#pragma once
#include <stddef.h>
#include <stdint.h>

struct bytes {
	uint8_t *data;
	size_t size, capacity;
	int32_t failed;
};

/* Returns an empty buffer, NULL without memory. */
struct bytes *bytes_new(void);
void bytes_free(struct bytes *b);
void bytes_put(struct bytes *b, const void *from, size_t n);
/* n bytes in Base64, with padding. */
void bytes_base64(struct bytes *b, const void *from, size_t n);

/* Fields of a message: an integer (negative ones as 64 bits), 8 bytes, a double, and text. */
void proto_uint(struct bytes *b, uint32_t field, uint64_t value);
void proto_fixed64(struct bytes *b, uint32_t field, uint64_t value);
void proto_double(struct bytes *b, uint32_t field, double value);
void proto_text(struct bytes *b, uint32_t field, const char *text, size_t n);
/* Begins a message that is a field of another one. Returns what proto_close() takes. The message
 * must stay below 256 MiB. */
size_t proto_open(struct bytes *b, uint32_t field);
void proto_close(struct bytes *b, size_t at);
/* A message with two fields: key, which is field 1, and an integer or text. */
void proto_entry(struct bytes *b, uint32_t field, uint32_t key, uint32_t of_value, int64_t value);
void proto_entry_text(struct bytes *b, uint32_t field, uint32_t key, uint32_t of_value,
		      const char *text, size_t n);

/* Messages of one integer each, for the n integers of size bytes at values. */
void proto_list(struct bytes *b, uint32_t field, uint32_t of_value, const void *values,
		uint32_t size, uint32_t is_signed, uint32_t n);

/* A JSON string with its quotes. */
void json_text(struct bytes *b, const char *text, size_t n);
/* Integers that a double cannot hold exactly are quoted, because readers use doubles. */
void json_int(struct bytes *b, int64_t value);
void json_uint(struct bytes *b, uint64_t value);
void json_list(struct bytes *b, const void *values, uint32_t size, uint32_t is_signed, uint32_t n);
/* Text, such as a key, and then an integer or a time. */
void json_member_int(struct bytes *b, const char *key, size_t n, int64_t value);
void json_member_time(struct bytes *b, const char *key, size_t n, double ns, uint32_t decimals);
/* A time of ns in us or ms (3 or 6 decimals), with all its digits: 1234567 and 3 is 1234.567. */
void json_time(struct bytes *b, double ns, uint32_t decimals);

enum json_kind { JSON_INT, JSON_UINT, JSON_ADDRESS, JSON_TEXT };

/* A member whose value is at a fixed place of a record: an integer of size bytes, or text that ends
 * with a NUL or after size bytes. */
struct json_field {
	const char *key; /* what is written before the value */
	uint32_t key_size;
	uint32_t kind; /* enum json_kind */
	uint32_t offset, size;
};

/* The values of n fields of a record that is long enough for them. */
void json_fields(struct bytes *b, const struct json_field *fields, uint32_t n, const void *record);
