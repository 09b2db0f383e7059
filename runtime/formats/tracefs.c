/* SPDX-License-Identifier: GPL-2.0-only */
#include "formats/tracefs.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { TEXT_MAX = 1 << 20 };

static DIR *open_dir_at(int parent, const char *name)
{
	int fd = openat(parent, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);

	if (!dir && fd >= 0)
		close(fd);
	return dir;
}

static int compare_lines(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

/* Returns the lines of text in order, NULL without memory. Frees text. */
static char *sort_lines(char *text, size_t size)
{
	char *sorted = malloc(size + 1), **lines, *save = NULL, *to = sorted;
	size_t count = 0, n = 0;

	for (size_t i = 0; i < size; i++)
		count += text[i] == '\n';
	lines = calloc(count + 1, sizeof(*lines));
	if (lines && sorted) {
		for (char *line = strtok_r(text, "\n", &save); line;
		     line = strtok_r(NULL, "\n", &save))
			lines[n++] = line;
		qsort(lines, n, sizeof(*lines), compare_lines);
		for (size_t i = 0; i < n; i++)
			to += sprintf(to, "%s\n", lines[i]);
		*to = '\0';
	} else {
		free(sorted);
		sorted = NULL;
	}
	free(lines);
	free(text);
	return sorted;
}

/* Lists each event of the system: a directory with an id. */
static void list_system(FILE *out, int events, const char *system)
{
	DIR *dir = open_dir_at(events, system);
	struct dirent *entry;

	while (dir && (entry = readdir(dir))) {
		char id[sizeof(entry->d_name) + 4];

		snprintf(id, sizeof(id), "%s/id", entry->d_name);
		if (entry->d_name[0] != '.' && faccessat(dirfd(dir), id, F_OK, 0) == 0)
			fprintf(out, "%s:%s\n", system, entry->d_name);
	}
	if (dir)
		closedir(dir);
}

static void list_name(FILE *out, int events, const char *system)
{
	(void)events;
	fprintf(out, "%s\n", system);
}

/* Calls list() for each system. */
static char *list_systems(const char *events, void (*list)(FILE *, int, const char *))
{
	DIR *dir = open_dir_at(AT_FDCWD, events);
	char *text = NULL;
	size_t size = 0;
	FILE *out = open_memstream(&text, &size);
	struct dirent *entry;

	while (out && dir && (entry = readdir(dir)))
		if (entry->d_name[0] != '.' && entry->d_type == DT_DIR)
			list(out, dirfd(dir), entry->d_name);
	if (dir)
		closedir(dir);
	if (!out || fclose(out)) {
		free(text);
		return NULL;
	}
	return sort_lines(text, size);
}

char *tracefs_names(const char *events)
{
	return list_systems(events, list_system);
}

char *tracefs_systems(const char *events)
{
	return list_systems(events, list_name);
}

/* The file's size is not known before it is read. */
int tracefs_read_format(const char *path, char **text, size_t *size)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC), ret = 0;
	size_t room = 0, len = 0;
	char *buf = NULL, *more;
	ssize_t n = 0;

	if (fd < 0)
		return -errno;
	do {
		len += (size_t)n;
		if (room - len < 2) {
			room = room ? 2 * room : 8192;
			more = realloc(buf, room);
			if (!more) {
				ret = -ENOMEM;
				break;
			}
			buf = more;
		}
		n = read(fd, buf + len, room - len - 1);
		if (n < 0)
			ret = -errno;
	} while (n > 0 && len < TEXT_MAX);
	close(fd);
	if (ret) {
		free(buf);
		return ret;
	}
	buf[len] = '\0';
	*text = buf;
	*size = len;
	return 0;
}
