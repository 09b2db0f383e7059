/* SPDX-License-Identifier: GPL-2.0-only */
#include "clocks/tsc_scale.h"
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#include "clocks/vm.h"
#include "error.h"

/* Reads a number; signed ones become their two's complement. */
static int read_number(int dir, uint32_t vcpu, const char *name, uint64_t *out)
{
	char path[64], text[32];
	ssize_t n;
	int fd;

	snprintf(path, sizeof(path), "vcpu%u/%s", vcpu, name);
	fd = openat(dir, path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	n = read(fd, text, sizeof(text) - 1);
	close(fd);
	if (n <= 0)
		return -EIO;
	text[n] = 0;
	*out = text[0] == '-' ? (uint64_t)strtoll(text, NULL, 10) : strtoull(text, NULL, 10);
	return 0;
}

static int read_vcpu(int dir, uint32_t vcpu, struct tsc_scale *out)
{
	int code = read_number(dir, vcpu, "tsc-offset", &out->offset);
	uint64_t bits;

	/* Without hardware that can scale, there are no files about it. */
	if (read_number(dir, vcpu, "tsc-scaling-ratio-frac-bits", &bits) || bits == 0 ||
	    bits > 63 || read_number(dir, vcpu, "tsc-scaling-ratio", &out->ratio) ||
	    out->ratio == 0) {
		out->ratio = 1;
		bits = 0;
	}
	out->frac_bits = bits;
	return code;
}

int tsc_scale_read(const struct vm *vm, struct tsc_scale *out, struct error *err)
{
	uint64_t lowest = 0, highest = 0;
	int dir = vm_open_debugfs(vm, err), code;

	if (dir < 0)
		return dir;
	*out = (struct tsc_scale){.ratio = 1};
	code = read_vcpu(dir, 0, out);
	for (uint32_t i = 1; !code && i < vm->nr_vcpus; i++) {
		struct tsc_scale other;

		if (read_vcpu(dir, i, &other)) /* it was unplugged */
			continue;
		if ((int64_t)(other.offset - out->offset - lowest) < 0)
			lowest = other.offset - out->offset;
		if ((int64_t)(other.offset - out->offset - highest) > 0)
			highest = other.offset - out->offset;
	}
	close(dir);
	out->spread = highest - lowest < UINT32_MAX ? highest - lowest : UINT32_MAX;
	if (code)
		return error_set(err, code, "KVM's debugfs has no TSC offset of %s (pid %d)",
				 vm->name, vm->pid);
	return 0;
}

uint64_t tsc_scale_to_guest(const struct tsc_scale *scale, uint64_t host)
{
	return scale->offset +
	       (uint64_t)((unsigned __int128)host * scale->ratio >> scale->frac_bits);
}

uint64_t tsc_scale_to_host(const struct tsc_scale *scale, uint64_t guest)
{
	unsigned __int128 scaled = (unsigned __int128)(guest - scale->offset) << scale->frac_bits;

	/* Scaling rounds down, so the first host time with this guest time is the quotient rounded
	 * up. */
	return (scaled + scale->ratio - 1) / scale->ratio;
}
