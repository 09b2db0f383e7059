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

/* perf_event_attr under the names of perf_event_open(2). */
struct bpf_perf_attr {
	uint32_t type, size;
	uint64_t config;
	union {
		uint64_t sample_period, sample_freq;
	};
	uint64_t sample_type, read_format;
	uint32_t disabled : 1, inherit : 1, pinned : 1, exclusive : 1, exclude_user : 1,
		exclude_kernel : 1, exclude_hv : 1, exclude_idle : 1, mmap : 1, comm : 1, freq : 1,
		inherit_stat : 1, enable_on_exec : 1, task : 1, watermark : 1, precise_ip : 2,
		mmap_data : 1, sample_id_all : 1, exclude_host : 1, exclude_guest : 1,
		exclude_callchain_kernel : 1, exclude_callchain_user : 1, other : 9;
	uint32_t others;
	uint32_t wakeup_events, bp_type;
	union {
		uint64_t bp_addr, config1;
	};
	union {
		uint64_t bp_len, config2;
	};
	uint64_t unused[5];
};

/* perf_event_open(2): a descriptor, or a negative errno. */
int bpf_perf_open(const struct bpf_perf_attr *attr, int pid, int cpu);

/* Makes a perf event the cpu's entry of a perf event array. 0 or a negative errno. */
int bpf_put_entry(int map, uint32_t cpu, uint32_t fd);

/* For libbpf_set_print(): keeps the end of what libbpf says. */
int bpf_log_print(int level, const char *fmt, va_list args);
/* What was said since the last call; valid until then. */
const char *bpf_log_take(void);
