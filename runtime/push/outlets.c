/* SPDX-License-Identifier: GPL-2.0-only */
#include "push/outlets.h"
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/random.h>
#include <unistd.h>
#include <zstd.h>
#include "clocks/clock_axis.h"
#include "clocks/kvm_ptp.h"
#include "decode/decoder.h"
#include "source.h"

/* What a trailer may have. */
#define TRAILER                                                                        \
	(PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_ID | PERF_SAMPLE_STREAM_ID | \
	 PERF_SAMPLE_CPU | PERF_SAMPLE_IDENTIFIER)

int outlets_init(struct outlets *all, struct error *err)
{
	all->poller = epoll_create1(EPOLL_CLOEXEC);
	all->zstd = ZSTD_createCCtx();
	if (all->poller < 0 || !all->zstd)
		return error_set(err, -ENOMEM, "push: %s", strerror(all->zstd ? errno : ENOMEM));
	while (getrandom(&all->epoch, sizeof(all->epoch), 0) != sizeof(all->epoch))
		;
	clock_pair_read(&all->first_pair);
	return 0;
}

void outlets_describe(struct outlets *all, const struct source *src)
{
	const struct source_info *info = &src->info;
	const struct perf_event_attr *attr = decoder_attr(src->decoder, 0);

	all->is_live = !info->is_recorded || info->is_live;
	all->is_local = !info->is_recorded;
	all->clockid = attr->use_clockid ? (uint32_t)attr->clockid : UINT32_MAX;
	push_clock_set_trailer(&all->clock, attr);
	if (attr->sample_id_all)
		all->trailer_words = __builtin_popcountll(attr->sample_type & TRAILER);
	if (info->wall_sec > 0) /* not if it is unknown */
		all->wall_zero = (uint64_t)info->wall_sec * 1000000000 + (uint64_t)info->wall_nsec;
}

void outlets_clear(struct outlets *all)
{
	clock_axis_free(all->clock.axis);
	kvm_ptp_close(all->ptp);
	free(all->symbols.data);
	free(all->messages.data);
	explicit_bzero(&all->secret, sizeof(all->secret));
	group_pool_clear(&all->pool);
	ZSTD_freeCCtx(all->zstd);
	if (all->poller >= 0)
		close(all->poller);
}

void outlets_tell(struct outlets *all, const char *fmt, ...)
{
	struct error line;
	va_list ap;
	char text[512];

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	error_set(&line, 0, "%s", text); /* without control bytes */
	bytes_add(&all->messages, line.text, strlen(line.text));
	bytes_add(&all->messages, "\n", 1);
}
