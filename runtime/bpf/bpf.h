/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What BPF needs besides libbpf: the programs that profscript brings along, libbpf's messages as
 * text, and perf events to attach programs to. libbpf itself is loaded by the scripts' side, if it
 * is there.
 *
 * This header is read by C and by LuaJIT's ffi.cdef: plain declarations only.
 */
#pragma once
#include <stdarg.h>
#include <stdint.h>

/* An object file of bpf/, as it was built in. */
struct bpf_object_file {
	const char *name;
	const char *start, *end;
};

/* Ends with a NULL name. Empty: profscript was built without clang or libbpf's headers. */
extern const struct bpf_object_file bpf_object_files[];

struct perf_attr;

/* perf_event_open(2): a descriptor, or a negative errno. */
int bpf_perf_open(const struct perf_attr *attr, int pid, int cpu);

/* Makes a perf event the cpu's entry of a perf event array. 0 or a negative errno. */
int bpf_put_entry(int map, uint32_t cpu, uint32_t fd);

/* For libbpf_set_print(): keeps the end of what libbpf says. */
int bpf_log_print(int level, const char *fmt, va_list args);
/* What was said since the last call; valid until then. */
const char *bpf_log_take(void);
