/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * vmexits [-w] COUNT: a virtual machine with one CPU, in real mode, that writes to a port COUNT
 * times and then halts.
 */
#ifdef __x86_64__
#include <fcntl.h>
#include <linux/kvm.h>
#include <stdint.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include "go.h"

enum { CODE = 0x1000, SIZE = 0x2000 };

/* mov cx, COUNT; again: out 0x10, al; loop again; hlt */
static const uint8_t code[] = {0xb9, 0, 0, 0xe6, 0x10, 0xe2, 0xfc, 0xf4};

static void check(int ok, const char *what)
{
	if (ok)
		return;
	perror(what);
	exit(1);
}

static int machine(long count)
{
	int kvm = open("/dev/kvm", O_RDWR | O_CLOEXEC), vm, cpu;
	uint8_t *memory =
		mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	struct kvm_userspace_memory_region region = {.memory_size = SIZE,
						     .userspace_addr = (uintptr_t)memory};
	struct kvm_regs regs = {.rip = CODE, .rflags = 2};
	struct kvm_sregs sregs;

	check(kvm >= 0, "/dev/kvm");
	vm = ioctl(kvm, KVM_CREATE_VM, 0);
	check(vm >= 0, "KVM_CREATE_VM");
	memcpy(memory + CODE, code, sizeof(code));
	memory[CODE + 1] = count;
	memory[CODE + 2] = count >> 8;
	check(!ioctl(vm, KVM_SET_USER_MEMORY_REGION, &region), "KVM_SET_USER_MEMORY_REGION");
	cpu = ioctl(vm, KVM_CREATE_VCPU, 0);
	check(cpu >= 0, "KVM_CREATE_VCPU");
	check(!ioctl(cpu, KVM_GET_SREGS, &sregs), "KVM_GET_SREGS");
	sregs.cs.base = sregs.cs.selector = 0;
	check(!ioctl(cpu, KVM_SET_SREGS, &sregs), "KVM_SET_SREGS");
	check(!ioctl(cpu, KVM_SET_REGS, &regs), "KVM_SET_REGS");
	return cpu;
}

int main(int argc, char **argv)
{
	struct workload w = workload_args(argc, argv);
	int cpu = machine(w.count);
	struct kvm_run *run = mmap(NULL, sizeof(*run), PROT_READ | PROT_WRITE, MAP_SHARED, cpu, 0);
	long writes = 0;

	check(run != MAP_FAILED, "mmap");
	workload_wait(&w);
	do {
		check(!ioctl(cpu, KVM_RUN, 0), "KVM_RUN");
		writes += run->exit_reason == KVM_EXIT_IO;
	} while (run->exit_reason == KVM_EXIT_IO);
	return run->exit_reason == KVM_EXIT_HLT && writes == w.count ? 0 : 1;
}
#else
int main(void)
{
	return 2;
}
#endif
