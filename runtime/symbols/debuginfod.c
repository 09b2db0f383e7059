/* SPDX-License-Identifier: GPL-2.0-only */
/* Loaded on demand: the library brings a whole HTTP client. */
#include "symbols/debuginfod.h"

#include <errno.h>
#include <stdlib.h>
#include "os/library.h"

struct client;

struct library {
	struct client *(*begin)(void);
	int (*find_debug)(struct client *c, const unsigned char *id, int size, char **path);
	int (*find_program)(struct client *c, const unsigned char *id, int size, char **path);
	void (*end)(struct client *c);
};

static int load(struct library *lib)
{
	const struct library_function functions[] = {
		{(void **)&lib->begin, "debuginfod_begin"},
		{(void **)&lib->find_debug, "debuginfod_find_debuginfo"},
		{(void **)&lib->find_program, "debuginfod_find_executable"},
		{(void **)&lib->end, "debuginfod_end"},
	};

	return library_load("libdebuginfod.so.1", functions,
			    sizeof(functions) / sizeof(functions[0]), "", NULL);
}

int debuginfod_open(const uint8_t *id, uint32_t size, bool program)
{
	const char *urls = getenv("DEBUGINFOD_URLS");
	struct client *client = NULL;
	struct library lib;
	int fd = -ENOENT;

	if (!urls || !urls[0] || !size)
		return -ENOENT;
	if (!load(&lib))
		client = lib.begin();
	if (client) {
		fd = (program ? lib.find_program : lib.find_debug)(client, id, (int)size, NULL);
		lib.end(client);
	}
	return fd < 0 ? -ENOENT : fd;
}
