/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Lines are "START-END PERM OFFSET MAJ:MIN INODE      PATH"; all numbers but the inode are
 * hexadecimal.
 */
#include "stacks/procmaps.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Reads a number and the character after it. */
static bool take(char **at, int base, char after, uint64_t *value)
{
	char *end;

	*value = strtoull(*at, &end, base);
	if (end == *at || *end != after)
		return false;
	*at = end + 1;
	return true;
}

static bool parse(char *text, struct procmaps_line *line)
{
	uint64_t maj, min;
	char *at = text;

	if (!take(&at, 16, '-', &line->start) || !take(&at, 16, ' ', &line->end) ||
	    strnlen(at, 5) < 5 || (at[2] != 'x' && at[0] != 'r' && at[1] != 'w'))
		return false;
	line->is_executable = at[2] == 'x';
	at += 5;
	if (!take(&at, 16, ' ', &line->offset) || !take(&at, 16, ':', &maj) ||
	    !take(&at, 16, ' ', &min))
		return false;
	line->inode = strtoull(at, &at, 10);
	line->maj = (uint32_t)maj;
	line->min = (uint32_t)min;
	at += strspn(at, " ");
	at[strcspn(at, "\n")] = '\0';
	line->path = at;
	return true;
}

int procmaps_read(int32_t pid, bool data, void (*call)(const struct procmaps_line *line, void *arg),
		  void *arg)
{
	struct procmaps_line line;
	size_t room = 0;
	char name[32], *text = NULL;
	FILE *file;

	snprintf(name, sizeof(name), "/proc/%d/maps", pid);
	file = fopen(name, "re");
	if (!file)
		return -errno;
	while (getline(&text, &room, file) > 0)
		if (parse(text, &line) && (line.is_executable || data))
			call(&line, arg);
	free(text);
	fclose(file);
	return 0;
}
