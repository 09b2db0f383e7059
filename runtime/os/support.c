/* SPDX-License-Identifier: GPL-2.0-only */
#include "os/support.h"
#include <errno.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
#include <linux/hw_breakpoint.h>
#include <linux/perf_event.h>

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
