/* SPDX-License-Identifier: GPL-2.0-only */
#include "live/live_state.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>
#include "decode/decoder.h"
#include "decode/records.h"
#include "formats/formats.h"
#include "live/live.h"
#include "os/hotplug.h"
#include "live/ring.h"
#include "os/clock.h"
#include "os/cpus.h"
#include "process/signals.h"

enum {
	NAP_MIN = 1000000, /* ns */
	NAP_MAX = 10000000 /* ns */
};

/* Delivers the gaps that start up to `until`. Gaps are always found later than they start, so their
 * late delivery does not matter. */
static int take_gaps(struct live *live, struct slot *out, int max, uint64_t until)
{
	int n = 0;

	for (uint32_t i = 0; i < live->nr_gaps && n < max; i++) {
		struct gap *h = &live->gaps[i];

		if (h->is_reported || h->from > until)
			continue;
		h->is_reported = true;
		out[n++] = (struct slot){.time = h->from, .rec = &h->loss, .ring = UINT32_MAX};
	}
	return n;
}

/* Delivers the losses of BPF ring buffers. Their time is unknown. */
static int bpf_loss(struct live *live, struct slot *out)
{
	uint64_t lost = live->bpf ? bpf_rings_lost(live->bpf) : 0;

	if (!lost)
		return 0;
	live->bpf_loss = (struct loss){
		.header = {.type = PERF_RECORD_LOST, .size = sizeof(live->bpf_loss)},
		.lost = lost,
		.time = merge_time(live->merge),
		.cpu = UINT32_MAX,
	};
	*out = (struct slot){
		.time = merge_delivered(live->merge), .rec = &live->bpf_loss, .ring = UINT32_MAX};
	return 1;
}

/* Delivers losses after the last record. The kernel reports a loss together with the next record
 * that fits; these are known only from the counters. */
static int final_loss(struct live *live, struct slot *out)
{
	uint64_t lost = live->unreported;

	live->final_loss_sent = true;
	for (uint32_t i = 0; i < live->nr_attached; i++)
		lost += live_unreported(live, live->attached[i]->evset);
	if (live->bpf)
		lost += bpf_rings_unreported(live->bpf);
	if (live->captures)
		lost += capture_rings_unreported(live->captures);
	if (!lost)
		return 0;
	live->final_loss = (struct loss){
		.header = {.type = PERF_RECORD_LOST, .size = sizeof(live->final_loss)},
		.lost = lost,
		.time = merge_delivered(live->merge),
		.cpu = UINT32_MAX,
	};
	*out = (struct slot){
		.time = merge_delivered(live->merge), .rec = &live->final_loss, .ring = UINT32_MAX};
	return 1;
}

static void set_paused(struct live *live, bool paused)
{
	for (uint32_t i = 0; i < live->nr_attached; i++)
		evset_pause(live->attached[i]->evset, paused);
	if (live->captures)
		capture_rings_pause(live->captures, paused);
}

static bool has_dumped(const struct live *live)
{
	for (uint32_t i = 0; i < merge_nr_rings(live->merge); i++) {
		struct ring *ring = merge_ring(live->merge, i);

		if (ring_is_backward(ring) && ring_peek(ring) != UINT64_MAX)
			return true;
	}
	return false;
}

/* Whether a ring that is not overwritten, such as one of task records, must be read now. */
static bool is_filling(const struct live *live)
{
	for (uint32_t i = 0; i < merge_nr_rings(live->merge); i++) {
		struct ring *ring = merge_ring(live->merge, i);

		if (!ring_is_backward(ring) && ring_snapshot(ring) > ring_size(ring) / 2)
			return true;
	}
	return false;
}

/* Pauses and dumps overwritten rings at the end of an interval or of the run. Returns 1 if there is
 * something to read, 0 if not, or -ENOMEM. */
static int dump_rings(struct live *live, uint64_t until, struct error *err)
{
	int ret = 0;

	if (live->dumping && !has_dumped(live)) {
		live->dumping = false;
		merge_hold(live->merge, true);
		if (!live->stopped)
			set_paused(live, false);
	}
	if (live->dumping || live->dumped_last)
		return 1;
	if (!live->stopped && (until == live->dumped_until || clock_monotonic() <= until))
		return until == live->dumped_until || is_filling(live);
	live->dumping = true;
	live->dumped_until = until;
	live->dumped_last = live->stopped;
	merge_hold(live->merge, false);
	set_paused(live, true);
	live->source.whole_from = 0;
	for (uint32_t i = 0; i < merge_nr_rings(live->merge) && !ret; i++) {
		struct ring *ring = merge_ring(live->merge, i);

		if (!ring_is_backward(ring))
			continue;
		ret = ring_dump(ring, live->source.dump_from, live->stopped ? UINT64_MAX : until);
		if (ring_whole_from(ring) > live->source.whole_from)
			live->source.whole_from = ring_whole_from(ring);
	}
	live->has_overwritten |= live->source.whole_from > 0;
	return ret ? error_set(err, ret, "out of memory for the records of the rings") : 1;
}

static int live_next(struct source *src, struct slot *out, int max, uint64_t until,
		     struct error *err)
{
	struct live *live = (struct live *)src;
	int n;

	merge_release(live->merge);
	if (live->evlist->target.overwrite) {
		n = dump_rings(live, until, err);
		if (n <= 0)
			return n;
	}
	if (live->hotplug >= 0 && !live->stopped && merge_time(live->merge) >= live->hotplug_next)
		live_follow_cpus(live);
	n = merge_next(live->merge, out, max, until, &src->horizon);
	if (n < max)
		n += take_gaps(live, out + n, max - n, src->horizon);
	if (n < max)
		n += bpf_loss(live, out + n);
	if (n || !live->stopped)
		return n;
	if (until != UINT64_MAX && !merge_drained(live->merge))
		return 0;
	if (!live->final_loss_sent && final_loss(live, out))
		return 1;
	return -ENODATA;
}

/* Polls the next descriptor of a ring, because the thread of the current one has ended. */
static void poll_next(struct live *live, uint32_t ring)
{
	struct origin *o = &live->origins[ring];

	live->poll[ring].fd = evset_ring_fd(o->evset, o->ring, ++o->polled);
	live->nr_ended += live->poll[ring].fd < 0;
}

/* Sleeps to let level-triggered rings fill, which are ready from their first record on. The time is
 * adapted to the rate of records. */
static void nap(struct live *live, int64_t timeout)
{
	struct timespec ts = {.tv_nsec = timeout < live->nap ? timeout : live->nap};
	uint64_t percent = 0;

	nanosleep(&ts, NULL);
	for (uint32_t i = 0; i < merge_nr_rings(live->merge); i++) {
		struct ring *ring = merge_ring(live->merge, i);
		uint64_t full = ring_snapshot(ring) * 100 / ring_size(ring);

		if (live->origins[i].is_level && full > percent)
			percent = full;
	}
	if (percent > 10 && live->nap > NAP_MIN)
		live->nap /= 2;
	else if (percent < 5 && live->nap < NAP_MAX)
		live->nap *= 2;
}

/* Polls what else can end a wait. CPUs are not followed between the dumps of overwritten rings, so
 * their announcements would stay unread. */
static void poll_more(const struct live *live, struct pollfd *more)
{
	bool follows = !live->stopped && !live->evlist->target.overwrite;

	more[MORE_WAKE] = (struct pollfd){.fd = live->source.wake_fd, .events = POLLIN};
	more[MORE_SIGNALS] = (struct pollfd){.fd = signals_fd(), .events = POLLIN};
	more[MORE_HOTPLUG] = (struct pollfd){.fd = follows ? live->hotplug : -1, .events = POLLIN};
	more[MORE_CAPTURES] = (struct pollfd){
		.fd = live->captures ? capture_rings_fd(live->captures) : -1, .events = POLLIN};
}

static int live_wait(struct source *src, int64_t timeout)
{
	struct live *live = (struct live *)src;
	uint32_t nr_rings = merge_nr_rings(live->merge);
	struct pollfd *more = &live->poll[nr_rings];
	bool is_level_ready = false;
	struct timespec ts;
	int ret;

	if (live->has_early && timeout > (int64_t)merge_slack(live->merge))
		timeout = merge_slack(live->merge);
	live->has_early = false;
	ts = (struct timespec){.tv_sec = timeout / 1000000000, .tv_nsec = timeout % 1000000000};
	poll_more(live, more);
	ret = ppoll(live->poll, nr_rings + NR_MORE, &ts, NULL);
	merge_relax(live->merge);
	if (ret < 0)
		return -errno;
	if (more[MORE_SIGNALS].revents)
		signals_clear_fd();
	if (more[MORE_HOTPLUG].revents)
		live->hotplug_next = 0;
	if (more[MORE_CAPTURES].revents)
		live->has_early = capture_rings_answer(live->captures);
	for (uint32_t i = 0; i < nr_rings; i++) {
		const struct origin *o = &live->origins[i];

		is_level_ready |= o->is_level && live->poll[i].revents & POLLIN;
		if (o->evset && live->poll[i].fd >= 0 &&
		    (live->poll[i].revents & (POLLHUP | POLLERR)))
			poll_next(live, i);
	}
	if (ret > 0 && is_level_ready)
		nap(live, timeout);
	/* Rings that last do not tell whether the threads have ended. */
	return live->evlist->target.tids && live->nr_ended &&
			       live->nr_ended + live->nr_lasting == nr_rings
		       ? -ESRCH
		       : 0;
}

static void live_stop(struct source *src)
{
	struct live *live = (struct live *)src;

	live->stopped = true;
	merge_stop(live->merge);
	for (uint32_t i = 0; i < live->nr_attached; i++)
		evset_disable(live->attached[i]->evset);
	if (live->bpf)
		bpf_rings_stop(live->bpf);
	if (live->captures)
		capture_rings_stop(live->captures);
	/* After the programs whose events they may count, too. */
	for (uint32_t i = 0; i < live->nr_counters; i++)
		counters_disable(live->counters[i]);
}

static void live_close_class(struct source *src, uint16_t class)
{
	struct live *live = (struct live *)src;

	for (uint32_t i = 0; i < live->nr_attached; i++)
		evset_disable_class(live->attached[i]->evset, class);
	if (live->captures)
		capture_rings_stop_class(live->captures, class);
}

static uint64_t live_now(struct source *src)
{
	return ((struct live *)src)->evlist->has_clock ? clock_monotonic() : UINT64_MAX;
}

static uint64_t live_hold(struct source *src)
{
	return merge_slack(((struct live *)src)->merge);
}

static void live_read_counts(struct source *src, struct counts *out)
{
	struct live *live = (struct live *)src;

	for (uint32_t i = 0; i < live->nr_counters; i++)
		counters_read(live->counters[i]);
	count_sums_take(live->sums, out);
}

static bool live_account(struct source *src, uint16_t class, struct source_account *out)
{
	struct live *live = (struct live *)src;
	bool is_known = false, is_whole = !live->evlist->target.overwrite;
	const struct event_request *req;
	uint32_t at = 0;

	while (at < live->nr_requests && live->requests[at].class != class)
		at++;
	req = &live->requests[at];
	if (at == live->nr_requests || req->counted || req->is_output)
		return false;
	/* Overwritten rings are read in the end, and until then nobody knows what is in them. */
	is_whole |= live->stopped && !live->has_overwritten;
	if (req->captured.rings) {
		if (live->stopped)
			capture_rings_account(live->captures, is_whole, out);
		return live->stopped;
	}
	*out = live->closed[at];
	for (uint32_t i = 0; i < live->nr_attached; i++)
		is_known |= evset_account(live->attached[i]->evset, class, out);
	out->per_sample = evlist_per_sample(req);
	out->is_exact = is_whole && evlist_is_exact(live->evlist, req);
	return is_known;
}

static uint32_t live_programs(struct source *src, uint16_t class, uint32_t *ids, uint32_t max)
{
	struct live *live = (struct live *)src;

	return live->nr_attached ? evset_programs(live->attached[0]->evset, class, ids, max) : 0;
}

static int live_decode(struct source *src, const struct slot *slot, struct event *ev)
{
	return bpf_decode(((struct live *)src)->outputs, slot, ev);
}

static int live_decode_run(struct source *src, const struct slot *slots, int n, uint64_t base,
			   uint64_t from, struct event *ev)
{
	return bpf_decode_run(((struct live *)src)->outputs, slots, n, base, from, ev);
}

static struct formats *live_formats(struct source *src, struct error *err)
{
	struct live *live = (struct live *)src;

	if (!live->formats)
		live->formats = formats_open_tracefs(err);
	return live->formats;
}

static uint64_t live_sample_type(struct source *src, const struct event_request *req)
{
	(void)src;
	return evlist_sample_type(req);
}

static bool live_has_records(struct source *src, uint32_t kind)
{
	(void)src;
	return !records_support(kind);
}

static int live_add_event(struct source *src, const struct event_request *req, struct error *err)
{
	struct live *live = (struct live *)src;
	struct event_request *grown =
		reallocarray(live->requests, live->nr_requests + 1, sizeof(*grown));

	if (!grown)
		return error_set(err, -ENOMEM, "out of memory");
	live->requests = grown;
	if (event_request_copy(&grown[live->nr_requests], req))
		return error_set(err, -ENOMEM, "out of memory");
	live->nr_requests++;
	return 0;
}

static void raise_file_limit(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) || limit.rlim_cur == limit.rlim_max)
		return;
	limit.rlim_cur = limit.rlim_max;
	setrlimit(RLIMIT_NOFILE, &limit);
}

/* Fails before anything is opened: closing many tracepoints again takes long. */
static int check_file_limit(const struct evlist *evlist, struct error *err)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) || evlist_nr_files(evlist) <= limit.rlim_cur)
		return 0;
	return evlist_open_error(evlist, NULL, -EMFILE, err);
}

/* Opens the maps to which BPF programs write. */
static int open_outputs(struct live *live, struct error *err)
{
	live->outputs = calloc(live->nr_requests, sizeof(*live->outputs));
	if (!live->outputs)
		return error_set(err, -ENOMEM, "out of memory");
	for (uint32_t i = 0; i < live->nr_requests; i++) {
		const struct event_request *req = &live->requests[i];

		if (req->is_output)
			live->outputs[live->nr_outputs++] = (struct bpf_output_class){
				.map = req->output, .payload = req->payload, .class = req->class};
	}
	if (!live->nr_outputs)
		return 0;
	live->bpf = bpf_rings_open(live->outputs, live->nr_outputs, &live->evlist->cpus,
				   live->evlist->has_lost, live->source.decoder, err);
	return live->bpf ? 0 : -EINVAL;
}

static int open_captures(struct live *live, const struct source_target *target, struct error *err)
{
	struct cpus cpus;
	int ret = 0;

	memset(&cpus, 0xff, sizeof(cpus));
	if (target->cpus)
		ret = cpus_parse(&cpus, target->cpus, err);
	return ret ? ret
		   : capture_rings_open(live->requests, live->nr_requests, &cpus,
					live->source.decoder, &live->captures, err);
}

static int enable_tasks(struct live *live, struct error *err)
{
	int ret = 0;

	for (uint32_t i = 0; i < live->nr_attached && !ret; i++)
		ret = evset_enable_tasks(live->attached[i]->evset, err);
	return ret;
}

/* Opens all events; only those that report tasks are enabled. */
static int live_open(struct source *src, const struct source_target *target, struct error *err)
{
	struct live *live = (struct live *)src;
	struct decoder *decoder = src->decoder;
	int ret;

	raise_file_limit();
	live->evlist = evlist_new(live->requests, live->nr_requests, target, decoder, err);
	if (!live->evlist)
		return -EINVAL;
	ret = check_file_limit(live->evlist, err);
	if (ret)
		return ret;
	/* Open this before the list of CPUs is used. */
	live->hotplug = hotplug_open();
	live->watched = live->evlist->cpus;
	live->merge = merge_new(live->evlist->has_clock);
	live->sums = count_sums_new(live->evlist->nr_counted);
	live->closed = calloc(live->nr_requests + 1, sizeof(*live->closed));
	if (!live->merge || !live->sums || !live->closed)
		return error_set(err, -ENOMEM, "out of memory");
	ret = live_attach_all(live, err);
	if (!ret)
		ret = open_outputs(live, err);
	if (!ret)
		ret = open_captures(live, target, err);
	if (!ret)
		ret = decoder_check(decoder, err);
	if (!ret)
		ret = live_add_rings(live, err);
	if (!ret)
		ret = enable_tasks(live, err);
	clock_wall_zero(&src->info.wall_sec, &src->info.wall_nsec);
	return ret;
}

static int live_start(struct source *src, struct error *err)
{
	struct live *live = (struct live *)src;
	bool on_exec = live->evlist->target.enable_on_exec;
	int ret = 0;

	for (uint32_t i = 0; i < live->nr_attached && !ret; i++) {
		struct evset *evset = live->attached[i]->evset;

		ret = on_exec ? evset_enable_everywhere(evset, err) : evset_enable(evset, err);
	}
	if (!ret && !on_exec)
		ret = live_enable_counters(live, -1, err);
	if (!ret && live->bpf)
		ret = bpf_rings_enable(live->bpf, err);
	if (!ret && live->captures)
		capture_rings_enable(live->captures);
	/* All rings are enabled now. The session drops earlier records of single rings. */
	if (!ret && live->evlist->has_clock)
		src->start = clock_monotonic();
	live->hotplug_checked = src->start;
	return ret;
}

static void live_free(struct source *src)
{
	struct live *live = (struct live *)src;

	merge_free(live->merge);
	free((uint16_t *)src->info.nodes);
	for (uint32_t i = 0; i < live->nr_counters; i++)
		counters_close(live->counters[i]);
	free(live->counters);
	count_sums_free(live->sums);
	bpf_rings_close(live->bpf);
	capture_rings_close(live->captures);
	for (uint32_t i = 0; i < live->nr_attached; i++) {
		evset_close(live->attached[i]->evset);
		free(live->attached[i]);
	}
	free(live->attached);
	evlist_free(live->evlist);
	if (live->hotplug >= 0)
		close(live->hotplug);
	for (uint32_t i = 0; i < live->nr_requests; i++)
		event_request_clear(&live->requests[i]);
	free(live->requests);
	free(live->closed);
	free(live->outputs);
	formats_free(live->formats);
	decoder_free(live->source.decoder);
	free(live->gaps);
	free(live->poll);
	free(live->origins);
	free(live->ring_tid);
	free(live);
}

static const struct source_ops live_ops = {
	.formats = live_formats,
	.sample_type = live_sample_type,
	.has_records = live_has_records,
	.add_event = live_add_event,
	.open = live_open,
	.start = live_start,
	.next = live_next,
	.wait = live_wait,
	.stop = live_stop,
	.close_class = live_close_class,
	.now = live_now,
	.hold = live_hold,
	.read_counts = live_read_counts,
	.account = live_account,
	.programs = live_programs,
	.next_cpu = live_next_cpu,
	.decode = live_decode,
	.decode_run = live_decode_run,
	.free = live_free,
};

struct source *live_new(struct error *err)
{
	struct live *live = calloc(1, sizeof(*live));

	if (live)
		live->source.decoder = decoder_new();
	if (!live || !live->source.decoder) {
		free(live);
		error_set(err, -ENOMEM, "out of memory");
		return NULL;
	}
	live->source.ops = &live_ops;
	live->source.start = UINT64_MAX;
	live->source.wake_fd = -1;
	live->source.info.is_local = true;
	live->source.info.own_kernel = true;
	live->source.info.nodes = cpus_nodes();
	live->source.info.clock = (struct source_clock){.id = CLOCK_MONOTONIC, .is_live = true};
	live->nap = NAP_MIN;
	live->hotplug = -1;
	return &live->source;
}
