// SPDX-License-Identifier: GPL-2.0-only
/* Loaded by --check to find out whether the kernel allows fentry programs. */
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

SEC("fentry/do_nanosleep")
int fentry(void *ctx)
{
	return 0;
}

char LICENSE[] SEC("license") = "GPL";
