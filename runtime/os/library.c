/* SPDX-License-Identifier: GPL-2.0-only */
#include "os/library.h"

#include <dlfcn.h>
#include <errno.h>
#include "error.h"

int library_load(const char *file, const struct library_function *functions, size_t n,
		 const char *needed, struct error *err)
{
	/* Not deleted: what a library starts may not end cleanly. */
	void *handle = dlopen(file, RTLD_NOW | RTLD_NODELETE);
	size_t i;

	for (i = 0; handle && i < n; i++) {
		*functions[i].to = dlsym(handle, functions[i].name);
		if (!*functions[i].to)
			break;
	}
	if (handle && i == n)
		return 0;
	error_unavailable(err);
	return error_set(err, -ENOENT, "%s: %s", needed, dlerror());
}
