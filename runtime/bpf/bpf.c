// SPDX-License-Identifier: GPL-2.0-only
#include "bpf/bpf.h"
#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <linux/bpf.h>
#include <linux/perf_event.h>

enum { LOG_SIZE = 1 << 18, LOG_DEBUG = 2 };

int bpf_perf_open(const struct perf_event_attr *attr, int pid, int cpu)
{
	int fd = syscall(SYS_perf_event_open, attr, pid, cpu, -1, PERF_FLAG_FD_CLOEXEC);

	return fd >= 0 ? fd : -errno;
}

int bpf_put_entry(int map, uint32_t cpu, uint32_t fd)
{
	union bpf_attr attr;

	memset(&attr, 0, sizeof(attr));
	attr.map_fd = map;
	attr.key = (uintptr_t)&cpu;
	attr.value = (uintptr_t)&fd;
	return syscall(SYS_bpf, BPF_MAP_UPDATE_ELEM, &attr, sizeof(attr)) ? -errno : 0;
}

static struct bpf_prog_info program_info(int program)
{
	struct bpf_prog_info info = {0};
	union bpf_attr attr;

	memset(&attr, 0, sizeof(attr));
	attr.info.bpf_fd = program;
	attr.info.info_len = sizeof(info);
	attr.info.info = (uintptr_t)&info;
	if (syscall(SYS_bpf, BPF_OBJ_GET_INFO_BY_FD, &attr, sizeof(attr)))
		memset(&info, 0, sizeof(info));
	return info;
}

uint64_t bpf_recursion_misses(int program)
{
	return program_info(program).recursion_misses;
}

const char *bpf_program_name(uint32_t id)
{
	static struct bpf_prog_info info;
	union bpf_attr attr;
	int fd;

	memset(&attr, 0, sizeof(attr));
	attr.prog_id = id;
	fd = syscall(SYS_bpf, BPF_PROG_GET_FD_BY_ID, &attr, sizeof(attr));
	if (fd < 0)
		return "";
	info = program_info(fd);
	close(fd);
	return info.name;
}

/* libbpf has one print function per process and passes it no context. */
static struct {
	char text[LOG_SIZE], taken[LOG_SIZE];
	size_t used;
} saved;

int bpf_log_print(int level, const char *fmt, va_list args)
{
	char *text;
	size_t keep;
	int n;

	if (level >= LOG_DEBUG)
		return 0;
	n = vasprintf(&text, fmt, args);
	if (n < 0)
		return 0;
	keep = (size_t)n < LOG_SIZE / 2 ? (size_t)n : LOG_SIZE / 2;
	if (saved.used + keep >= LOG_SIZE) { /* at least half of it is used */
		memmove(saved.text, saved.text + saved.used - LOG_SIZE / 2 + 1, LOG_SIZE / 2 - 1);
		saved.used = LOG_SIZE / 2 - 1;
	}
	memcpy(saved.text + saved.used, text + n - keep, keep);
	saved.used += keep;
	free(text);
	return n;
}

const char *bpf_log_take(void)
{
	memcpy(saved.taken, saved.text, saved.used);
	saved.taken[saved.used] = 0;
	saved.used = 0;
	return saved.taken;
}
