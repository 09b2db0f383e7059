/* SPDX-License-Identifier: GPL-2.0-only */
/* Loaded on demand: the library brings a whole HTTP client. */
#include "stacks/debuginfod.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdlib.h>

struct client;

struct library {
	struct client *(*begin)(void);
	int (*find_debug)(struct client *c, const unsigned char *id, int size, char **path);
	int (*find_program)(struct client *c, const unsigned char *id, int size, char **path);
	void (*end)(struct client *c);
};

static bool load(void *handle, struct library *lib)
{
	*(void **)&lib->begin = dlsym(handle, "debuginfod_begin");
	*(void **)&lib->find_debug = dlsym(handle, "debuginfod_find_debuginfo");
	*(void **)&lib->find_program = dlsym(handle, "debuginfod_find_executable");
	*(void **)&lib->end = dlsym(handle, "debuginfod_end");
	return lib->begin && lib->find_debug && lib->find_program && lib->end;
}

int debuginfod_open(const uint8_t *id, uint32_t size, bool program)
{
	const char *urls = getenv("DEBUGINFOD_URLS");
	struct client *client = NULL;
	struct library lib;
	int fd = -ENOENT;
	void *handle;

	if (!urls || !urls[0] || !size)
		return -ENOENT;
	/* Stays loaded: what it starts does not end cleanly. */
	handle = dlopen("libdebuginfod.so.1", RTLD_NOW | RTLD_NODELETE);
	if (handle && load(handle, &lib))
		client = lib.begin();
	if (client) {
		fd = (program ? lib.find_program : lib.find_debug)(client, id, (int)size, NULL);
		lib.end(client);
	}
	if (handle)
		dlclose(handle);
	return fd < 0 ? -ENOENT : fd;
}
