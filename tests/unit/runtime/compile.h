/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * For tests of ELF readers: a folder that is removed at the end, and compilers to fill it. Included
 * after cmocka.h.
 */
#pragma once
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static char folder[] = "/tmp/profscript-test-XXXXXX";

static inline int make_folder(void **state)
{
	(void)state;
	return mkdtemp(folder) ? 0 : -1;
}

static inline int remove_folder(void **state)
{
	char command[64];

	(void)state;
	snprintf(command, sizeof(command), "rm -rf %s", folder);
	return system(command);
}

/* The path of a file in the folder; valid for the next four calls. */
static inline const char *in_folder(const char *name)
{
	static char paths[4][128];
	static unsigned int next;
	char *path = paths[next++ % 4];

	snprintf(path, sizeof(paths[0]), "%s/%s", folder, name);
	return path;
}

static inline void write_file(const char *path, const void *bytes, size_t size)
{
	FILE *f = fopen(path, "w");

	assert_non_null(f);
	assert_int_equal(fwrite(bytes, 1, size, f), size);
	assert_int_equal(fclose(f), 0);
}

static inline size_t read_file(const char *path, char **bytes)
{
	FILE *f = fopen(path, "r");
	size_t size;

	assert_non_null(f);
	fseek(f, 0, SEEK_END);
	size = ftell(f);
	rewind(f);
	*bytes = malloc(size);
	assert_non_null(*bytes);
	assert_int_equal(fread(*bytes, 1, size, f), size);
	fclose(f);
	return size;
}

/* Compiles C text with these options; returns the path of the result, named output. */
static inline const char *compile(const char *output, const char *options, const char *text)
{
	const char *path = in_folder(output);
	char source[160], command[1024];

	snprintf(source, sizeof(source), "%s.c", path);
	write_file(source, text, strlen(text));
	snprintf(command, sizeof(command), "gcc -w -O1 -nostdlib -o %s %s %s", path, source,
		 options);
	assert_int_equal(system(command), 0);
	return path;
}
