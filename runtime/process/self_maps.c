/* SPDX-License-Identifier: GPL-2.0-only */
#include "process/self_maps.h"
#include <fcntl.h>
#include <stdbool.h>
#include <string.h>
#include <unistd.h>

enum { LINE_SIZE = 512, PATH_FIELD = 5 }; /* a longer path is cut */

static uintptr_t parse_hex(const char **at)
{
	uintptr_t value = 0;

	for (;; (*at)++) {
		if (**at >= '0' && **at <= '9')
			value = value << 4 | (uintptr_t)(**at - '0');
		else if (**at >= 'a' && **at <= 'f')
			value = value << 4 | (uintptr_t)(**at - 'a' + 10);
		else
			return value;
	}
}

/* "FROM-TO PERMISSIONS OFFSET DEVICE INODE   PATH" */
static bool parse_line(const char *line, struct self_map *map)
{
	map->from = parse_hex(&line);
	if (*line++ != '-')
		return false;
	map->to = parse_hex(&line);
	for (int field = 1; field < PATH_FIELD; field++) {
		while (*line == ' ')
			line++;
		while (*line && *line != ' ')
			line++;
	}
	while (*line == ' ')
		line++;
	map->path = line;
	return true;
}

int self_maps_each(int (*each)(const struct self_map *map, void *arg), void *arg)
{
	char line[LINE_SIZE], buffer[1024];
	size_t length = 0;
	struct self_map map;
	int ret = 0;
	ssize_t n;
	int fd = open("/proc/self/maps", O_RDONLY | O_CLOEXEC);

	while (fd >= 0 && !ret && (n = read(fd, buffer, sizeof(buffer))) > 0) {
		for (ssize_t i = 0; i < n && !ret; i++) {
			if (buffer[i] != '\n') {
				if (length < sizeof(line) - 1)
					line[length++] = buffer[i];
				continue;
			}
			line[length] = 0;
			length = 0;
			if (parse_line(line, &map))
				ret = each(&map, arg);
		}
	}
	if (fd >= 0)
		close(fd);
	return ret;
}
