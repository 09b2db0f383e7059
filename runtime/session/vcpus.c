/* SPDX-License-Identifier: GPL-2.0-only */
#include "session/vcpus.h"
#include <sched.h>
#include <stdlib.h>
#include "clocks/vm.h"
#include "event.h"
#include "os/cpus.h"

struct vcpus {
	int32_t pid;
	uint32_t n;
	struct {
		int32_t tid, cpu;
	} at[]; /* the last one, at[n], is that of CPUs which the machine is not known to have */
};

/* Returns the only CPU on which a thread may run; -1: there are several. */
static int32_t pinned_cpu(int32_t tid)
{
	size_t size = CPU_ALLOC_SIZE(CPUS_MAX);
	cpu_set_t *set = CPU_ALLOC(CPUS_MAX);
	int32_t cpu = -1;

	if (set && tid > 0 && !sched_getaffinity(tid, size, set) && CPU_COUNT_S(size, set) == 1)
		while (!CPU_ISSET_S(++cpu, size, set))
			;
	CPU_FREE(set);
	return cpu;
}

struct vcpus *vcpus_new(const struct vm *vm)
{
	struct vcpus *v = malloc(sizeof(*v) + (vm->nr_vcpus + 1) * sizeof(v->at[0]));

	if (!v)
		return NULL;
	v->pid = vm->pid;
	v->n = vm->nr_vcpus;
	for (uint32_t i = 0; i <= v->n; i++) {
		v->at[i].tid = vm_vcpu_tid(vm, i);
		v->at[i].cpu = pinned_cpu(v->at[i].tid);
	}
	return v;
}

int32_t vcpus_pid(const struct vcpus *v)
{
	return v->pid;
}

void vcpus_free(struct vcpus *v)
{
	free(v);
}

void vcpus_apply(const struct vcpus *v, struct event *ev, int n)
{
	for (int i = 0; i < n; i++) {
		uint32_t vcpu = ev[i].cpu;

		ev[i].pid = v->pid;
		if (vcpu > v->n)
			vcpu = v->n;
		ev[i].tid = v->at[vcpu].tid;
		ev[i].cpu = v->at[vcpu].cpu;
	}
}
