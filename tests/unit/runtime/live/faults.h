/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * For tests on the real kernel: page faults of the thread that causes them, each of them a sample,
 * and an event that only counts them. Included after cmocka.h.
 */
#pragma once
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <linux/perf_event.h>
#include "decode/decoder.h"
#include "decode/sample.h"
#include "event.h"
#include "event_request.h"
#include "source.h"

enum { PAGE = 4096, MAX_FAULTS = 1 << 15, FAULTS = EVENT_FIRST };

/* Page faults of user space: a user may see no others if the kernel restricts perf. */
static const struct event_request faults = {.name = "page-faults",
					    .attr = {.type = PERF_TYPE_SOFTWARE,
						     .config = PERF_COUNT_SW_PAGE_FAULTS,
						     .sample_period = 1,
						     .exclude_kernel = 1},
					    .perf_event = 1,
					    .class = FAULTS};

/* Skips the test if no such event can be opened for a thread (cpu -1) or on a CPU. */
static inline void needs_perf(int cpu)
{
	struct perf_event_attr attr = {.type = PERF_TYPE_SOFTWARE,
				       .size = sizeof(attr),
				       .config = PERF_COUNT_SW_PAGE_FAULTS,
				       .exclude_kernel = 1,
				       .disabled = 1};
	int fd = syscall(SYS_perf_event_open, &attr, cpu < 0 ? 0 : -1, cpu, -1, 0);

	if (fd < 0) {
		printf("# perf_event_open() is refused: %s\n", strerror(errno));
		skip();
	}
	close(fd);
}

static volatile char *fault_pages; /* each is touched once */
static int nr_touched;

static inline int map_pages(void **state)
{
	void *pages = mmap(NULL, (size_t)MAX_FAULTS * PAGE, PROT_READ | PROT_WRITE,
			   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	(void)state;
	if (pages == MAP_FAILED || madvise(pages, (size_t)MAX_FAULTS * PAGE, MADV_NOHUGEPAGE))
		return -1;
	fault_pages = pages;
	return 0;
}

/* Touches n pages for the first time. */
static inline void cause_faults(int n)
{
	int from = __atomic_fetch_add(&nr_touched, n, __ATOMIC_RELAXED);

	for (int i = from; i < from + n && i < MAX_FAULTS; i++)
		fault_pages[(size_t)i * PAGE] = 1;
}

/* Whether the sample is of a page that cause_faults() touched: programs have other faults too. */
static inline bool was_caused(const struct decoder *d, const struct event *ev)
{
	uint64_t type = decoder_attr_of_class(d, ev->class)->sample_type, addr;

	memcpy(&addr, ev->raw + sample_offset(type, PERF_SAMPLE_ADDR), sizeof(addr));
	return addr - (uintptr_t)fault_pages < (uint64_t)MAX_FAULTS * PAGE;
}
