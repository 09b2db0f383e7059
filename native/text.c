/* SPDX-License-Identifier: GPL-2.0-only */
/* Escapes strings that are printed; see text.h. */
#include "text.h"

#include <string.h>

#define BYTES(b) (0x0101010101010101ULL * (b))

/* Returns true if one of 8 bytes is below 0x20 or above 0x7e. A borrow may also mark the byte above
 * such a byte, which does not change the result. */
static int has_special(const uint8_t *p)
{
	uint64_t w, control, del;

	memcpy(&w, p, 8);
	control = (w - BYTES(0x20)) & ~w;
	del = ((w ^ BYTES(0x7f)) - BYTES(1)) & ~(w ^ BYTES(0x7f));
	return ((control | del | w) & BYTES(0x80)) != 0;
}

/* Bytes that are compared at once: GCC makes SIMD instructions of it if there are some. */
typedef uint8_t block __attribute__((vector_size(16)));

/* The same for a block in which newlines and tabs are allowed. */
static int lines_have_special(const uint8_t *p)
{
	uint64_t w[sizeof(block) / sizeof(uint64_t)];
	block b;

	memcpy(&b, p, sizeof(b));
	b = (block)((b - 0x20 >= 0x5f) & (b != '\n') & (b != '\t'));
	memcpy(w, &b, sizeof(b));
	return (w[0] | w[1]) != 0;
}

/* Returns the length of the valid UTF-8 sequence at s, 0 if there is none, and its code point in
 * *code. */
static size_t utf8_decode(const uint8_t *s, size_t n, uint32_t *code)
{
	static const uint32_t smallest[] = {0, 0, 0x80, 0x800, 0x10000};
	size_t len = s[0] < 0x80       ? 1
		     : s[0] >> 5 == 6  ? 2
		     : s[0] >> 4 == 14 ? 3
		     : s[0] >> 3 == 30 ? 4
				       : 0;

	if (!len || len > n)
		return 0;
	*code = len == 1 ? s[0] : s[0] & (0x7f >> len);
	for (size_t i = 1; i < len; i++) {
		if (s[i] >> 6 != 2)
			return 0;
		*code = *code << 6 | (s[i] & 0x3f);
	}
	if (*code < smallest[len] || *code > 0x10ffff || *code >> 11 == 0xd800 >> 11)
		return 0;
	return len;
}

static int needs_escape(uint32_t code, enum text_mode mode)
{
	if (mode == TEXT_LINES && (code == '\n' || code == '\t'))
		return 0;
	if (mode == TEXT_JSON && (code == '"' || code == '\\'))
		return 1;
	return code < 0x20 || (code >= 0x7f && code < 0xa0);
}

int text_clean(const char *s, size_t n, enum text_mode mode)
{
	const uint8_t *p = (const uint8_t *)s, *end = p + n;
	uint32_t code;

	while (p < end) {
		size_t left = (size_t)(end - p);

		if (mode == TEXT_LINES && left >= sizeof(block) && !lines_have_special(p)) {
			p += sizeof(block);
			continue;
		}
		if (mode != TEXT_JSON && left >= 8 && !has_special(p)) {
			p += 8;
			continue;
		}
		if (*p >= 0x20 && *p < 0x7f && (mode != TEXT_JSON || (*p != '"' && *p != '\\'))) {
			p++;
			continue;
		}
		size_t len = utf8_decode(p, left, &code);

		if (!len || needs_escape(code, mode))
			return 0;
		p += len;
	}
	return 1;
}

static size_t escape_code(char *out, uint32_t code, const uint8_t *s, size_t len,
			  enum text_mode mode)
{
	static const char hex[] = "0123456789abcdef";
	char *o = out;

	if (mode == TEXT_JSON && (code == '"' || code == '\\')) {
		*o++ = '\\';
		*o++ = (char)code;
	} else if (mode == TEXT_JSON) {
		memcpy(o, "\\u00", 4);
		o[4] = hex[code >> 4];
		o[5] = hex[code & 15];
		o += 6;
	} else {
		for (size_t i = 0; i < len; i++) {
			*o++ = '\\';
			*o++ = 'x';
			*o++ = hex[s[i] >> 4];
			*o++ = hex[s[i] & 15];
		}
	}
	return (size_t)(o - out);
}

size_t text_escape(char *out, const char *s, size_t n, enum text_mode mode)
{
	const uint8_t *p = (const uint8_t *)s, *end = p + n;
	uint32_t code;
	char *o = out;

	while (p < end) {
		size_t len = utf8_decode(p, (size_t)(end - p), &code);

		if (!len) {
			/* The byte has no meaning: even JSON can only show its value. */
			if (mode == TEXT_JSON)
				*o++ = '\\';
			len = 1;
			o += escape_code(o, 0, p, len, TEXT_CELL);
		} else if (needs_escape(code, mode)) {
			o += escape_code(o, code, p, len, mode);
		} else {
			memcpy(o, p, len);
			o += len;
		}
		p += len;
	}
	return (size_t)(o - out);
}

size_t text_utf8(const char *s, size_t n)
{
	uint32_t code;

	return n ? utf8_decode((const uint8_t *)s, n, &code) : 0;
}
