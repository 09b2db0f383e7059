/* SPDX-License-Identifier: GPL-2.0-only */
#include "os/support.h"
#include <errno.h>
#include <sched.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
#include <linux/hw_breakpoint.h>
#include <linux/perf_event.h>
#include "os/clock.h"

int support_open(uint32_t type, uint64_t config, uint32_t with)
{
	struct perf_event_attr attr = {.type = type,
				       .size = sizeof(attr),
				       .config = config,
				       .sample_period = 1000000,
				       .disabled = 1,
				       .exclude_kernel = !(with & SUPPORT_SYSTEM)};
	int fd;

	if (type == PERF_TYPE_BREAKPOINT) {
		attr.bp_type = HW_BREAKPOINT_W;
		attr.bp_addr = (uintptr_t)&attr;
		attr.bp_len = HW_BREAKPOINT_LEN_4;
	}
	if (with & SUPPORT_CLOCK) {
		attr.use_clockid = 1;
		attr.clockid = CLOCK_MONOTONIC;
	}
	if (with & SUPPORT_LOST)
		attr.read_format = PERF_FORMAT_LOST;
	fd = syscall(SYS_perf_event_open, &attr, with & SUPPORT_SYSTEM ? -1 : 0,
		     with & SUPPORT_SYSTEM ? 0 : -1, -1, PERF_FLAG_FD_CLOEXEC);
	if (fd < 0)
		return -errno;
	close(fd);
	return 0;
}

void support_wake_cpus(uint32_t ms)
{
	uint64_t end = clock_monotonic() + ms * 1000000ull;
	struct timespec period = {.tv_nsec = 1000000};
	cpu_set_t before, one;

	if (sched_getaffinity(0, sizeof(before), &before))
		return;
	for (int cpu = 0; clock_monotonic() < end; cpu = (cpu + 1) % CPU_SETSIZE) {
		if (!CPU_ISSET(cpu, &before))
			continue;
		CPU_ZERO(&one);
		CPU_SET(cpu, &one);
		sched_setaffinity(0, sizeof(one), &one);
		nanosleep(&period, NULL);
	}
	sched_setaffinity(0, sizeof(before), &before);
}
