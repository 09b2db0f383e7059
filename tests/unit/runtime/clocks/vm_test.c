/* SPDX-License-Identifier: GPL-2.0-only */
/* Machines in a tree of plain files that stands for /proc and debugfs, and their TSC scales. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cmocka.h>
#include "clocks/tsc_scale.h"
#include "clocks/vm.h"
#include "error.h"

static char root[] = "/tmp/vm_test.XXXXXX";

#define DEBUGFS "sys/kernel/debug/kvm/"

/* Writes a file and the directories above it. "\n" stands for NUL in command lines. */
static void put(const char *path, const char *text)
{
	char full[256], *slash;
	FILE *f;

	snprintf(full, sizeof(full), "%s/%s", root, path);
	for (slash = full + 1; (slash = strchr(slash, '/')); slash++) {
		*slash = 0;
		mkdir(full, 0700);
		*slash = '/';
	}
	f = fopen(full, "w");
	assert_non_null(f);
	for (; *text; text++)
		fputc(*text == '\n' && strstr(path, "cmdline") ? 0 : *text, f);
	fclose(f);
}

static void put_link(const char *path, const char *target)
{
	char full[256];

	put(path, "");
	snprintf(full, sizeof(full), "%s/%s", root, path);
	assert_false(unlink(full) || symlink(target, full));
}

static int set_up(void **state)
{
	(void)state;
	if (!mkdtemp(root))
		return -1;
	/* libvirt's QEMU with KVM, two virtual CPUs, and a thread of its own that made the machine
	 */
	put("proc/100/cmdline",
	    "/usr/bin/qemu-system-x86_64\n-name\nguest=web1,debug-threads=on\n-uuid\n"
	    "A131F078-68c7-4fd1-a784-d8cfea2b5b25\n");
	put("proc/100/comm", "qemu-system-x86\n");
	put_link("proc/100/fd/4", "anon_inode:[eventfd]");
	put_link("proc/100/fd/11", "anon_inode:kvm-vm");
	put_link("proc/100/fd/12", "anon_inode:kvm-vcpu:0");
	put_link("proc/100/fd/13", "anon_inode:kvm-vcpu:1");
	put("proc/100/task/100/comm", "qemu-system-x86\n");
	put("proc/100/task/101/comm", "CPU 0/KVM\n");
	put("proc/100/task/102/comm", "CPU 1/KVM\n");
	put(DEBUGFS "101-11/vcpu0/tsc-offset", "-1000\n");
	put(DEBUGFS "101-11/vcpu1/tsc-offset", "-1010\n");
	put(DEBUGFS "101-99/vcpu0/tsc-offset", "5\n");
	put(DEBUGFS "101-11/vcpu0/tsc-scaling-ratio", "281474976710656\n");
	put(DEBUGFS "101-11/vcpu0/tsc-scaling-ratio-frac-bits", "48\n");
	/* Firecracker, whose threads are only known by debugfs */
	put("proc/200/cmdline", "/firecracker\n--id\nf00\n");
	put("proc/200/comm", "firecracker\n");
	put_link("proc/200/fd/7", "anon_inode:kvm-vm");
	put_link("proc/200/fd/8", "anon_inode:kvm-vcpu:0");
	put("proc/200/task/201/comm", "worker\n");
	put(DEBUGFS "200-7/vcpu0/pid", "201\n");
	put(DEBUGFS "200-7/vcpu0/tsc-offset", "77\n");
	/* QEMU without KVM */
	put("proc/300/cmdline", "qemu-system-aarch64\n-name\nweb2\n-smbios\n"
				"type=1,uuid=b131f078-68c7-4fd1-a784-d8cfea2b5b25,serial=1\n");
	put("proc/300/comm", "qemu-system-aar\n");
	put("proc/300/task/300/comm", "qemu-system-aar\n");
	put("proc/300/task/302/comm", "CPU 3/TCG\n");
	/* ... with one thread for all virtual CPUs */
	put("proc/310/cmdline", "qemu-system-x86_64\n-name\nlab,debug-threads=on\n");
	put("proc/310/task/310/comm", "qemu-system-x86\n");
	put("proc/310/task/312/comm", "ALL CPUs/TCG\n");
	/* two of one name, a program of one's own, and what is no machine */
	put("proc/400/cmdline", "qemu-system-x86_64\n-name\ntwin\n");
	put("proc/401/cmdline", "qemu-system-x86_64\n-name\ntwin\n");
	put("proc/500/cmdline", "./own\n");
	put("proc/500/comm", "own\n");
	put_link("proc/500/fd/3", "anon_inode:kvm-vm");
	put("proc/600/cmdline", "bash\n-name\nweb1\n");
	put("proc/600/comm", "bash\n");
	put("proc/700/cmdline", "");
	put("proc/uptime", "1 1\n");
	return 0;
}

static int tear_down(void **state)
{
	char command[64];

	(void)state;
	snprintf(command, sizeof(command), "rm -rf %s", root);
	return system(command);
}

static void check_found(const char *which, int32_t pid)
{
	struct error err = {0};
	struct vm *vm = vm_find(root, which, &err);

	assert_string_equal(err.text, "");
	assert_non_null(vm);
	assert_int_equal(vm->pid, pid);
	vm_free(vm);
}

static void test_by_pid_name_and_uuid(void **state)
{
	(void)state;
	check_found("100", 100);
	check_found("web1", 100);
	check_found("a131f078-68c7-4fd1-a784-d8cfea2b5b25", 100);
	check_found("A131F078-68C7-4FD1-A784-D8CFEA2B5B25", 100);
	check_found("f00", 200);
	check_found("web2", 300);
	check_found("b131f078-68c7-4fd1-a784-d8cfea2b5b25", 300);
	check_found("401", 401);
	check_found("own", 500);
}

static void test_unknown_machines(void **state)
{
	struct error err = {0};

	(void)state;
	assert_null(vm_find(root, "web3", &err));
	assert_non_null(strstr(err.text, "no virtual machine 'web3'; there are "));
	assert_non_null(strstr(err.text, "web1 (pid 100, a131f078-68c7-4fd1-a784-d8cfea2b5b25)"));
	assert_non_null(strstr(err.text, "f00 (pid 200)"));
	assert_null(strstr(err.text, "600"));
	assert_null(vm_find(root, "600", &err)); /* a shell */
	assert_null(vm_find(root, "", &err));
	assert_null(vm_find(root, "twin", &err));
	assert_non_null(strstr(err.text, "several virtual machines are 'twin', so name the pid: "));
	assert_non_null(strstr(err.text, "twin (pid 401)"));
}

static void test_threads_of_virtual_cpus(void **state)
{
	struct vm *vm = vm_find(root, "web1", NULL);

	(void)state;
	assert_int_equal(vm->nr_vcpus, 2);
	assert_int_equal(vm_vcpu_tid(vm, 0), 101);
	assert_int_equal(vm_vcpu_tid(vm, 1), 102);
	assert_int_equal(vm_vcpu_tid(vm, 2), -1);
	vm_free(vm);
	vm = vm_find(root, "f00", NULL);
	assert_int_equal(vm->nr_vcpus, 1);
	assert_int_equal(vm_vcpu_tid(vm, 0), 201);
	vm_free(vm);
	vm = vm_find(root, "web2", NULL);
	assert_int_equal(vm->nr_vcpus, 4);
	assert_int_equal(vm_vcpu_tid(vm, 0), -1);
	assert_int_equal(vm_vcpu_tid(vm, 3), 302);
	vm_free(vm);
	vm = vm_find(root, "lab", NULL);
	assert_int_equal(vm_vcpu_tid(vm, 0), 312);
	assert_int_equal(vm_vcpu_tid(vm, 3), 312);
	vm_free(vm);
	vm = vm_find(root, "own", NULL);
	assert_int_equal(vm_vcpu_tid(vm, 0), -1);
	vm_free(vm);
}

static int read_scale(const char *which, struct tsc_scale *scale, struct error *err)
{
	struct vm *vm = vm_find(root, which, err);
	int code = tsc_scale_read(vm, scale, err);

	vm_free(vm);
	return code;
}

static void test_scales_in_debugfs(void **state)
{
	struct tsc_scale scale;
	struct error err = {0};

	(void)state;
	assert_int_equal(read_scale("web1", &scale, &err), 0);
	assert_true(scale.offset == -1000ull);
	assert_true(scale.ratio == 1ull << 48);
	assert_int_equal(scale.frac_bits, 48);
	assert_int_equal(scale.spread, 10);
	assert_true(tsc_scale_to_guest(&scale, 5000) == 4000);
	assert_int_equal(read_scale("f00", &scale, &err), 0); /* no files about scaling */
	assert_true(tsc_scale_to_guest(&scale, 5000) == 5077);
	assert_true(tsc_scale_to_host(&scale, 5077) == 5000);
	put(DEBUGFS "200-7/vcpu0/tsc-offset", "99\n"); /* it was set anew */
	assert_int_equal(read_scale("f00", &scale, &err), 0);
	assert_true(tsc_scale_to_guest(&scale, 5000) == 5099);
	assert_string_equal(err.text, "");
}

static void test_no_scale(void **state)
{
	struct tsc_scale scale;
	struct error err = {0};

	(void)state;
	assert_true(read_scale("web2", &scale, &err) < 0);
	assert_string_equal(err.text, "web2 (pid 300) does not use KVM");
	assert_true(read_scale("own", &scale, &err) < 0);
	assert_string_equal(err.text, "/sys/kernel/debug/kvm has no directory of own (pid 500)");
}

/* Ratios as AMD (32 bits) and Intel (48 bits) have them: the guest's rate is 2.0 of 2.6 GHz, and
 * 3.1 GHz. */
static void test_scaling(void **state)
{
	static const struct {
		double rate;
		uint32_t bits;
	} cases[] = {{2.0 / 2.6, 32}, {2.0 / 2.6, 48}, {3.1 / 2.6, 32}, {3.1 / 2.6, 48}, {1, 32}};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct tsc_scale scale = {
			.offset = -7000000000000ull,
			.ratio = (uint64_t)(cases[i].rate * (1ull << cases[i].bits)),
			.frac_bits = cases[i].bits};

		for (uint64_t host = 1; host < 1ull << 62; host = host * 3 + 1) {
			uint64_t guest = tsc_scale_to_guest(&scale, host);
			uint64_t back = tsc_scale_to_host(&scale, guest);

			/* Several host times may have one guest time. */
			assert_true(tsc_scale_to_guest(&scale, back) == guest);
			assert_true((int64_t)(host - back) >= 0 && host - back <= 2);
			if (host < 1ull << 50) {
				double exact =
					(double)host * scale.ratio / (1ull << scale.frac_bits);

				assert_true(guest - scale.offset <= exact + 1 &&
					    guest - scale.offset >= exact - 1);
			}
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_by_pid_name_and_uuid),
		cmocka_unit_test(test_unknown_machines),
		cmocka_unit_test(test_threads_of_virtual_cpus),
		cmocka_unit_test(test_scales_in_debugfs),
		cmocka_unit_test(test_no_scale),
		cmocka_unit_test(test_scaling),
	};

	return cmocka_run_group_tests_name("vm", tests, set_up, tear_down);
}
