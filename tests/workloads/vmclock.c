/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * vmclock [-w] COUNT [JUMP [SOCKET]]: a virtual machine with one CPU, in real mode, that enables
 * its kvmclock, and COUNT times reads its TSC and writes it to two ports. Prints each TSC, and what
 * the kvmclock was then by the page that KVM shares with the guest, in ns. JUMP: before the last
 * COUNT / 2 of them sleeps two seconds, and sets the guest's TSC forward by 10^12 cycles; stays for
 * two more seconds at the end. SOCKET: sends each as an event small:out to a receiver that connects
 * there; one more, before that and before it waits, is only a reading of the clocks.
 */
#ifdef __x86_64__
#include <fcntl.h>
#include <linux/kvm.h>
#include <stdint.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include "go.h"
#include "vmstream.h"

enum { CODE = 0x1000, CLOCK = 0x2000, SIZE = 0x3000, LOW_PORT = 0x10, HIGH_PORT, MSR_TSC = 0x10 };

static const uint8_t code[] = {
	0x66, 0xb9, 0x01, 0x4d, 0x56,	  0x4b,	     /* mov ecx, MSR_KVM_SYSTEM_TIME_NEW */
	0x66, 0xb8, 0x01, 0x20, 0x00,	  0x00,	     /* mov eax, CLOCK | 1 */
	0x66, 0x31, 0xd2, 0x0f, 0x30,		     /* xor edx, edx; wrmsr */
	0x0f, 0x31, 0x66, 0xe7, LOW_PORT,	     /* again: rdtsc; out LOW_PORT, eax */
	0x66, 0x89, 0xd0, 0x66, 0xe7,	  HIGH_PORT, /* mov eax, edx; out HIGH_PORT, eax */
	0xeb, 0xf3,				     /* jmp again */
};

/* struct pvclock_vcpu_time_info */
struct clock {
	uint32_t version, pad;
	uint64_t tsc_timestamp, system_time;
	uint32_t mul;
	int8_t shift;
};

static void check(int ok, const char *what)
{
	if (ok)
		return;
	perror(what);
	exit(1);
}

static int machine(uint8_t *memory)
{
	int kvm = open("/dev/kvm", O_RDWR | O_CLOEXEC), vm, cpu;
	struct kvm_userspace_memory_region region = {.memory_size = SIZE,
						     .userspace_addr = (uintptr_t)memory};
	struct kvm_regs regs = {.rip = CODE, .rflags = 2};
	struct kvm_cpuid2 *cpuid = calloc(1, sizeof(*cpuid) + 256 * sizeof(cpuid->entries[0]));
	struct kvm_sregs sregs;

	check(kvm >= 0, "/dev/kvm");
	vm = ioctl(kvm, KVM_CREATE_VM, 0);
	check(vm >= 0, "KVM_CREATE_VM");
	memcpy(memory + CODE, code, sizeof(code));
	check(!ioctl(vm, KVM_SET_USER_MEMORY_REGION, &region), "KVM_SET_USER_MEMORY_REGION");
	cpu = ioctl(vm, KVM_CREATE_VCPU, 0);
	check(cpu >= 0 && cpuid, "KVM_CREATE_VCPU");
	cpuid->nent = 256;
	check(!ioctl(kvm, KVM_GET_SUPPORTED_CPUID, cpuid), "KVM_GET_SUPPORTED_CPUID");
	check(!ioctl(cpu, KVM_SET_CPUID2, cpuid), "KVM_SET_CPUID2");
	free(cpuid);
	check(!ioctl(cpu, KVM_GET_SREGS, &sregs), "KVM_GET_SREGS");
	sregs.cs.base = sregs.cs.selector = 0;
	check(!ioctl(cpu, KVM_SET_SREGS, &sregs), "KVM_SET_SREGS");
	check(!ioctl(cpu, KVM_SET_REGS, &regs), "KVM_SET_REGS");
	return cpu;
}

static void move_tsc(int cpu, uint64_t cycles)
{
	struct {
		struct kvm_msrs head;
		struct kvm_msr_entry tsc;
	} msrs = {.head.nmsrs = 1, .tsc.index = MSR_TSC};

	check(ioctl(cpu, KVM_GET_MSRS, &msrs) == 1, "KVM_GET_MSRS");
	msrs.tsc.data += cycles;
	check(ioctl(cpu, KVM_SET_MSRS, &msrs) == 1, "KVM_SET_MSRS");
}

static uint64_t clock_at(const struct clock *clock, uint64_t tsc)
{
	uint64_t cycles = tsc - clock->tsc_timestamp;

	cycles = clock->shift < 0 ? cycles >> -clock->shift : cycles << clock->shift;
	return clock->system_time + (uint64_t)((unsigned __int128)cycles * clock->mul >> 32);
}

/* Runs until the machine has read and written its TSC. */
static uint64_t read_tsc(int cpu, const struct kvm_run *run)
{
	uint64_t tsc = 0;

	for (;;) {
		uint32_t value;

		check(!ioctl(cpu, KVM_RUN, 0), "KVM_RUN");
		if (run->exit_reason != KVM_EXIT_IO)
			exit(1);
		memcpy(&value, (const uint8_t *)run + run->io.data_offset, sizeof(value));
		if (run->io.port == HIGH_PORT)
			return tsc | (uint64_t)value << 32;
		tsc = value;
	}
}

int main(int argc, char **argv)
{
	struct workload w = workload_args(argc, argv);
	const char *path = argc > optind + 2 ? argv[optind + 2] : NULL;
	uint8_t *memory =
		mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	const struct clock *clock = (const struct clock *)(memory + CLOCK);
	uint64_t *times = calloc(w.count, 2 * sizeof(*times));
	int cpu = machine(memory);
	struct kvm_run *run =
		mmap(NULL, sizeof(*run) + 4096, PROT_READ | PROT_WRITE, MAP_SHARED, cpu, 0);
	struct stream stream = {.fd = -1};

	check(run != MAP_FAILED && times, "mmap");
	prctl(PR_SET_NAME, "CPU 0/KVM");
	if (path) {
		uint64_t tsc = read_tsc(cpu, run);

		stream_open(&stream, path, tsc, clock_at(clock, tsc));
	}
	workload_wait(&w);
	for (long n = 0; n < w.count; n++) {
		uint64_t tsc = read_tsc(cpu, run);

		times[2 * n] = tsc;
		times[2 * n + 1] = clock_at(clock, tsc);
		if (path)
			stream_event(&stream, n, tsc, times[2 * n + 1]);
		if (w.rate && n + 1 == w.count / 2) {
			sleep(2);
			move_tsc(cpu, 1000000000000);
		}
	}
	if (path)
		stream_close(&stream);
	if (w.rate)
		sleep(2); /* KVM tells the new offset only while the machine exists */
	for (long i = 0; i < w.count; i++)
		printf("%lu %lu\n", (unsigned long)times[2 * i], (unsigned long)times[2 * i + 1]);
	return 0;
}
#else
int main(void)
{
	return 2;
}
#endif
