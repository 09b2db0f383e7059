/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Parses tracefs format files. A field's kind comes from its declaration. The kernel's flags are
 * not enough: since 6.2 the kernel is built with unsigned char and flags every string as unsigned.
 */
#include "formats/format.h"

#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "error.h"
#include "formats/tracepoint.h"

enum { NAME_LEN_MAX = 127, FIELDS_MAX = 1024 };

/* A part of the text. */
struct span {
	const char *at;
	size_t len;
};

static bool starts(struct span s, const char *prefix)
{
	size_t len = strlen(prefix);

	return s.len >= len && memcmp(s.at, prefix, len) == 0;
}

static bool equals(struct span s, const char *word)
{
	return s.len == strlen(word) && starts(s, word);
}

static struct span skip(struct span s, size_t n)
{
	return (struct span){s.at + n, s.len - n};
}

static struct span trim(struct span s)
{
	while (s.len && isspace((unsigned char)s.at[0]))
		s = skip(s, 1);
	while (s.len && isspace((unsigned char)s.at[s.len - 1]))
		s.len--;
	return s;
}

/* Removes and returns the text before the separator. */
static struct span take(struct span *s, char separator)
{
	const char *end = s->len ? memchr(s->at, separator, s->len) : NULL;
	struct span head = {s->at, end ? (size_t)(end - s->at) : s->len};

	*s = skip(*s, end ? head.len + 1 : head.len);
	return head;
}

static bool number(struct span s, uint32_t *value)
{
	uint64_t v = 0;

	s = trim(s);
	if (s.len == 0 || s.len > 10)
		return false;
	for (size_t i = 0; i < s.len; i++) {
		if (!isdigit((unsigned char)s.at[i]))
			return false;
		v = v * 10 + (uint64_t)(s.at[i] - '0');
	}
	*value = (uint32_t)v;
	return v <= UINT32_MAX;
}

static bool identifier_char(char c)
{
	return isalnum((unsigned char)c) || c == '_';
}

/* Writes the words of the type without qualifiers and array suffix, single-spaced: the form of the
 * table below. */
static void base_type(struct span type, char *out, size_t size)
{
	size_t used = 0;

	out[0] = '\0';
	for (size_t i = 0; i < type.len; i++)
		if (type.at[i] == '[' || type.at[i] == '*')
			type.len = i;
	while (type.len) {
		struct span word = take(&type, ' ');

		if (word.len == 0 || equals(word, "const") || equals(word, "volatile") ||
		    equals(word, "__data_loc") || equals(word, "__rel_loc"))
			continue;
		if (used + word.len + 2 > size)
			return;
		if (used)
			out[used++] = ' ';
		memcpy(out + used, word.at, word.len);
		used += word.len;
		out[used] = '\0';
	}
}

/* Returns the size of a value of a C or kernel type, 0 if unknown. */
static uint32_t type_size(const char *base)
{
	static const struct {
		uint32_t size;
		const char *names; /* each between bars */
	} table[] = {
		{1, "|char|unsigned char|signed char|bool|_Bool|u8|s8|__u8|__s8|uint8_t|int8_t|"},
		{2, "|short|unsigned short|short int|u16|s16|__u16|__s16|uint16_t|int16_t|__be16|"
		    "__le16|umode_t|"},
		{4, "|int|unsigned int|unsigned|uint|u32|s32|__u32|__s32|uint32_t|int32_t|__be32|"
		    "__le32|pid_t|uid_t|gid_t|dev_t|gfp_t|"},
		{8,
		 "|long|unsigned long|long int|long unsigned int|long long|unsigned long long|u64|"
		 "s64|__u64|__s64|uint64_t|int64_t|__be64|__le64|size_t|ssize_t|loff_t|"
		 "sector_t|dma_addr_t|phys_addr_t|cpumask_t|"},
	};
	char key[80];
	size_t len = strlen(base);

	if (len == 0 || len + 3 > sizeof(key))
		return 0;
	key[0] = '|';
	memcpy(key + 1, base, len);
	memcpy(key + 1 + len, "|", 2);
	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++)
		if (strstr(table[i].names, key))
			return table[i].size;
	return 0;
}

/* Finds the name in a declaration: "T name", "T name[N]", "T (*name)(...)". The rest is the
 * type. */
static bool split_declaration(struct span decl, struct span *name, struct span *suffix)
{
	const char *pointer = memmem(decl.at, decl.len, "(*", 2);
	size_t end = decl.len;

	*suffix = (struct span){decl.at + decl.len, 0};
	if (pointer) {
		end = (size_t)(pointer - decl.at) + 2;
		while (end < decl.len && identifier_char(decl.at[end]))
			end++;
		*suffix = skip(decl, end);
	} else if (decl.len && decl.at[decl.len - 1] == ']') {
		while (end && decl.at[end - 1] != '[')
			end--;
		if (end == 0)
			return false;
		end--;
		*suffix = skip(decl, end);
	}
	size_t start = end;

	while (start && identifier_char(decl.at[start - 1]))
		start--;
	*name = (struct span){decl.at + start, end - start};
	return name->len && name->len <= NAME_LEN_MAX && !isdigit((unsigned char)name->at[0]);
}

/* Sets flags, elem_size and count from the type. f has offset, size and the kernel's signedness. */
static void classify(struct field *f, struct span type, struct span suffix)
{
	bool pointer = memchr(type.at, '*', type.len) != NULL;
	uint32_t count = 0;
	char base[80];

	base_type(type, base, sizeof(base));
	f->elem_size = pointer ? sizeof(uint64_t) : type_size(base);
	if (starts(type, "__data_loc ") || starts(type, "__rel_loc ")) {
		f->flags |= FIELD_DYNAMIC | (starts(type, "__rel_loc ") ? FIELD_RELATIVE : 0);
	} else if (suffix.len && suffix.at[0] == '[') {
		f->flags |= FIELD_ARRAY;
		/* Old kernels write the length as an identifier; the type has to tell. */
		if (number((struct span){suffix.at + 1, suffix.len - 2}, &count) && count &&
		    f->size % count == 0)
			f->elem_size = f->size / count;
		if (f->size && f->elem_size > f->size)
			f->elem_size = 1;
	} else {
		f->elem_size = f->size;
		f->count = 1;
	}
	if (f->elem_size == 0)
		f->elem_size = 1;
	if (f->flags & FIELD_ARRAY)
		f->count = f->size / f->elem_size;
	if (pointer)
		f->flags |= FIELD_POINTER;
	else if (f->flags & (FIELD_ARRAY | FIELD_DYNAMIC) && strcmp(base, "char") == 0)
		f->flags = (f->flags | FIELD_STRING) & ~(uint32_t)FIELD_SIGNED;
}

/* Returns the declaration without its name: "T[N]" for "T name[N]". */
static char *join_type(struct span type, struct span suffix)
{
	char *text = malloc(type.len + suffix.len + 1);

	if (text) {
		memcpy(text, type.at, type.len);
		memcpy(text + type.len, suffix.at, suffix.len);
		text[type.len + suffix.len] = '\0';
	}
	return text;
}

/* line: "field:DECLARATION;\toffset:N;\tsize:N;[\tsigned:N;]". Returns 0, -EINVAL or -ENOMEM. */
static int parse_field(struct span line, struct field *f)
{
	struct span decl, name, suffix, part;
	bool offset = false, size = false;

	line = skip(line, strlen("field:"));
	decl = trim(take(&line, ';'));
	if (!split_declaration(decl, &name, &suffix))
		return -EINVAL;
	while ((part = trim(take(&line, ';'))).len) {
		uint32_t is_signed;

		if (starts(part, "offset:"))
			offset = number(skip(part, strlen("offset:")), &f->offset);
		else if (starts(part, "size:"))
			size = number(skip(part, strlen("size:")), &f->size);
		else if (starts(part, "signed:") &&
			 number(skip(part, strlen("signed:")), &is_signed) && is_signed)
			f->flags |= FIELD_SIGNED;
	}
	if (!offset || !size || f->size > FORMAT_PAYLOAD_MAX ||
	    f->offset > FORMAT_PAYLOAD_MAX - f->size)
		return -EINVAL;

	struct span type = trim((struct span){decl.at, (size_t)(name.at - decl.at)});

	if (type.len == 0)
		return -EINVAL;
	classify(f, type, suffix);
	if (f->flags & FIELD_DYNAMIC && f->size != sizeof(uint32_t))
		return -EINVAL;
	if (starts(name, "common_"))
		f->flags |= FIELD_COMMON;
	f->name = strndup(name.at, name.len);
	f->type = join_type(type, suffix);
	return f->name && f->type ? 0 : -ENOMEM;
}

static int add_field(struct format *format, struct span line)
{
	struct field *more;
	int ret;

	if (format->nr_fields >= FIELDS_MAX)
		return -EINVAL;
	more = realloc(format->fields, (format->nr_fields + 1) * sizeof(*more));
	if (!more)
		return -ENOMEM;
	format->fields = more;

	struct field *f = &more[format->nr_fields++];

	*f = (struct field){0};
	ret = parse_field(line, f);
	if (ret)
		return ret;
	for (struct field *other = more; other < f; other++)
		if (strcmp(other->name, f->name) == 0)
			return -EINVAL;
	return 0;
}

/* The kernel writes them first, but other writers may not. */
static void common_first(struct format *format)
{
	uint32_t common = 0;

	for (uint32_t i = 0; i < format->nr_fields; i++) {
		struct field f = format->fields[i];

		if (!(f.flags & FIELD_COMMON))
			continue;
		memmove(&format->fields[common + 1], &format->fields[common],
			(i - common) * sizeof(f));
		format->fields[common++] = f;
	}
}

int format_name(const char *text, size_t size, char **name)
{
	struct span rest = {text, size}, found = {text, 0};

	while (rest.len && !found.len) {
		struct span line = take(&rest, '\n');

		if (starts(line, "name:"))
			found = trim(skip(line, strlen("name:")));
	}
	*name = strndup(found.at, found.len);
	return *name ? 0 : -ENOMEM;
}

static int parse_line(struct format *format, struct span line, bool *has_id)
{
	if (starts(line, "ID:")) {
		*has_id = number(skip(line, strlen("ID:")), &format->id);
		return *has_id ? 0 : -EINVAL;
	}
	if (starts(trim(line), "field:"))
		return add_field(format, trim(line));
	return 0;
}

int format_parse(struct format *format, const char *text, size_t size, struct error *err)
{
	struct span rest = {text, size}, print = {text, 0};
	bool has_id = false;
	int ret;

	*format = (struct format){0};
	ret = format_name(text, size, &format->name);
	for (unsigned int nr = 1; !ret && rest.len && !print.len; nr++) {
		struct span line = take(&rest, '\n');

		if (starts(line, "print fmt: ")) {
			/* The print format is the rest of the text: it may span lines. */
			print = (struct span){line.at, line.len + rest.len + (rest.len != 0)};
			print = trim(skip(print, strlen("print fmt: ")));
			break;
		}
		ret = parse_line(format, line, &has_id);
		if (ret == -EINVAL)
			error_set(err, ret, "cannot parse format line %u: %.*s", nr,
				  (int)(line.len < 200 ? line.len : 200), line.at);
	}
	if (!ret && (!format->name[0] || !has_id || !format->nr_fields))
		ret = error_set(err, -EINVAL, "format has no %s",
				!format->name[0] ? "name"
				: !has_id	 ? "ID"
						 : "fields");
	if (!ret) {
		common_first(format);
		format->print_fmt = strndup(print.at, print.len);
		ret = format->print_fmt ? 0 : -ENOMEM;
	}
	if (ret == -ENOMEM)
		error_set(err, ret, "out of memory");
	if (ret)
		format_release(format);
	return ret;
}

void format_release(struct format *format)
{
	for (uint32_t i = 0; i < format->nr_fields; i++) {
		free((char *)format->fields[i].name);
		free((char *)format->fields[i].type);
	}
	free(format->fields);
	free(format->name);
	free(format->print_fmt);
	*format = (struct format){0};
}
