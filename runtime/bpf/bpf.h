/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What BPF needs besides libbpf: the built-in programs, libbpf's messages as text, and perf events
 * to attach programs to. Lua loads libbpf itself, if it is installed.
 */
#pragma once
#include <stdarg.h>
#include <stdint.h>

struct perf_event_attr;

/* A built-in object file of bpf/. */
struct bpf_object_file {
	const char *name;
	const char *start, *end;
};

/* Ends with a NULL name. It is empty if profscript was built without clang or libbpf's headers. */
extern const struct bpf_object_file bpf_object_files[];

/* Calls perf_event_open(2). Returns a descriptor or a negative errno. */
int bpf_perf_open(const struct perf_event_attr *attr, int pid, int cpu);

/* Stores a perf event as the entry of this CPU in a perf event array. Returns 0 or a negative
 * errno. */
int bpf_put_entry(int map, uint32_t cpu, uint32_t fd);

/* Returns how often a program was skipped because it had interrupted itself on its CPU. */
uint64_t bpf_recursion_misses(int program);

/* Returns the name of a loaded program, valid until the next call; "" if it is not known. */
const char *bpf_program_name(uint32_t id);

/* For libbpf_set_print(): keeps the end of libbpf's output. */
int bpf_log_print(int level, const char *fmt, va_list args);
/* Returns the output since the last call; it is valid until the next one. */
const char *bpf_log_take(void);
