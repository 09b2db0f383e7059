/* SPDX-License-Identifier: GPL-2.0-only */
#include "pull/remote.h"
#include <errno.h>
#include <math.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include "clocks/vm.h"
#include "error.h"
#include "os/clock.h"
#include "pull/link.h"
#include "pull/remote_state.h"
#include "recording/recording.h"

static struct remote *remote_of(struct source *src)
{
	return (struct remote *)src;
}

static const struct remote *const_of(const struct source *src)
{
	return (const struct remote *)src;
}

bool remote_is_own_kernel(const struct source *src)
{
	return const_of(src)->is_own_kernel;
}

double remote_clock_error(const struct source *src, const char **method)
{
	if (method)
		*method = const_of(src)->clock.method;
	return const_of(src)->clock.error;
}

bool remote_take_pair(struct source *src, struct wire_pair *out)
{
	struct remote *r = remote_of(src);
	bool has_pair = r->pair.tsc;

	*out = r->pair;
	r->pair.tsc = 0;
	return has_pair;
}

static int remote_poll_fd(struct source *src, short *events)
{
	const struct remote *r = const_of(src);

	*events = POLLIN;
	if (r->ended)
		return -1;
	return r->stream ? recording_fd(r->stream) : link_poll_fd(r->link, events);
}

int remote_connect(struct source *src, uint64_t timeout, struct error *err)
{
	struct remote *r = remote_of(src);
	uint64_t end = clock_monotonic() + timeout;

	do {
		int ret = remote_connect_step(r, err);

		if (ret)
			return ret;
		if (r->stream)
			return 1;
		link_wait(r->link, end);
	} while (clock_monotonic() < end);
	error_set(err, 0, "%s", link_why(r->link));
	return 0;
}

int remote_set_vm(struct source *src, const char *which, struct error *err)
{
	struct remote *r = remote_of(src);

	r->vm = vm_find("", which, err);
	if (!r->vm)
		return -ENOENT;
	r->vm_given = strdup(which);
	if (!r->vm_given || remote_clock_set_vm(&r->clock, r->vm))
		return error_set(err, -ENOMEM, "out of memory");
	return 0;
}

const struct vm *remote_vm(const struct source *src)
{
	return const_of(src)->vm;
}

/* How much later their wall time is. A sender can claim any, but ns only hold 292 years. */
static int64_t ns_between(const struct source_info *theirs, double sec, double nsec)
{
	static const double most = 9e9;
	double difference = fmax(-most, fmin(most, theirs->wall_sec - sec));

	return (int64_t)difference * 1000000000 + (int64_t)(theirs->wall_nsec - nsec);
}

void remote_align(struct source *src)
{
	struct remote *r = remote_of(src);
	struct source_info *info = &src->info;
	const struct source_info *theirs = &r->first->info;
	double sec, nsec;

	if (r->clock.is_known)
		return;
	clock_wall_zero(&sec, &nsec);
	r->aligns = isnan(theirs->wall_sec);
	if (!r->aligns)
		remote_clock_set(&r->clock, ns_between(theirs, sec, nsec), INFINITY);
	info->wall_sec = sec;
	info->wall_nsec = nsec;
}

/* Adds the gaps up to a time to the output. The clock may have changed since they were found. */
static int take_gaps(struct remote *r, struct slot *out, int max, uint64_t until)
{
	uint64_t horizon = r->source.horizon;
	uint64_t floor = r->delivered > horizon ? r->delivered : horizon;
	int n = 0;

	while (n < max) {
		const struct gap *gap = gaps_next(&r->gaps, until);

		if (!gap)
			break;
		gaps_take(&r->gaps);
		out[n++] = (struct slot){.time = gap->from > floor ? gap->from : floor,
					 .rec = gap,
					 .flags = REMOTE_GAP << SLOT_OWN_SHIFT};
	}
	return n;
}

/* Records without a time come first. */
static uint64_t before(uint64_t time)
{
	return time ? time - 1 : 0;
}

static int remote_next(struct source *src, struct slot *out, int max, uint64_t until,
		       struct error *err)
{
	struct remote *r = remote_of(src);
	uint64_t horizon;
	int n = 0;

	if (r->at == r->n) {
		int ret = remote_fill(r, err);

		if (ret < 0)
			return ret;
	}
	while (n < max && r->at < r->n && r->held[r->at].time <= until) {
		n += take_gaps(r, out + n, max - n, r->held[r->at].time);
		if (n == max)
			break;
		if (r->held[r->at].time > r->delivered)
			r->delivered = r->held[r->at].time;
		out[n++] = r->held[r->at++];
	}
	horizon = r->at < r->n ? before(r->held[r->at].time) : remote_stream_horizon(r);
	if (!r->ended && horizon > remote_latest(r)) /* its clock is wrong */
		horizon = remote_latest(r);
	if (r->at == r->n && n < max)
		n += take_gaps(r, out + n, max - n, horizon < until ? horizon : until);
	if (horizon > until)
		horizon = until;
	if (horizon > src->horizon && n < max)
		src->horizon = horizon;
	return n;
}

static void remote_stop(struct source *src)
{
	remote_end(remote_of(src));
}

static int remote_wait(struct source *src, int64_t timeout)
{
	struct remote *r = remote_of(src);
	struct pollfd polled[] = {{.fd = src->wake_fd, .events = POLLIN}, {}};
	uint64_t wanted = r->stream || r->ended ? UINT64_MAX : link_retry_time(r->link);
	uint64_t now = clock_monotonic();
	struct timespec ts = {};

	polled[1].fd = remote_poll_fd(src, &polled[1].events);
	if (wanted < now + timeout)
		timeout = wanted > now ? wanted - now : 0;
	ts.tv_sec = timeout / 1000000000;
	ts.tv_nsec = timeout % 1000000000;
	return ppoll(polled, 2, &ts, NULL) < 0 && errno != EINTR ? -errno : 0;
}

static uint64_t remote_now(struct source *src)
{
	return src->info.is_live ? clock_monotonic() : UINT64_MAX;
}

/* What the sender says, and what has come from it. It is sure of all if it has said that it ends.
 */
static bool remote_account(struct source *src, uint16_t class, struct source_account *out)
{
	struct remote *r = remote_of(src);
	struct gaps_read now = {};
	uint64_t twins = 0;

	(void)class;
	if (!r->gaps.has_group)
		return false;
	if (r->stream) {
		recording_read(r->stream, &now.samples, &now.lost, &now.unknown);
		twins = recording_twins(r->stream);
	}
	*out = (struct source_account){.fired = r->gaps.made,
				       .lost = r->gaps.missing,
				       .dropped = r->dropped + twins,
				       .per_sample = 1,
				       .is_exact = r->said_bye && !r->stream && !r->gaps.is_unsure,
				       .is_sum = true,
				       .read = r->read_before + now.samples};
	return true;
}

static uint64_t remote_convert(struct source *src, uint64_t time)
{
	return remote_clock_convert(&remote_of(src)->clock, time);
}

static int remote_decode(struct source *src, const struct slot *slot, struct event *ev)
{
	const struct gap *gap = slot->rec;

	(void)src;
	*ev = (struct event){.class = EVENT_LOST,
			     .pid = -1,
			     .tid = -1,
			     .cpu = -1,
			     .period = gap->lost,
			     .key = gap->to};
	return 1;
}

static int remote_decode_run(struct source *src, const struct slot *slots, int n, uint64_t base,
			     uint64_t from, struct event *ev)
{
	(void)src, (void)slots, (void)n, (void)base, (void)from, (void)ev;
	return 0;
}

static struct formats *remote_formats(struct source *src, struct error *err)
{
	struct source *first = remote_of(src)->first;

	return first->ops->formats(first, err);
}

static uint64_t remote_sample_type(struct source *src, const struct event_request *req)
{
	struct source *first = remote_of(src)->first;

	return first->ops->sample_type(first, req);
}

static bool remote_has_records(struct source *src, uint32_t kind)
{
	struct source *first = remote_of(src)->first;

	return first->ops->has_records(first, kind);
}

static int remote_add_event(struct source *src, const struct event_request *req, struct error *err)
{
	struct remote *r = remote_of(src);
	int ret = requests_add(&r->requests, req, err);

	return ret ? ret : r->first->ops->add_event(r->first, req, err);
}

static int remote_attach(struct source *src, const struct source_target *target, struct error *err)
{
	struct remote *r = remote_of(src);

	return r->first->ops->open(r->first, target, err);
}

void remote_free(struct source *src)
{
	struct remote *r = remote_of(src);

	if (r->stream && r->stream != r->first)
		r->stream->ops->free(r->stream);
	if (r->first)
		r->first->ops->free(r->first);
	requests_clear(&r->requests);
	remote_clock_clear(&r->clock);
	vm_free(r->vm);
	free(r->vm_given);
	link_free(r->link);
	free(r);
}

static const struct source_ops remote_ops = {
	.formats = remote_formats,
	.sample_type = remote_sample_type,
	.has_records = remote_has_records,
	.add_event = remote_add_event,
	.open = remote_attach,
	.next = remote_next,
	.wait = remote_wait,
	.poll_fd = remote_poll_fd,
	.stop = remote_stop,
	.now = remote_now,
	.account = remote_account,
	.convert = remote_convert,
	.decode = remote_decode,
	.decode_run = remote_decode_run,
	.free = remote_free,
};

struct source *remote_new(const char *address, const char *secret, struct error *err)
{
	struct remote *r = calloc(1, sizeof(*r));

	if (!r) {
		error_set(err, -ENOMEM, "out of memory");
		return NULL;
	}
	r->source.ops = &remote_ops;
	r->source.start = UINT64_MAX;
	r->source.wake_fd = -1;
	r->silence = LINK_SILENCE;
	remote_clock_clear(&r->clock);
	r->link = link_new(address, secret, err);
	if (!r->link) {
		remote_free(&r->source);
		return NULL;
	}
	r->hello = link_hello(r->link);
	return &r->source;
}

void remote_set_slack(struct source *src, uint64_t ns)
{
	struct remote *r = remote_of(src);

	if (ns > r->silence)
		r->silence = ns;
}
