/* SPDX-License-Identifier: GPL-2.0-only */
#include "push/push.h"
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <time.h>
#include <unistd.h>
#include "clocks/kvm_ptp.h"
#include "decode/decoder.h"
#include "os/clock.h"
#include "process/signals.h"
#include "push/kernel_symbols.h"
#include "push/push_state.h"
#include "push/receiver.h"

enum {
	BATCHES = 16,		/* between two checks of the session, when all is sent */
	TURN_PERIOD = 1000000,	/* ns between two looks at the sockets while events flow */
	REST_TIME = 2000000000, /* ns to send the rest at the end */
	REST_STEP = 50		/* ms */
};

static struct push *of(struct source *src)
{
	return (struct push *)src;
}

/* Takes over what the inner source tells the session in its struct. */
static void mirror(struct push *p)
{
	struct source *to = &p->source, *from = p->inner;

	to->decoder = from->decoder;
	to->horizon = from->horizon;
	to->start = from->start;
	to->nr_rings = from->nr_rings;
	to->ring_tid = from->ring_tid;
	if (from->notice.text[0] && !to->notice.text[0]) {
		to->notice = from->notice;
		to->is_urgent = from->is_urgent;
		from->notice.text[0] = 0;
		from->is_urgent = false;
	}
	if (from->warning.text[0])
		to->warning = from->warning;
}

static struct formats *push_formats(struct source *src, struct error *err)
{
	struct source *inner = of(src)->inner;

	return inner->ops->formats(inner, err);
}

static uint64_t push_sample_type(struct source *src, const struct event_request *req)
{
	struct source *inner = of(src)->inner;

	return inner->ops->sample_type(inner, req);
}

static bool push_has_records(struct source *src, uint32_t kind)
{
	struct source *inner = of(src)->inner;

	return inner->ops->has_records(inner, kind);
}

static int push_add_event(struct source *src, const struct event_request *req, struct error *err)
{
	struct push *p = of(src);

	if (req->push && pushed_add(&p->pushed, req, err))
		return -ENOMEM;
	p->all.has_addresses |= req->push && (req->callchain || req->resolve);
	return p->inner->ops->add_event(p->inner, req, err);
}

static int set_events(struct push *p, int bit, struct error *err)
{
	uint32_t n;
	struct wire_event *events = pushed_describe(&p->pushed, bit, &n, err);

	if (!events)
		return -ENOMEM;
	outlet_set_events(p->outlets[bit], events, n);
	return 0;
}

/* Notes what the streams have in common. */
static void describe_all(struct push *p)
{
	const struct source_info *info = &p->source.info;

	outlets_describe(&p->all, &p->source);
	p->all.is_foreign = info->host && !info->own_kernel;
	p->all.host = info->host;
	if (p->all.is_live && !p->all.is_foreign && !p->keeps)
		p->all.ptp = kvm_ptp_open("", &p->no_ptp);
	p->converts = info->is_live && p->inner->ops->convert;
	if (p->all.clock.axis)
		p->all.clockid = UINT32_MAX;
	else if (p->converts)
		p->all.clockid = CLOCK_MONOTONIC;
	if (p->all.has_addresses && info->own_kernel && p->all.is_live)
		kernel_symbols_add(&p->all.symbols, p->all.trailer_words);
}

static int push_open(struct source *src, const struct source_target *target, struct error *err)
{
	struct push *p = of(src);
	int ret = 0;

	signal(SIGPIPE, SIG_IGN); /* the run is told by EPIPE, even before its first event */
	/* What fails most likely comes first: opened events take long to close. */
	for (int i = 0; i < p->nr_outlets && !ret; i++)
		ret = outlet_open(p->outlets[i], err);
	if (!ret)
		ret = p->inner->ops->open(p->inner, target, err);
	p->inner->wake_fd = p->all.poller;
	if (src->wake_fd >= 0) { /* somebody waits for more than this */
		struct epoll_event ev = {.events = EPOLLIN};

		epoll_ctl(p->all.poller, EPOLL_CTL_ADD, src->wake_fd, &ev);
	}
	p->source.info = p->inner->info;
	p->pushed.renumbers = !p->source.info.is_recorded;
	mirror(p);
	if (!ret)
		ret = pushed_list(&p->pushed, err);
	for (int i = 0; i < p->nr_outlets && !ret; i++)
		ret = set_events(p, i, err);
	if (!ret)
		describe_all(p);
	return ret;
}

static int turn(struct push *p, struct error *err)
{
	struct epoll_event ev;
	bool called = epoll_wait(p->all.poller, &ev, 1, 0) > 0;
	uint64_t horizon = push_clock_time(&p->all.clock, p->source.horizon);
	int ret = 0;

	p->turned_at = clock_monotonic();
	for (int i = 0; i < p->nr_outlets && !ret; i++)
		ret = outlet_turn(p->outlets[i], p->turned_at, horizon, called, err);
	if (ret != -EPIPE)
		return ret;
	/* The reader of standard output is gone: the run ends, as it does without push. */
	p->left = 0;
	return 0;
}

/* HELLO tells the rate of cycles, which takes some time to measure. */
static void wait_for_rate(const struct push *p)
{
	uint64_t age = clock_monotonic() - p->all.first_pair.mono;
	struct timespec rest = {.tv_nsec = RATE_TIME - age};

	if (p->all.is_live && push_clock_is_cycles(&p->all.clock) && age < RATE_TIME)
		nanosleep(&rest, NULL);
}

/* Files get what comes first, too. */
static int push_start(struct source *src, struct error *err)
{
	struct push *p = of(src);
	int ret;

	wait_for_rate(p);
	ret = turn(p, err);

	if (!ret && p->inner->ops->start)
		ret = p->inner->ops->start(p->inner, err);
	mirror(p);
	return ret;
}

static bool is_behind(const struct push *p)
{
	for (int i = 0; i < p->nr_outlets; i++)
		if (outlet_is_behind(p->outlets[i]))
			return true;
	return false;
}

int push_finish(struct push *p, struct error *err)
{
	uint64_t until = clock_monotonic() + REST_TIME;
	struct pollfd poll_fd = {.fd = p->all.poller, .events = POLLIN};
	int ret;

	if (p->finished)
		return 0;
	p->finished = true;
	for (int i = 0; i < p->nr_outlets; i++)
		outlet_end(p->outlets[i]);
	while (!(ret = turn(p, err)) && is_behind(p) && p->turned_at < until && !signals_must_end())
		poll(&poll_fd, 1, REST_STEP);
	return ret;
}

/* A recording is not read faster than its receivers read, and not before there are any. */
static bool must_wait(const struct push *p)
{
	for (int i = 0; p->source.info.is_recorded && !p->stopped && i < p->nr_outlets; i++)
		if (outlet_is_full(p->outlets[i]))
			return true;
	return false;
}

static int wait_for_receivers(struct push *p, struct error *err)
{
	struct pollfd poll_fd = {.fd = p->all.poller, .events = POLLIN};
	int ret = turn(p, err);

	if (!ret && must_wait(p))
		poll(&poll_fd, 1, REST_STEP);
	return ret;
}

static int push_next(struct source *src, struct slot *out, int max, uint64_t until,
		     struct error *err)
{
	struct push *p = of(src);
	int n, kept, ret;

	if (src->counts_rest) {
		p->inner->counts_rest = true;
		return p->inner->ops->next(p->inner, out, max, until, err);
	}
	for (int i = 0; i < BATCHES; i++) {
		if (must_wait(p))
			return wait_for_receivers(p, err);
		n = p->left ? p->inner->ops->next(p->inner, out, max, until, err) : -ENODATA;
		mirror(p);
		ret = pushed_follow(&p->pushed, p->source.decoder, err);
		if (ret)
			return ret;
		if (n == -ENODATA) {
			ret = push_finish(p, err);
			return ret ? ret : -ENODATA;
		}
		if (n < 0)
			return n;
		kept = push_share(p, out, n);
		if (p->all.clock.is_negative)
			return error_set(err, -ERANGE,
					 "push: --clock-offset makes times negative, which the "
					 "stream cannot contain");
		if (!n || clock_monotonic() - p->turned_at > TURN_PERIOD) {
			ret = turn(p, err);
			if (ret)
				return ret;
		}
		if (kept || !n)
			return kept;
	}
	p->has_more = true;
	return 0;
}

static bool has_incomplete_group(const struct push *p)
{
	for (int i = 0; i < p->nr_outlets; i++)
		if (p->outlets[i]->group && p->outlets[i]->group->size)
			return true;
	return false;
}

static int push_wait(struct source *src, int64_t timeout)
{
	struct push *p = of(src);

	if (p->has_more) {
		p->has_more = false;
		return 0;
	}
	if (has_incomplete_group(p) && timeout > FLUSH_AFTER)
		timeout = FLUSH_AFTER;
	return p->inner->ops->wait(p->inner, timeout);
}

static void push_stop(struct source *src)
{
	of(src)->stopped = true;
	of(src)->inner->ops->stop(of(src)->inner);
}

static void push_close_class(struct source *src, uint16_t class)
{
	of(src)->inner->ops->close_class(of(src)->inner, class);
}

static uint64_t push_now(struct source *src)
{
	return of(src)->inner->ops->now(of(src)->inner);
}

static uint64_t push_hold(struct source *src)
{
	return of(src)->inner->ops->hold(of(src)->inner);
}

static void push_read_counts(struct source *src, struct counts *out)
{
	of(src)->inner->ops->read_counts(of(src)->inner, out);
}

/* What was only sent went elsewhere. */
static bool push_account(struct source *src, uint16_t class, struct source_account *out)
{
	struct push *p = of(src);

	if (!p->inner->ops->account(p->inner, class, out))
		return false;
	for (int i = 0; i < p->pushed.nr_attrs; i++)
		if (decoder_has_class(p->pushed.first, i, class))
			out->elsewhere += p->pushed.attrs[i].taken;
	return true;
}

static int push_next_cpu(struct source *src)
{
	return of(src)->inner->ops->next_cpu(of(src)->inner);
}

static uint64_t push_position(const struct source *src, uint64_t *total)
{
	const struct source *inner = ((const struct push *)src)->inner;

	return inner->ops->position(inner, total);
}

static uint64_t push_convert(struct source *src, uint64_t time)
{
	return of(src)->inner->ops->convert(of(src)->inner, time);
}

static int push_decode(struct source *src, const struct slot *slot, struct event *ev)
{
	return of(src)->inner->ops->decode(of(src)->inner, slot, ev);
}

static int push_decode_run(struct source *src, const struct slot *slots, int n, uint64_t base,
			   uint64_t from, struct event *ev)
{
	return of(src)->inner->ops->decode_run(of(src)->inner, slots, n, base, from, ev);
}

/* Frees all but the inner source. */
static void free_own(struct push *p)
{
	for (int i = 0; i < p->nr_outlets; i++)
		outlet_free(p->outlets[i]);
	pushed_clear(&p->pushed);
	outlets_clear(&p->all);
	free(p);
}

static void push_free(struct source *src)
{
	struct push *p = of(src);
	struct source *inner = p->inner;

	push_finish(p, NULL);
	free_own(p);
	inner->ops->free(inner);
}

static void choose_ops(struct push *p)
{
	const struct source_ops *inner = p->inner->ops;

	p->ops = (struct source_ops){
		.formats = push_formats,
		.sample_type = push_sample_type,
		.has_records = push_has_records,
		.add_event = push_add_event,
		.open = push_open,
		.start = push_start,
		.next = push_next,
		.wait = inner->wait ? push_wait : NULL,
		.stop = inner->stop ? push_stop : NULL,
		.close_class = inner->close_class ? push_close_class : NULL,
		.now = push_now,
		.hold = inner->hold ? push_hold : NULL,
		.read_counts = inner->read_counts ? push_read_counts : NULL,
		.account = inner->account ? push_account : NULL,
		.next_cpu = inner->next_cpu ? push_next_cpu : NULL,
		.position = inner->position ? push_position : NULL,
		.convert = inner->convert ? push_convert : NULL,
		.decode = inner->decode ? push_decode : NULL,
		.decode_run = inner->decode_run ? push_decode_run : NULL,
		.free = push_free,
	};
	p->source.ops = &p->ops;
}

struct push *push_new(struct source *inner, struct error *err)
{
	struct push *p = calloc(1, sizeof(*p));

	if (!p) {
		error_set(err, -ENOMEM, "out of memory");
		return NULL;
	}
	p->inner = inner;
	p->pushed.source = inner;
	p->source.decoder = inner->decoder;
	p->source.info = inner->info;
	p->source.wake_fd = -1;
	p->left = UINT64_MAX;
	choose_ops(p);
	mirror(p);
	if (outlets_init(&p->all, err)) {
		free_own(p);
		return NULL;
	}
	return p;
}

struct source *push_source(struct push *p)
{
	return &p->source;
}

int push_add(struct push *p, const char *address, struct error *err)
{
	struct outlet *o;

	for (int i = 0; i < p->nr_outlets; i++)
		if (!strcmp(channel_address(p->outlets[i]->channel), address))
			return i;
	if (p->nr_outlets == PUSH_MAX)
		return error_set(err, -E2BIG, "push to more than %d addresses", PUSH_MAX);
	o = outlet_new(&p->all, address, err);
	if (!o)
		return -EINVAL;
	p->outlets[p->nr_outlets] = o;
	return p->nr_outlets++;
}

void push_keep(struct push *p)
{
	p->keeps = true;
}

int push_set_secret(struct push *p, const char *path, struct error *err)
{
	return secret_read(&p->all.secret, path, err);
}

void push_set_clock(struct push *p, struct clock_axis *axis, int64_t offset)
{
	p->all.clock.axis = axis;
	p->all.clock.offset = offset;
	p->pushed.has_own_clock = true;
}

void push_limit(struct push *p, uint64_t samples)
{
	p->left = samples;
}

const char *push_no_ptp(const struct push *p)
{
	return p->no_ptp.text;
}

const char *push_take_messages(struct push *p)
{
	struct bytes *text = &p->all.messages;

	if (!text->size || text->failed)
		return "";
	bytes_add(text, "", 1);
	text->size = 0;
	return text->failed ? "" : (const char *)text->data;
}

void push_read_totals(const struct push *p, int bit, struct push_totals *out)
{
	const struct outlet *o = p->outlets[bit];
	struct push_receiver r;

	*out = (struct push_totals){.events = o->produced, .sent = o->sent, .dropped = o->dropped};
	while (push_read_receiver(p, bit, out->receivers, &r)) {
		out->sent += r.sent;
		out->dropped += r.dropped;
		out->receivers++;
	}
}

int push_read_receiver(const struct push *p, int bit, uint32_t index, struct push_receiver *out)
{
	const struct outlet *o = p->outlets[bit];

	if (index >= o->nr_receivers)
		return 0;
	*out = (struct push_receiver){.name = o->receivers[index]->name,
				      .sent = o->receivers[index]->sent,
				      .dropped = o->receivers[index]->dropped};
	if (p->finished)
		out->dropped += receiver_queued(o->receivers[index]);
	return 1;
}
