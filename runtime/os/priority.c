/* SPDX-License-Identifier: GPL-2.0-only */
#include "os/priority.h"
#include <errno.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <linux/sched.h>
#include <linux/sched/types.h>
#include "error.h"

enum { SLICE = 100000 }; /* ns, the smallest slice the kernel grants (fair.c since 6.12) */

static int get(struct sched_attr *attr)
{
	return syscall(SYS_sched_getattr, 0, attr, sizeof(*attr), 0);
}

static int set(struct sched_attr *attr)
{
	attr->size = sizeof(*attr);
	attr->sched_flags = SCHED_FLAG_RESET_ON_FORK;
	return syscall(SYS_sched_setattr, 0, attr, 0);
}

void priority_hurry(void)
{
	struct sched_attr attr = {0};

	if (get(&attr) || attr.sched_policy != SCHED_NORMAL)
		return;
	attr.sched_runtime = SLICE;
	set(&attr);
}

int priority_realtime(uint32_t priority, struct error *err)
{
	struct sched_attr attr = {.sched_policy = SCHED_FIFO, .sched_priority = priority};

	if (!set(&attr))
		return 0;
	if (errno == EPERM)
		error_unavailable(err);
	return error_set(err, -errno, "--realtime %u: %s%s", priority, strerror(errno),
			 errno == EPERM ? ": it needs root or CAP_SYS_NICE" : "");
}
