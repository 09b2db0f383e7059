/* SPDX-License-Identifier: GPL-2.0-only */
#include "os/inode_path.h"
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

enum { INODE32_AND_GENERATION = 1 }; /* FILEID_INO32_GEN of the kernel; generation 0 is any */

static ssize_t name_of(int fd, char *path, uint64_t size)
{
	char link[32];
	ssize_t n;

	snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	n = readlink(link, path, size);
	return n < 0 ? -errno : n;
}

int32_t inode_path(const char *mount, uint32_t inode, char *path, uint64_t size)
{
	union {
		struct file_handle head;
		uint32_t words[4];
	} handle = {.words = {2 * sizeof(uint32_t), INODE32_AND_GENERATION, inode, 0}};
	int folder = open(mount, O_RDONLY | O_DIRECTORY | O_CLOEXEC), fd;
	struct stat st, root;
	ssize_t n;

	if (folder < 0)
		return -errno;
	fd = open_by_handle_at(folder, &handle.head, O_PATH | O_CLOEXEC);
	n = fd < 0 ? -errno : name_of(fd, path, size);
	/* A file whose folders are not in memory has the path of the root. */
	if (n == 1 && (fstat(fd, &st) || stat("/", &root) || st.st_ino != root.st_ino))
		n = -ENOENT;
	if (fd >= 0)
		close(fd);
	close(folder);
	return (int32_t)n;
}
