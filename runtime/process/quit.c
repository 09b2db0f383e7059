/* SPDX-License-Identifier: GPL-2.0-only */
#include "process/quit.h"
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <termios.h>
#include <unistd.h>
#include "process/self_maps.h"

enum { MAX_FILES = 65536 }; /* that are closed one by one where the kernel has no close_range() */

/* A handler can reach nothing else. */
static void (*volatile cleanup)(void *arg);
static void *volatile cleanup_arg;
static const struct termios *volatile terminal;
static const char *volatile terminal_text;

void quit_set_cleanup(void (*new_cleanup)(void *arg), void *arg)
{
	cleanup = NULL;
	cleanup_arg = arg;
	cleanup = new_cleanup;
}

void quit_set_terminal(const void *termios, const char *text)
{
	terminal_text = text;
	terminal = termios;
}

/* A ring keeps its event, and that its probe, also when the descriptor is closed. */
static int unmap_ring(const struct self_map *map, void *arg)
{
	(void)arg;
	if (strncmp(map->path, "anon_inode:[perf_event]", 23))
		return 0;
	munmap((void *)map->from, map->to - map->from);
	return 1; /* the list has changed */
}

static void close_files(void)
{
#ifdef SYS_close_range
	if (!syscall(SYS_close_range, STDERR_FILENO + 1, ~0u, 0))
		return;
#endif
	for (int fd = STDERR_FILENO + 1; fd < MAX_FILES; fd++)
		close(fd);
}

void quit_clean(void)
{
	if (terminal) {
		tcsetattr(STDIN_FILENO, TCSANOW, (const struct termios *)terminal);
		if (write(STDOUT_FILENO, terminal_text, strlen(terminal_text)) < 0)
			return;
	}
	while (self_maps_each(unmap_ring, NULL))
		;
	close_files();
	if (cleanup)
		cleanup(cleanup_arg);
}
