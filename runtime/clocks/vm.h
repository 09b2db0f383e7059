/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * VM: the virtual machines that run on this host, and which thread runs which virtual CPU. Found in
 * /proc, so it works for every program that uses KVM (QEMU, Firecracker, Cloud Hypervisor, own
 * ones), and for QEMU without KVM. Other users' machines are only visible to root.
 */
#pragma once
#include <stdbool.h>
#include <stdint.h>

struct error;

enum { VM_VCPUS_MAX = 4096 };

struct vm {
	char root[64]; /* "", or the directory that stands for / */
	int32_t pid;   /* the process that is the machine */
	int32_t fd;    /* its descriptor of the KVM machine; -1: it does not use KVM */
	char name[64]; /* as its command line says, else that of the process */
	char uuid[37]; /* "" if it has none; lower case */
	uint32_t nr_vcpus;
	int32_t *vcpu_tids; /* the thread of each virtual CPU; -1: unknown */
	int32_t shared_tid; /* the thread that runs all of them; 0: each has its own */
};

/* Finds a running machine by UUID, pid or name. NULL with a message that names the machines there
 * are, also if several have the name. root: a directory that stands for /, in tests; else "". */
struct vm *vm_find(const char *root, const char *which, struct error *err);
void vm_free(struct vm *vm);
/* Returns the thread that runs a virtual CPU; -1: there is none, or it is unknown. */
int32_t vm_vcpu_tid(const struct vm *vm, uint32_t vcpu);
/* Opens KVM's statistics of the machine in debugfs. Returns a directory descriptor; negative errno
 * with a message. */
int vm_open_debugfs(const struct vm *vm, struct error *err);
