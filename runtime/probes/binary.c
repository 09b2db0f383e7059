/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Libraries are looked up in the loader's cache, as the loader itself does: the cache knows the
 * directories of this machine. Without a cache the standard directories are tried.
 */
#include "probes/binary.h"

#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "error.h"

/* The cache as glibc has written it since 2.2; in some files it follows an older one. */
struct cache_header {
	char magic[20];
	uint32_t nr_libs, strings_size;
	uint8_t flags, pad[3];
	uint32_t extension, unused[3];
};

struct cache_entry {
	int32_t flags;
	uint32_t name, path; /* offsets from the header */
	uint32_t os_version;
	uint64_t hwcap; /* not 0: a variant for some processors only */
};

static const char cache_magic[] = "glibc-ld.so.cache1.1";
static const char cache_path[] = "/etc/ld.so.cache";

/* The flags of the cache's entries for programs like this one; others are for foreign
 * architectures. */
#if defined(__x86_64__)
enum { NATIVE = 0x0303 };
#elif defined(__aarch64__)
enum { NATIVE = 0x0a03 };
#else
enum { NATIVE = 0x0003 };
#endif

static bool is_file(const char *path)
{
	struct stat st;

	return !stat(path, &st) && S_ISREG(st.st_mode);
}

/* Returns whether word means this library file: by its name, or by its name without the version. */
static bool means(const char *word, const char *file)
{
	size_t len = strlen(word);

	return strncmp(file, word, len) == 0 && (!file[len] || strcmp(file + len, ".so") == 0 ||
						 strncmp(file + len, ".so.", 4) == 0);
}

static char *read_file(const char *path, size_t *size)
{
	enum { MAX = 64 << 20 };
	FILE *file = fopen(path, "re");
	char *text = NULL;
	struct stat st;

	if (file && !fstat(fileno(file), &st) && st.st_size > 0 && st.st_size <= MAX) {
		text = malloc(st.st_size + 1);
		*size = text ? fread(text, 1, st.st_size, file) : 0;
		if (text)
			text[*size] = '\0'; /* ends every string in it */
	}
	if (file)
		fclose(file);
	return text;
}

/* Finds word in the loader's cache. The path points into text. */
static const char *search_cache(const char *text, size_t size, const char *word)
{
	struct cache_header header;
	const char *start = memmem(text, size, cache_magic, sizeof(cache_magic) - 1);
	size_t left = start ? (size_t)(text + size - start) : 0;

	if (left < sizeof(header))
		return NULL;
	memcpy(&header, start, sizeof(header));
	for (uint32_t i = 0; i < header.nr_libs; i++) {
		size_t at = sizeof(header) + (size_t)i * sizeof(struct cache_entry);
		struct cache_entry entry;

		if (at + sizeof(entry) > left)
			break;
		memcpy(&entry, start + at, sizeof(entry));
		if (entry.name >= left || entry.path >= left || entry.flags != NATIVE ||
		    entry.hwcap || !means(word, start + entry.name))
			continue;
		if (is_file(start + entry.path))
			return start + entry.path;
	}
	return NULL;
}

static bool find_library(const char *name, char *path, size_t size)
{
	static const char *const dirs[] = {
#if defined(__x86_64__)
		"/lib/x86_64-linux-gnu",
		"/usr/lib/x86_64-linux-gnu",
#elif defined(__aarch64__)
		"/lib/aarch64-linux-gnu",
		"/usr/lib/aarch64-linux-gnu",
#endif
		"/lib64",
		"/usr/lib64",
		"/lib",
		"/usr/lib",
		"/usr/local/lib"
	};
	size_t text_size = 0;
	char *text = read_file(cache_path, &text_size);
	const char *found = text ? search_cache(text, text_size, name) : NULL;

	if (found)
		snprintf(path, size, "%s", found);
	free(text);
	for (size_t i = 0; !found && i < sizeof(dirs) / sizeof(dirs[0]); i++) {
		snprintf(path, size, "%s/%s", dirs[i], name);
		found = is_file(path) ? path : NULL;
	}
	return found;
}

static bool find_program(const char *name, char *path, size_t size)
{
	const char *at = getenv("PATH");

	while (at && *at) {
		size_t len = strcspn(at, ":");

		snprintf(path, size, "%.*s/%s", (int)len, at, name);
		if (len && is_file(path) && !access(path, X_OK))
			return true;
		at += len + (at[len] == ':');
	}
	return false;
}

int binary_find(const char *name, char *path, size_t size, struct error *err)
{
	char found[PATH_MAX], *real;
	char *end;
	long pid;
	int code;

	if (strncmp(name, "pid:", 4) == 0) {
		pid = strtol(name + 4, &end, 10);
		if (pid <= 0 || pid > INT32_MAX || *end)
			return error_set(err, -EINVAL, "'%s' is not a process", name);
		snprintf(found, sizeof(found), "/proc/%ld/exe", pid);
	} else if (strchr(name, '/')) {
		snprintf(found, sizeof(found), "%s", name);
	} else if (!find_library(name, found, sizeof(found)) &&
		   !find_program(name, found, sizeof(found))) {
		return error_set(err, -ENOENT,
				 "no library or program '%s'; the path of another file needs a '/'",
				 name);
	}
	/* realpath() would resolve /proc/PID/root to our own root. */
	real = strncmp(found, "/proc/", 6) == 0 ? strdup(found) : realpath(found, NULL);
	code = real && access(real, F_OK) == 0 ? 0 : errno;
	if (!code && strlen(real) >= size)
		code = ENAMETOOLONG;
	if (!code)
		strcpy(path, real);
	free(real);
	return code ? error_set(err, -code, "cannot read %s: %s", found, strerror(code)) : 0;
}
