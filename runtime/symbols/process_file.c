/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A symbolic link below the root of another process must not lead out of it, neither to a wrong
 * file nor to one that the process may not see. openat2() follows links as the process would.
 */
#include "symbols/process_file.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/magic.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <unistd.h>

static int find_below(const char *root, const char *path)
{
	struct open_how how = {.flags = O_PATH | O_CLOEXEC,
			       .resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS};
	int dir = open(root, O_PATH | O_DIRECTORY | O_CLOEXEC), fd, code;

	if (dir < 0)
		return -errno;
	fd = (int)syscall(SYS_openat2, dir, path, &how, sizeof(how));
	code = errno;
	/* Before Linux 5.6 there is no way to follow links as the process would. */
	if (fd < 0 && code == ENOSYS) {
		fd = openat(dir, path + strspn(path, "/"), O_PATH | O_NOFOLLOW | O_CLOEXEC);
		code = errno;
	}
	close(dir);
	return fd < 0 ? -code : fd;
}

/* The path may come from another machine. Opening a device can do something, so only what is a
 * regular file is opened. */
int process_file_open(const char *root, const char *path)
{
	int found = root ? find_below(root, path) : open(path, O_PATH | O_CLOEXEC), fd, code;
	char self[32];
	struct stat st;

	if (found < 0)
		return root ? found : -errno;
	if (fstat(found, &st) || !S_ISREG(st.st_mode)) {
		close(found);
		return -EINVAL;
	}
	snprintf(self, sizeof(self), "/proc/self/fd/%d", found);
	/* Files of tracefs block readers. */
	fd = open(self, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	code = errno;
	close(found);
	return fd < 0 ? -code : fd;
}

/* Overlays report other inodes than those they map. */
static bool is_same(int fd, uint64_t inode)
{
	struct statfs fs;
	struct stat st;

	if (!inode || fstat(fd, &st) || st.st_ino == inode)
		return true;
	return fstatfs(fd, &fs) == 0 && fs.f_type == OVERLAYFS_SUPER_MAGIC;
}

int process_file_open_mapped(int32_t pid, uint64_t start, uint64_t end, uint64_t inode)
{
	char path[64];
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/map_files/%llx-%llx", pid, (unsigned long long)start,
		 (unsigned long long)end);
	fd = process_file_open(NULL, path);
	if (fd < 0 || is_same(fd, inode))
		return fd;
	close(fd);
	return -ESTALE;
}

int process_file_path_len(const char *path)
{
	static const char deleted[] = " (deleted)";
	size_t len = strlen(path), cut = sizeof(deleted) - 1;

	if (len > cut && strcmp(path + len - cut, deleted) == 0)
		len -= cut;
	return (int)len;
}

int process_file_open_same(int32_t pid, const char *name, uint64_t inode)
{
	char path[PATH_MAX], root[32];
	int fd = -ENOENT;

	if (snprintf(path, sizeof(path), "%.*s", process_file_path_len(name), name) >= PATH_MAX)
		return -ENAMETOOLONG;
	snprintf(root, sizeof(root), "/proc/%d/root", pid);
	for (int own = !pid; own < 2; own++) {
		fd = process_file_open(own ? NULL : root, path);
		if (fd >= 0 && is_same(fd, inode))
			return fd;
		if (fd >= 0)
			close(fd);
		fd = fd >= 0 ? -ESTALE : fd;
	}
	return fd;
}
