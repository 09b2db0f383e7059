// SPDX-License-Identifier: GPL-2.0-only
/*
 * ring_walk PAGES SECONDS SYS/NAME... : the minimum that any reader of perf's rings must do.
 * Samples the tracepoints on all CPUs into one ring each, as profscript does, looks at the header
 * and the time of every record, and prints the records and its own CPU time per record (ns), with
 * which `make bench` compares.
 */
#include <linux/perf_event.h>
#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { MAX_CPUS = 1024 };

static int open_event(const char *name, int cpu, long bytes)
{
	struct perf_event_attr attr = {.type = PERF_TYPE_TRACEPOINT,
				       .size = sizeof(attr),
				       .sample_period = 1,
				       .sample_type = PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_TID |
						      PERF_SAMPLE_TIME | PERF_SAMPLE_CPU |
						      PERF_SAMPLE_PERIOD | PERF_SAMPLE_RAW,
				       .watermark = 1,
				       .wakeup_watermark = bytes / 2};
	char path[256];
	FILE *f;

	snprintf(path, sizeof(path), "/sys/kernel/tracing/events/%s/id", name);
	f = fopen(path, "r");
	if (!f || fscanf(f, "%llu", &attr.config) != 1) {
		perror(path);
		exit(1);
	}
	fclose(f);
	return syscall(SYS_perf_event_open, &attr, -1, cpu, -1, PERF_FLAG_FD_CLOEXEC);
}

static uint64_t walk(struct perf_event_mmap_page *page, uint64_t *times)
{
	uint64_t head = __atomic_load_n(&page->data_head, __ATOMIC_ACQUIRE), at = page->data_tail,
		 n = 0;
	const char *data = (const char *)page + page->data_offset;

	for (; at < head; n++) {
		const struct perf_event_header *rec =
			(const void *)(data + (at & (page->data_size - 1)));

		*times += ((const uint64_t *)data)[((at + 24) & (page->data_size - 1)) / 8];
		at += rec->size;
	}
	__atomic_store_n(&page->data_tail, at, __ATOMIC_RELEASE);
	return n;
}

int main(int argc, char **argv)
{
	struct perf_event_mmap_page *pages[MAX_CPUS];
	struct pollfd fds[MAX_CPUS];
	int cpus = sysconf(_SC_NPROCESSORS_ONLN);
	uint64_t records = 0, times = 0;
	struct rusage used;
	long bytes;
	time_t end;

	if (argc < 4 || cpus > MAX_CPUS) {
		fprintf(stderr, "usage: ring_walk PAGES SECONDS SYS/NAME...\n");
		return 2;
	}
	bytes = atol(argv[1]) * sysconf(_SC_PAGESIZE);
	for (int cpu = 0; cpu < cpus; cpu++) {
		fds[cpu] = (struct pollfd){.fd = open_event(argv[3], cpu, bytes), .events = POLLIN};
		pages[cpu] = mmap(NULL, bytes + sysconf(_SC_PAGESIZE), PROT_READ | PROT_WRITE,
				  MAP_SHARED, fds[cpu].fd, 0);
		if (pages[cpu] == MAP_FAILED) {
			perror("mmap");
			return 1;
		}
		for (int i = 4; i < argc; i++)
			ioctl(open_event(argv[i], cpu, bytes), PERF_EVENT_IOC_SET_OUTPUT,
			      fds[cpu].fd);
	}
	for (end = time(NULL) + atoi(argv[2]); time(NULL) < end;) {
		poll(fds, cpus, 100);
		for (int cpu = 0; cpu < cpus; cpu++)
			records += walk(pages[cpu], &times);
	}
	getrusage(RUSAGE_SELF, &used);
	printf("%lu %.1f %d\n", records,
	       ((used.ru_utime.tv_sec + used.ru_stime.tv_sec) * 1e9 +
		(used.ru_utime.tv_usec + used.ru_stime.tv_usec) * 1e3) /
		       (records ? records : 1),
	       times != 0);
	return 0;
}
