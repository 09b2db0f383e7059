// SPDX-License-Identifier: GPL-2.0-only
/* Sample filter: returning 0 drops the sample before it is recorded. The constants are set before
 * the program is loaded, so that the verifier removes the unused tests. */
#include <stdbool.h>
#include <linux/types.h>
#include <linux/bpf.h>
#include <linux/bpf_perf_event.h>
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>

/* The members of kernel structures that are read. libbpf looks up their offsets (CO-RE). */
#define KERNEL __attribute__((preserve_access_index))

struct rq {
	unsigned int nr_running; /* of all classes, including the running task */
} KERNEL;

struct cfs_rq {
	struct rq *rq;
} KERNEL;

struct sched_entity {
	struct cfs_rq *cfs_rq; /* only with CONFIG_FAIR_GROUP_SCHED */
} KERNEL;

struct thread_info {
	unsigned long flags;
} KERNEL;

struct task_struct {
	struct thread_info thread_info; /* only with CONFIG_THREAD_INFO_IN_TASK */
	struct sched_entity se;
	unsigned int policy;
	int prio;
} KERNEL;

enum { ANY = -1, NR_PRIOS = 140 };

const volatile __s32 irqs_disabled = ANY;
const volatile __s32 tif_need_resched = ANY;
const volatile __s32 sched_policy = ANY;
const volatile __u32 exclude_pid = 0;
const volatile __u32 nr_running_min = 0;
const volatile __u32 nr_running_max = 0xffffffff;
const volatile __u8 has_prio = 0;
const volatile __u8 prio[NR_PRIOS] = {};

extern int LINUX_KERNEL_VERSION __kconfig;

static __always_inline bool interrupts_off(const struct bpf_perf_event_data *ctx)
{
#if defined(__TARGET_ARCH_x86)
	return !(ctx->regs.eflags & 1 << 9); /* IF */
#elif defined(__TARGET_ARCH_arm64)
	return ctx->regs.pstate & 1 << 7; /* I, a mask */
#else
#error "where are interrupts disabled on this architecture?"
#endif
}

/* BTF does not contain the flag numbers. */
static __always_inline unsigned int need_resched_bit(void)
{
#if defined(__TARGET_ARCH_x86)
	/* Since 6.18 x86 uses the numbers of the generic thread_info flags. */
	return LINUX_KERNEL_VERSION >= (6 << 16 | 18 << 8) ? 4 : 3;
#else
	return 1;
#endif
}

static __always_inline bool prio_matches(const struct task_struct *task)
{
	__u32 number = BPF_CORE_READ(task, prio);

	return number < NR_PRIOS && prio[number];
}

static __always_inline bool nr_running_matches(const struct task_struct *task)
{
	__u32 n = BPF_CORE_READ(task, se.cfs_rq, rq, nr_running);

	return n >= nr_running_min && n <= nr_running_max;
}

SEC("perf_event")
int filter(struct bpf_perf_event_data *ctx)
{
	const struct task_struct *task = (void *)bpf_get_current_task();

	if (irqs_disabled != ANY && interrupts_off(ctx) != irqs_disabled)
		return 0;
	if (tif_need_resched != ANY &&
	    (BPF_CORE_READ(task, thread_info.flags) >> need_resched_bit() & 1) != tif_need_resched)
		return 0;
	if (sched_policy != ANY && BPF_CORE_READ(task, policy) != sched_policy)
		return 0;
	if (has_prio && !prio_matches(task))
		return 0;
	if (exclude_pid && bpf_get_current_pid_tgid() >> 32 == exclude_pid)
		return 0;
	return (nr_running_min == 0 && nr_running_max == 0xffffffff) || nr_running_matches(task);
}

char LICENSE[] SEC("license") = "GPL";
