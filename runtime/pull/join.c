/* SPDX-License-Identifier: GPL-2.0-only */
#include "pull/join.h"
#include <errno.h>
#include <math.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <time.h>
#include <unistd.h>
#include "error.h"
#include "os/clock.h"
#include "source.h"

enum {
	SLACK = 200000000,	/* ns, by default */
	BLOCKED_WAIT = 10000000 /* ns to wait if a silent member holds others back */
};

struct member {
	struct source *source;
	struct slot slots[BATCH_MAX]; /* taken from it, not yet delivered */
	int at, n;
	uint32_t flags; /* of its slots */
	bool is_used, ended;
	bool is_local, is_lagging; /* is_lagging: it was told to be silent */
	int fd;			   /* that the epoll descriptor watches; -1: none */
};

struct join {
	struct source source;
	struct member *members[JOIN_MEMBERS];
	uint32_t nr_members;
	uint8_t by_class[EVENT_CLASSES];
	int epoll;
	uint64_t slack;
	uint64_t last_out; /* newest time delivered */
	bool has_clock;	   /* times are those of this machine's clock, and go on without events */
	bool stopped;
};

static struct join *join_of(struct source *src)
{
	return (struct join *)src;
}

static struct member *local(struct join *j)
{
	return j->members[0];
}

static int add_member(struct join *j, struct source *source)
{
	struct member *m = calloc(1, sizeof(*m));

	if (!m)
		return -ENOMEM;
	m->source = source;
	m->flags = j->nr_members << SLOT_MEMBER_SHIFT;
	m->fd = -1;
	j->members[j->nr_members] = m;
	return j->nr_members++;
}

int join_add(struct source *join, struct source *remote, struct error *err)
{
	struct join *j = join_of(join);
	int index = j->nr_members < JOIN_MEMBERS
			    ? add_member(j, remote)
			    : error_set(err, -E2BIG, "more than %d hosts", JOIN_MEMBERS - 1);

	if (index < 0) {
		remote->ops->free(remote);
		return index == -ENOMEM ? error_set(err, index, "out of memory") : index;
	}
	j->members[index]->is_used = true;
	return index;
}

void join_replace_local(struct source *join, struct source *source)
{
	local(join_of(join))->source = source;
}

struct source *join_member(const struct source *join, uint32_t index)
{
	return ((const struct join *)join)->members[index]->source;
}

void join_set_slack(struct source *join, uint64_t ns)
{
	join_of(join)->slack = ns;
}

/* Merging -------------------------------------------------------------------------------------- */

static bool has_slots(const struct member *m)
{
	return m->at < m->n;
}

static uint64_t head_time(const struct member *m)
{
	return m->slots[m->at].time;
}

static void forward_notice(struct join *j, struct source *from)
{
	struct error *notice = &j->source.notice;

	if (!from->notice.text[0])
		return;
	error_set(notice, 0, "%s%s%s", notice->text, notice->text[0] ? "; " : "",
		  from->notice.text);
	j->source.is_urgent |= from->is_urgent;
	from->notice.text[0] = '\0';
	from->is_urgent = false;
}

/* Returns up to which time a member with slots has delivered all. Those without a time come first.
 */
static uint64_t before_head(const struct member *m)
{
	return head_time(m) ? head_time(m) - 1 : 0;
}

/* Returns up to which time an empty member holds back the others. */
static uint64_t bound_of(struct join *j, struct member *m, uint64_t now)
{
	uint64_t horizon = m->source->horizon;

	/* A remote that was stopped ends soon, and tells what is missing. */
	if (m->is_local || !j->has_clock || j->stopped || now < j->slack ||
	    now - j->slack <= horizon)
		return horizon;
	return now - j->slack;
}

static int refill(struct join *j, struct member *m, uint64_t until, struct error *err)
{
	int n;

	m->source->counts_rest = j->source.counts_rest;
	n = m->source->ops->next(m->source, m->slots, BATCH_MAX, until, err);
	forward_notice(j, m->source);
	m->at = 0;
	m->n = n > 0 ? n : 0;
	m->ended = n == -ENODATA;
	return n == -ENODATA ? 0 : n;
}

/* Returns the member whose next slot is the oldest, and up to which time its slots can be taken
 * before those of the others. */
static struct member *oldest(struct join *j, uint64_t limit, uint64_t *bound)
{
	struct member *best = NULL;

	*bound = limit;
	for (uint32_t i = 0; i < j->nr_members; i++) {
		struct member *m = j->members[i];

		if (!has_slots(m))
			continue;
		if (!best || head_time(m) < head_time(best)) {
			if (best && head_time(best) < *bound)
				*bound = head_time(best);
			best = m;
		} else if (head_time(m) < *bound) {
			*bound = head_time(m);
		}
	}
	return best && head_time(best) <= limit ? best : NULL;
}

/* Says once for each member that its events were too late to be in order. */
static void tell_late(struct join *j, struct member *m)
{
	if (m->is_lagging || m->is_local)
		return;
	m->is_lagging = true;
	error_set(&j->source.notice, 0,
		  "%s%s%s was silent for more than %.0f ms: its events are "
		  "late and may be out of order (--remote-slack)",
		  j->source.notice.text, j->source.notice.text[0] ? "; " : "", m->source->info.host,
		  j->slack / 1e6);
	j->source.is_urgent = true;
}

static int take_run(struct join *j, struct member *m, uint64_t bound, struct slot *out, int max)
{
	int n = 0;

	do {
		struct slot *slot = &out[n++];

		*slot = m->slots[m->at++];
		slot->flags |= m->flags;
		if (slot->time >= j->last_out) {
			j->last_out = slot->time;
		} else {
			slot->flags |= EVENT_LATE;
			tell_late(j, m);
		}
	} while (n < max && has_slots(m) && head_time(m) <= bound);
	return n;
}

static int join_next(struct source *src, struct slot *out, int max, uint64_t until,
		     struct error *err)
{
	struct join *j = join_of(src);
	uint64_t now = j->has_clock ? clock_monotonic() : 0, limit = until, bound;
	bool ended = true;
	struct member *m;
	int n = 0;

	for (uint32_t i = 0; i < j->nr_members; i++) {
		m = j->members[i];
		if (!m->is_used || m->ended)
			continue;
		if (!has_slots(m)) {
			int ret = refill(j, m, until, err);

			if (ret < 0)
				return ret;
		}
		if (!has_slots(m) && !m->ended && bound_of(j, m, now) < limit)
			limit = bound_of(j, m, now);
		ended &= m->ended && !has_slots(m);
	}
	if (ended)
		return -ENODATA;
	while (n < max && (m = oldest(j, limit, &bound))) {
		n += take_run(j, m, bound, out + n, max - n);
		/* What it has after that can only be asked for in the next call. */
		if (!has_slots(m) && bound_of(j, m, now) < limit)
			limit = bound_of(j, m, now);
	}
	for (uint32_t i = 0; i < j->nr_members; i++)
		if (has_slots(j->members[i]) && before_head(j->members[i]) < limit)
			limit = before_head(j->members[i]);
	if (limit > src->horizon)
		src->horizon = limit;
	return n;
}

/* Watches the descriptors of the remotes that have nothing to deliver. Returns whether one has. */
static bool watch(struct join *j)
{
	bool any = false;

	for (uint32_t i = 1; i < j->nr_members; i++) {
		struct member *m = j->members[i];
		struct epoll_event event = {};
		short events;
		int fd = m->ended ? -1 : m->source->ops->poll_fd(m->source, &events);

		any |= has_slots(m);
		if (m->fd >= 0 && m->fd != fd)
			epoll_ctl(j->epoll, EPOLL_CTL_DEL, m->fd, NULL);
		m->fd = fd;
		if (fd < 0)
			continue;
		event.events = has_slots(m) ? 0 : events == POLLOUT ? EPOLLOUT : EPOLLIN;
		if (epoll_ctl(j->epoll, EPOLL_CTL_MOD, fd, &event) && errno == ENOENT)
			epoll_ctl(j->epoll, EPOLL_CTL_ADD, fd, &event);
	}
	return any;
}

static int join_wait(struct source *src, int64_t timeout)
{
	struct join *j = join_of(src);
	struct pollfd poll_fd = {.fd = j->epoll, .events = POLLIN};
	struct timespec ts = {};

	if ((watch(j) || has_slots(local(j))) && timeout > BLOCKED_WAIT)
		timeout = BLOCKED_WAIT;
	if (local(j)->is_used && !local(j)->ended)
		return local(j)->source->ops->wait(local(j)->source, timeout);
	ts.tv_sec = timeout / 1000000000;
	ts.tv_nsec = timeout % 1000000000;
	return ppoll(&poll_fd, 1, &ts, NULL) < 0 && errno != EINTR ? -errno : 0;
}

static void join_stop(struct source *src)
{
	struct join *j = join_of(src);

	j->stopped = true;
	for (uint32_t i = 0; i < j->nr_members; i++)
		if (j->members[i]->is_used && j->members[i]->source->ops->stop)
			j->members[i]->source->ops->stop(j->members[i]->source);
}

/* Set-up --------------------------------------------------------------------------------------- */

static struct formats *join_formats(struct source *src, struct error *err)
{
	struct source *one = local(join_of(src))->source;

	return one->ops->formats(one, err);
}

static struct source *source_of(struct join *j, const struct event_request *req)
{
	return j->members[req->member < j->nr_members ? req->member : 0]->source;
}

static uint64_t join_sample_type(struct source *src, const struct event_request *req)
{
	struct source *one = source_of(join_of(src), req);

	return one->ops->sample_type(one, req);
}

static bool join_has_records(struct source *src, uint32_t kind)
{
	struct source *one = local(join_of(src))->source;

	return one->ops->has_records(one, kind);
}

static int join_add_event(struct source *src, const struct event_request *req, struct error *err)
{
	struct join *j = join_of(src);
	struct source *one = source_of(j, req);

	j->by_class[req->class] = req->member;
	j->members[req->member]->is_used = true;
	return one->ops->add_event(one, req, err);
}

static int join_open(struct source *src, const struct source_target *target, struct error *err)
{
	struct join *j = join_of(src);
	struct source_info *info = &src->info;
	int ret = 0;

	j->has_clock = local(j)->is_used;
	local(j)->source->wake_fd = j->epoll;
	for (uint32_t i = 0; i < j->nr_members && !ret; i++) {
		struct source *one = j->members[i]->source;

		if (!j->members[i]->is_used)
			continue;
		ret = one->ops->open(one, target, err);
		j->has_clock |= i && one->info.is_live;
	}
	if (ret)
		return ret;
	if (local(j)->is_used) {
		*info = local(j)->source->info;
	} else {
		info->is_local = false;
		info->clock = (struct source_clock){.id = CLOCK_MONOTONIC, .is_live = true};
		info->is_recorded = !j->has_clock;
		info->wall_sec = join_member(src, 1)->info.wall_sec;
		info->wall_nsec = join_member(src, 1)->info.wall_nsec;
	}
	src->nr_rings = local(j)->source->nr_rings;
	src->ring_tid = local(j)->source->ring_tid;
	return 0;
}

static int join_start(struct source *src, struct error *err)
{
	struct join *j = join_of(src);
	struct source *one = local(j)->source;
	int ret = local(j)->is_used ? one->ops->start(one, err) : 0;

	src->start = local(j)->is_used ? one->start : j->has_clock ? clock_monotonic() : UINT64_MAX;
	return ret;
}

static void join_close_class(struct source *src, uint16_t class)
{
	struct join *j = join_of(src);
	struct source *one = j->members[j->by_class[class]]->source;

	if (one->ops->close_class)
		one->ops->close_class(one, class);
}

static uint64_t join_now(struct source *src)
{
	struct join *j = join_of(src);

	return local(j)->is_used ? local(j)->source->ops->now(local(j)->source)
	       : j->has_clock	 ? clock_monotonic()
				 : UINT64_MAX;
}

static uint64_t join_hold(struct source *src)
{
	struct source *one = local(join_of(src))->source;

	return local(join_of(src))->is_used && one->ops->hold ? one->ops->hold(one) : 0;
}

static void join_read_counts(struct source *src, struct counts *out)
{
	struct source *one = local(join_of(src))->source;

	one->ops->read_counts(one, out);
}

static bool join_account(struct source *src, uint16_t class, struct source_account *out)
{
	struct join *j = join_of(src);
	struct source *one = j->members[j->by_class[class]]->source;

	return one->ops->account && one->ops->account(one, class, out);
}

static int join_next_cpu(struct source *src)
{
	struct source *one = local(join_of(src))->source;

	return local(join_of(src))->is_used && one->ops->next_cpu ? one->ops->next_cpu(one) : -1;
}

static void join_free(struct source *src)
{
	struct join *j = join_of(src);

	for (uint32_t i = 0; i < j->nr_members; i++) {
		j->members[i]->source->ops->free(j->members[i]->source);
		free(j->members[i]);
	}
	if (j->epoll >= 0)
		close(j->epoll);
	free(j);
}

static const struct source_ops join_ops = {
	.formats = join_formats,
	.sample_type = join_sample_type,
	.has_records = join_has_records,
	.add_event = join_add_event,
	.open = join_open,
	.start = join_start,
	.next = join_next,
	.wait = join_wait,
	.stop = join_stop,
	.close_class = join_close_class,
	.now = join_now,
	.hold = join_hold,
	.read_counts = join_read_counts,
	.account = join_account,
	.next_cpu = join_next_cpu,
	.free = join_free,
};

struct source *join_new(struct source *source)
{
	struct join *j = calloc(1, sizeof(*j));

	if (j)
		j->epoll = epoll_create1(EPOLL_CLOEXEC);
	if (!j || j->epoll < 0 || add_member(j, source) < 0) {
		if (j && j->epoll >= 0)
			close(j->epoll);
		free(j);
		return NULL;
	}
	local(j)->is_local = true;
	j->slack = SLACK;
	j->source.ops = &join_ops;
	j->source.decoder = source->decoder;
	j->source.info = source->info;
	j->source.start = UINT64_MAX;
	j->source.wake_fd = -1;
	return &j->source;
}
