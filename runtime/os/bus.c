/* SPDX-License-Identifier: GPL-2.0-only */
#include "os/bus.h"
#include <signal.h>
#include <stdint.h>
#include <sys/mman.h>
#include <unistd.h>

/* A signal handler has no other place for its state. */
static volatile uintptr_t from, to, page_size;
static volatile sig_atomic_t failed;

static void on_bus_error(int number, siginfo_t *info, void *context)
{
	uintptr_t at = (uintptr_t)info->si_addr;
	void *page = (void *)(at & ~(page_size - 1));

	(void)context;
	failed = 1;
	if (at < from || at >= to ||
	    mmap(page, page_size, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) ==
		    MAP_FAILED)
		signal(number, SIG_DFL); /* the instruction is repeated, and fails for good */
}

void bus_guard(const void *at, size_t size)
{
	struct sigaction action = {.sa_sigaction = on_bus_error,
				   .sa_flags = SA_SIGINFO | SA_RESTART};

	page_size = sysconf(_SC_PAGESIZE);
	from = (uintptr_t)at;
	to = at ? from + size : from;
	failed = 0;
	if (at)
		sigaction(SIGBUS, &action, NULL);
}

bool bus_failed(void)
{
	return failed;
}
