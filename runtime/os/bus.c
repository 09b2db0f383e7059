/* SPDX-License-Identifier: GPL-2.0-only */
#include "os/bus.h"
#include <signal.h>
#include <stdint.h>
#include <sys/mman.h>
#include <unistd.h>

struct guard {
	volatile uintptr_t from, to; /* from == to: unused */
	volatile sig_atomic_t failed;
};

/* A signal handler has no other place for its state. */
static struct guard guards[BUS_GUARDS];
static volatile uintptr_t page_size;

static struct guard *guard_of(uintptr_t at)
{
	for (int i = 0; i < BUS_GUARDS; i++)
		if (at >= guards[i].from && at < guards[i].to)
			return &guards[i];
	return NULL;
}

static void on_bus_error(int number, siginfo_t *info, void *context)
{
	uintptr_t at = (uintptr_t)info->si_addr;
	void *page = (void *)(at & ~(page_size - 1));
	struct guard *guard = guard_of(at);

	(void)context;
	if (guard)
		guard->failed = 1;
	if (!guard || mmap(page, page_size, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1,
			   0) == MAP_FAILED)
		signal(number, SIG_DFL); /* the instruction is repeated, and fails for good */
}

bool bus_guard(const void *at, size_t size)
{
	struct sigaction action = {.sa_sigaction = on_bus_error,
				   .sa_flags = SA_SIGINFO | SA_RESTART};

	page_size = sysconf(_SC_PAGESIZE);
	for (int i = 0; i < BUS_GUARDS; i++) {
		if (guards[i].from != guards[i].to)
			continue;
		guards[i].failed = 0;
		guards[i].from = (uintptr_t)at;
		guards[i].to = (uintptr_t)at + size;
		sigaction(SIGBUS, &action, NULL);
		return true;
	}
	return false;
}

void bus_release(const void *at)
{
	struct guard *guard = guard_of((uintptr_t)at);

	if (guard)
		guard->to = guard->from;
}

bool bus_failed(const void *at)
{
	const struct guard *guard = guard_of((uintptr_t)at);

	return guard && guard->failed;
}
