/* SPDX-License-Identifier: GPL-2.0-only */
#include "process/output.h"
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>
#include "process/signals.h"

enum { WAIT_MS = 100 };

int output_open(int fd)
{
	char path[32];
	struct stat st;
	int own;

	if (fstat(fd, &st) || !(S_ISFIFO(st.st_mode) || isatty(fd)))
		return fd;
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	own = open(path, O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	return own < 0 ? fd : own;
}

int64_t output_write(int fd, const void *bytes, size_t size)
{
	struct pollfd writable = {.fd = fd, .events = POLLOUT};
	ssize_t n = write(fd, bytes, size);

	if (n >= 0)
		return n;
	if (errno != EAGAIN)
		return errno == EINTR ? -EAGAIN : -errno;
	signals_wait_for_others(true);
	poll(&writable, 1, WAIT_MS);
	signals_wait_for_others(false);
	return -EAGAIN;
}
