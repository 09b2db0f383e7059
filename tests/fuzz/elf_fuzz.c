/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * For any file, its functions and USDT probes are found, or it is refused with a message.
 */
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "probes/elf.h"
#include "error.h"
#include "probes/usdt.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void find_functions(const char *path)
{
	static const char *const names[] = {"main", "_start", "probed", "mian"};
	struct error err = {0};
	struct elf_file *f = elf_file_open(path, &err);
	uint64_t offset;

	if (!f && !err.text[0])
		abort();
	for (size_t i = 0; f && i < sizeof(names) / sizeof(names[0]); i++) {
		err.text[0] = '\0';
		if (elf_file_function(f, names[i], i, &offset, &err) && !err.text[0])
			abort();
		elf_file_address(f, names[i], &offset);
	}
	elf_file_free(f);
}

static void fetch_arguments(const char *path)
{
	struct usdt *u = usdt_open(path, NULL);
	char fetch[128];

	for (uint32_t i = 0; u && i < usdt_count(u); i++)
		for (uint32_t arg = 0;
		     usdt_fetch_arg(u, i, arg, NULL, fetch, sizeof(fetch), NULL) != -ENOENT;)
			arg++;
	usdt_free(u);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	int fd = memfd_create("elf", MFD_CLOEXEC);
	char path[64];

	if (fd < 0 || write(fd, data, size) != (ssize_t)size)
		abort();
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	find_functions(path);
	fetch_arguments(path);
	close(fd);
	return 0;
}
