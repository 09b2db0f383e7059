/* SPDX-License-Identifier: GPL-2.0-only */
#include "clocks/kvmclock.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <linux/perf_event.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "clocks/vm.h"
#include "error.h"

#define EVENT "events/kvm/kvm_pvclock_update/"

/* The payload of a sample, which is the same since Linux 3.19. */
struct update {
	uint64_t common;
	uint32_t vcpu_id, version;
	uint64_t tsc_timestamp, system_time;
	uint32_t mul;
	int8_t shift;
	uint8_t flags;
};

static const char *const layout[] = {
	"tsc_timestamp;\toffset:16;\tsize:8;",
	"system_time;\toffset:24;\tsize:8;",
	"tsc_to_system_mul;\toffset:32;\tsize:4;",
	"tsc_shift;\toffset:36;\tsize:1;",
};

struct sample {
	struct perf_event_header header;
	uint32_t size; /* of the payload, which is not aligned */
	uint8_t raw[];
};

struct kvmclock_updates {
	int fd;
	size_t page;
	struct perf_event_mmap_page *ring; /* this page, and one of records */
};

uint64_t kvmclock_time(const struct kvmclock *clock, uint64_t guest_tsc)
{
	int64_t delta = guest_tsc - clock->tsc_timestamp;
	uint64_t cycles = delta < 0 ? -(uint64_t)delta : (uint64_t)delta, ns;

	cycles = clock->shift < 0 ? cycles >> -clock->shift : cycles << clock->shift;
	ns = (unsigned __int128)cycles * clock->mul >> 32;
	return clock->system_time + (delta < 0 ? -ns : ns);
}

/* Reads a file of the tracepoint. */
static int read_tracefs(const char *name, char *buf, size_t size, struct error *err)
{
	static const char *const roots[] = {"/sys/kernel/tracing", "/sys/kernel/debug/tracing"};
	FILE *f = NULL;
	char path[128];
	size_t n;

	for (int i = 0; i < 2 && !f; i++) {
		snprintf(path, sizeof(path), "%s/" EVENT "%s", roots[i], name);
		f = fopen(path, "re");
	}
	if (!f) {
		error_unavailable(err);
		return error_set(err, -errno, "the kernel has no kvm:kvm_pvclock_update (%m)");
	}
	n = fread(buf, 1, size - 1, f);
	buf[n] = 0;
	fclose(f);
	return 0;
}

static int find_event(uint64_t *id, struct error *err)
{
	char text[4096];
	int code = read_tracefs("format", text, sizeof(text), err);

	for (size_t i = 0; !code && i < sizeof(layout) / sizeof(*layout); i++)
		if (!strstr(text, layout[i]))
			code = error_set(err, -EOPNOTSUPP,
					 "kvm:kvm_pvclock_update has other fields than expected");
	if (!code)
		code = read_tracefs("id", text, sizeof(text), err);
	if (!code)
		*id = strtoull(text, NULL, 10);
	return code;
}

static int open_ring(struct kvmclock_updates *u, int32_t tid, struct error *err)
{
	struct perf_event_attr attr = {.type = PERF_TYPE_TRACEPOINT,
				       .size = sizeof(attr),
				       .sample_period = 1,
				       .sample_type = PERF_SAMPLE_RAW};
	uint64_t id = 0;
	int code = find_event(&id, err);
	void *ring;

	if (code)
		return code;
	attr.config = id;
	u->fd = syscall(SYS_perf_event_open, &attr, tid, -1, -1, PERF_FLAG_FD_CLOEXEC);
	if (u->fd < 0)
		return error_set(err, -errno, "kvm:kvm_pvclock_update of thread %d: %m", tid);
	ring = mmap(NULL, 2 * u->page, PROT_READ | PROT_WRITE, MAP_SHARED, u->fd, 0);
	if (ring == MAP_FAILED)
		return error_set(err, -errno, "ring buffer of kvm:kvm_pvclock_update: %m");
	u->ring = ring;
	return 0;
}

struct kvmclock_updates *kvmclock_watch(const struct vm *vm, struct error *err)
{
	int32_t tid = vm_vcpu_tid(vm, 0);
	struct kvmclock_updates *u;

	if (tid < 0) {
		error_set(err, -ESRCH, "%s (pid %d): nothing tells which thread runs virtual CPU 0",
			  vm->name, vm->pid);
		return NULL;
	}
	u = calloc(1, sizeof(*u));
	if (!u) {
		error_set(err, -ENOMEM, "out of memory");
		return NULL;
	}
	u->page = sysconf(_SC_PAGESIZE);
	u->fd = -1;
	if (!open_ring(u, tid, err))
		return u;
	kvmclock_unwatch(u);
	return NULL;
}

/* Copies a part of the ring, which may wrap around. */
static void copy(const struct kvmclock_updates *u, uint64_t at, void *to, size_t size)
{
	const uint8_t *data = (const uint8_t *)u->ring + u->page;

	for (size_t i = 0; i < size; i++)
		((uint8_t *)to)[i] = data[(at + i) % u->page];
}

bool kvmclock_take(struct kvmclock_updates *u, struct kvmclock *out)
{
	uint64_t head = __atomic_load_n(&u->ring->data_head, __ATOMIC_ACQUIRE);
	uint64_t at = u->ring->data_tail;
	bool found = false;

	while (at < head) {
		struct perf_event_header header;
		struct update update;

		copy(u, at, &header, sizeof(header));
		if (header.type == PERF_RECORD_SAMPLE &&
		    header.size >= sizeof(struct sample) + sizeof(update)) {
			copy(u, at + sizeof(struct sample), &update, sizeof(update));
			*out = (struct kvmclock){update.tsc_timestamp, update.system_time,
						 update.mul, update.shift};
			found = true;
		}
		at += header.size;
	}
	__atomic_store_n(&u->ring->data_tail, at, __ATOMIC_RELEASE);
	return found;
}

void kvmclock_unwatch(struct kvmclock_updates *u)
{
	if (!u)
		return;
	if (u->ring)
		munmap(u->ring, 2 * u->page);
	if (u->fd >= 0)
		close(u->fd);
	free(u);
}
