// SPDX-License-Identifier: GPL-2.0-only
/* What --check loads to learn whether programs may run at functions of the kernel. */
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

SEC("fentry/do_nanosleep")
int fentry(void *ctx)
{
	return 0;
}

char LICENSE[] SEC("license") = "GPL";
