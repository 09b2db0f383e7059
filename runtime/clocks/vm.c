/* SPDX-License-Identifier: GPL-2.0-only */
#include "clocks/vm.h"
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "error.h"

static const char KVM_DEBUGFS[] = "/sys/kernel/debug/kvm";

enum { UUID_SIZE = 36 };

/* ---- one process ---- */

/* Reads a small file, with NUL at its end. Returns its size; 0: it cannot be read. */
static size_t read_file(int dir, const char *path, char *buf, size_t size)
{
	int fd = openat(dir, path, O_RDONLY | O_CLOEXEC);
	size_t n = 0;
	ssize_t got;

	while (fd >= 0 && n < size - 1 && (got = read(fd, buf + n, size - 1 - n)) > 0)
		n += got;
	if (fd >= 0)
		close(fd);
	buf[n] = 0;
	return n;
}

static bool is_uuid(const char *text)
{
	for (int i = 0; i < UUID_SIZE; i++) {
		bool dash = i == 8 || i == 13 || i == 18 || i == 23;

		if (dash ? text[i] != '-' : !isxdigit((unsigned char)text[i]))
			return false;
	}
	return !isalnum((unsigned char)text[UUID_SIZE]);
}

/* Copies up to the next comma: "guest=web1,debug-threads=on". */
static void set_name(struct vm *vm, const char *value)
{
	if (!strncmp(value, "guest=", 6))
		value += 6;
	snprintf(vm->name, sizeof(vm->name), "%.*s", (int)strcspn(value, ","), value);
}

static void set_uuid(struct vm *vm, const char *value)
{
	if (!is_uuid(value))
		return;
	for (int i = 0; i < UUID_SIZE; i++)
		vm->uuid[i] = tolower((unsigned char)value[i]);
	vm->uuid[UUID_SIZE] = 0;
}

/* QEMU: -name guest=NAME,... -uuid UUID, or -smbios type=1,uuid=UUID. Firecracker: --id NAME. Cloud
 * Hypervisor: --platform uuid=UUID. */
static void read_command_line(struct vm *vm, char *args, size_t size)
{
	const char *option = "";

	for (char *arg = args; arg < args + size; arg += strlen(arg) + 1) {
		char *uuid = strstr(arg, "uuid=");

		if (!strcmp(option, "-name") || !strcmp(option, "--name") ||
		    !strcmp(option, "--id"))
			set_name(vm, arg);
		else if (!strcmp(option, "-uuid") || !strcmp(option, "--uuid"))
			set_uuid(vm, arg);
		else if (uuid && (!strcmp(option, "-smbios") || !strcmp(option, "--platform")))
			set_uuid(vm, uuid + 5);
		option = arg;
	}
}

/* Finds the descriptor of the machine, and counts those of virtual CPUs, whose links also tell
 * their numbers. */
static void scan_descriptors(struct vm *vm, int proc)
{
	int fd = openat(proc, "fd", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *dir = fd >= 0 ? fdopendir(fd) : NULL;
	struct dirent *entry;
	unsigned vcpu;

	if (!dir && fd >= 0)
		close(fd);
	while (dir && (entry = readdir(dir))) {
		char link[64];
		ssize_t n = readlinkat(fd, entry->d_name, link, sizeof(link) - 1);

		if (n < 0)
			continue;
		link[n] = 0;
		if (!strcmp(link, "anon_inode:kvm-vm") && vm->fd < 0)
			vm->fd = atoi(entry->d_name);
		else if (sscanf(link, "anon_inode:kvm-vcpu:%u", &vcpu) == 1 &&
			 vcpu < VM_VCPUS_MAX && vcpu >= vm->nr_vcpus)
			vm->nr_vcpus = vcpu + 1;
	}
	if (dir)
		closedir(dir);
}

static bool set_vcpu(struct vm *vm, uint32_t vcpu, int32_t tid)
{
	if (vcpu >= VM_VCPUS_MAX)
		return true;
	if (vcpu >= vm->nr_vcpus || !vm->vcpu_tids) {
		uint32_t n = vcpu >= vm->nr_vcpus ? vcpu + 1 : vm->nr_vcpus;
		uint32_t known = vm->vcpu_tids ? vm->nr_vcpus : 0;
		int32_t *tids = realloc(vm->vcpu_tids, n * sizeof(*tids));

		if (!tids)
			return false;
		for (uint32_t i = known; i < n; i++)
			tids[i] = -1;
		vm->vcpu_tids = tids;
		vm->nr_vcpus = n;
	}
	if (tid >= 0)
		vm->vcpu_tids[vcpu] = tid;
	return true;
}

/* Which virtual CPU a thread runs, by the names that QEMU (debug-threads=on), Firecracker, Cloud
 * Hypervisor, crosvm and kvmtool give their threads; -1: none. */
static int vcpu_of_name(const char *comm)
{
	static const char *const forms[] = {"CPU %u/KVM", "CPU %u/TCG",	   "fc_vcpu %u",
					    "vcpu%u",	  "crosvm_vcpu%u", "kvm-vcpu-%u"};
	unsigned vcpu;

	for (size_t i = 0; i < sizeof(forms) / sizeof(*forms); i++)
		if (sscanf(comm, forms[i], &vcpu) == 1 && vcpu < VM_VCPUS_MAX)
			return vcpu;
	return -1;
}

static bool scan_threads(struct vm *vm, int proc)
{
	int fd = openat(proc, "task", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *dir = fd >= 0 ? fdopendir(fd) : NULL;
	struct dirent *entry;
	bool ok = true;

	if (!dir && fd >= 0)
		close(fd);
	while (dir && ok && (entry = readdir(dir))) {
		char path[300], comm[64];
		int vcpu = -1;

		snprintf(path, sizeof(path), "%s/comm", entry->d_name);
		if (read_file(fd, path, comm, sizeof(comm)))
			vcpu = vcpu_of_name(comm);
		if (!strcmp(comm, "ALL CPUs/TCG\n")) /* QEMU's -accel tcg,thread=single */
			vm->shared_tid = atoi(entry->d_name);
		if (vcpu >= 0)
			ok = set_vcpu(vm, vcpu, atoi(entry->d_name));
	}
	if (dir)
		closedir(dir);
	return ok;
}

/* Since Linux 6.0 debugfs knows the threads, whatever their names. */
static bool scan_debugfs(struct vm *vm)
{
	int dir = vm_open_debugfs(vm, NULL);

	for (uint32_t i = 0; dir >= 0 && i < vm->nr_vcpus; i++) {
		char path[32], pid[32];

		snprintf(path, sizeof(path), "vcpu%u/pid", i);
		if (read_file(dir, path, pid, sizeof(pid)) && atoi(pid) > 0 &&
		    !set_vcpu(vm, i, atoi(pid))) {
			close(dir);
			return false;
		}
	}
	if (dir >= 0)
		close(dir);
	return true;
}

/* Fills in what identifies the machine. False: the process is none. */
static bool read_machine(struct vm *vm, int proc)
{
	char args[65536];
	size_t size;

	size = read_file(proc, "cmdline", args, sizeof(args));
	if (!size) /* a kernel thread */
		return false;
	scan_descriptors(vm, proc);
	if (vm->fd < 0) {
		const char *slash = strrchr(args, '/');

		if (strncmp(slash ? slash + 1 : args, "qemu-system", 11))
			return false;
	}
	if (read_file(proc, "comm", vm->name, sizeof(vm->name)))
		vm->name[strcspn(vm->name, "\n")] = 0;
	read_command_line(vm, args, size);
	return true;
}

/* ---- all of them ---- */

/* Adds "NAME (pid N, UUID)" to a list in err. */
static void list_machine(char *list, size_t size, const struct vm *vm)
{
	size_t n = strlen(list);

	snprintf(list + n, size - n, "%s%s (pid %d%s%s)", n ? ", " : "", vm->name, vm->pid,
		 vm->uuid[0] ? ", " : "", vm->uuid);
}

static bool is_meant(const struct vm *vm, const char *which)
{
	char *end;
	long pid = strtol(which, &end, 10);

	return !strcmp(vm->name, which) || (vm->uuid[0] && !strcasecmp(vm->uuid, which)) ||
	       (*which && !*end && pid == vm->pid);
}

/* Fills in the only machine that is meant. */
static int search(struct vm *found, const char *which, struct error *err)
{
	char all[900] = "", meant[900] = "", path[80];
	struct dirent *entry;
	struct vm vm, meant_vm;
	DIR *dir;
	int n = 0;

	snprintf(path, sizeof(path), "%s/proc", found->root);
	dir = opendir(path);
	if (!dir)
		return error_set(err, -errno, "%s: %m", path);
	while ((entry = readdir(dir))) {
		int proc;

		if (!isdigit((unsigned char)entry->d_name[0]))
			continue;
		proc = openat(dirfd(dir), entry->d_name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		if (proc < 0) /* it has exited */
			continue;
		vm = *found;
		vm.fd = -1;
		if (read_machine(&vm, proc)) {
			vm.pid = atoi(entry->d_name);
			list_machine(all, sizeof(all), &vm);
			if (is_meant(&vm, which)) {
				meant_vm = vm;
				list_machine(meant, sizeof(meant), &vm);
				n++;
			}
		}
		close(proc);
	}
	closedir(dir);
	if (n == 1) {
		*found = meant_vm;
		return 0;
	}
	if (n)
		return error_set(err, -EINVAL,
				 "several virtual machines are '%s', so name the pid: %s", which,
				 meant);
	return error_set(err, -ENOENT, "no virtual machine '%s'; %s%s", which,
			 *all ? "there are " : "none runs here, or only root may see it", all);
}

struct vm *vm_find(const char *root, const char *which, struct error *err)
{
	struct vm *vm = calloc(1, sizeof(*vm));
	char path[96];
	bool ok;
	int proc;

	if (!vm) {
		error_set(err, -ENOMEM, "out of memory");
		return NULL;
	}
	snprintf(vm->root, sizeof(vm->root), "%s", root);
	if (search(vm, which, err)) {
		free(vm);
		return NULL;
	}
	snprintf(path, sizeof(path), "%s/proc/%d", root, vm->pid);
	proc = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	ok = (!vm->nr_vcpus || set_vcpu(vm, 0, -1)) && scan_threads(vm, proc) && scan_debugfs(vm);
	if (proc >= 0)
		close(proc);
	if (ok)
		return vm;
	error_set(err, -ENOMEM, "out of memory");
	vm_free(vm);
	return NULL;
}

void vm_free(struct vm *vm)
{
	if (!vm)
		return;
	free(vm->vcpu_tids);
	free(vm);
}

int32_t vm_vcpu_tid(const struct vm *vm, uint32_t vcpu)
{
	if (vm->shared_tid)
		return vm->shared_tid;
	return vcpu < vm->nr_vcpus && vm->vcpu_tids ? vm->vcpu_tids[vcpu] : -1;
}

/* The directories are named TID-FD, after the thread that created the machine. */
static bool is_directory_of(const struct vm *vm, const char *name)
{
	char path[128];
	int tid, fd, end = 0;

	if (sscanf(name, "%d-%d%n", &tid, &fd, &end) != 2 || name[end] || fd != vm->fd)
		return false;
	snprintf(path, sizeof(path), "%s/proc/%d/task/%d", vm->root, vm->pid, tid);
	return tid == vm->pid || !access(path, F_OK);
}

int vm_open_debugfs(const struct vm *vm, struct error *err)
{
	struct dirent *entry;
	char path[128];
	int fd = -ENOENT;
	DIR *dir;

	if (vm->fd < 0)
		return error_set(err, -EOPNOTSUPP, "%s (pid %d) does not use KVM", vm->name,
				 vm->pid);
	snprintf(path, sizeof(path), "%s%s", vm->root, KVM_DEBUGFS);
	dir = opendir(path);
	if (!dir) {
		fd = -errno;
		error_unavailable(err);
		return error_set(err, fd, "%s: %m%s", KVM_DEBUGFS,
				 fd == -ENOENT ? " (mount -t debugfs none /sys/kernel/debug)" : "");
	}
	while (fd < 0 && (entry = readdir(dir)))
		if (is_directory_of(vm, entry->d_name))
			fd = openat(dirfd(dir), entry->d_name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	closedir(dir);
	if (fd < 0)
		return error_set(err, -ENOENT, "%s has no directory of %s (pid %d)", KVM_DEBUGFS,
				 vm->name, vm->pid);
	return fd;
}
