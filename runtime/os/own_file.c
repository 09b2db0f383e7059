/* SPDX-License-Identifier: GPL-2.0-only */
#include "os/own_file.h"
#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static bool is_planted(const char *path)
{
	char *copy = strdup(path);
	struct stat link, folder;
	bool is_known = copy && !lstat(path, &link) && !stat(dirname(copy), &folder);

	free(copy);
	return is_known &&
	       (S_ISLNK(link.st_mode) && link.st_uid != geteuid() && link.st_uid != folder.st_uid &&
		folder.st_mode & S_ISVTX && folder.st_mode & S_IWOTH);
}

int32_t own_file_open(const char *path, int32_t flags, uint32_t mode)
{
	int fd = open(path, flags | O_NOFOLLOW, mode), code = errno;

	if (fd >= 0)
		return fd;
	if (is_planted(path)) /* with fs.protected_regular the error is EACCES */
		return -ELOOP;
	if (code != ELOOP)
		return -code;
	fd = open(path, flags, mode); /* nobody else can have replaced this link */
	return fd < 0 ? -errno : fd;
}

int32_t own_file_check(const char *path)
{
	return is_planted(path) ? -ELOOP : 0;
}
