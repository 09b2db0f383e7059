/* SPDX-License-Identifier: GPL-2.0-only */
#include "pull/remote_state.h"
#include <errno.h>
#include <math.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>
#include "clocks/vm.h"
#include "decode/decoder.h"
#include "error.h"
#include "os/clock.h"
#include "pull/link.h"
#include "recording/recording.h"
#include "wire/channel.h"
#include "wire/preamble.h"

enum {
	PING_PERIOD = 1000000000, /* ns */
	LISTEN_PERIOD = 1000000000,
	DRAIN_TIME = 1000000000 /* ns to wait at the end of the run for what was sent before it */
};

static bool is_ours(const struct remote *r)
{
	return r->hello->version;
}

/* Own records ---------------------------------------------------------------------------------- */

static void notify(struct remote *r, const char *what, const char *why)
{
	struct error *notice = &r->source.notice;

	error_set(notice, 0, "%s%s%s %s%s%s", notice->text, notice->text[0] ? "; " : "", what,
		  channel_peer(link_channel(r->link)), why[0] ? ": " : "", why);
	r->source.is_urgent = true;
}

/* A stream of profscript is told when its first group is there: from then on nothing is missed. */
static void tell_connected(struct remote *r)
{
	if (!r->told && link_is_temporary(r->link))
		notify(r, "Connected to", "");
	r->told = true;
}

static bool has_tag(const struct perf_event_header *rec, const char *tag, size_t size)
{
	const struct wire_head *head = (const void *)rec;

	return rec->size >= size && !memcmp(head->tag, tag, WIRE_TAG);
}

static uint64_t read_group(struct remote *r, const struct wire_group *group)
{
	struct gaps_read read;

	if (group->last_time < group->first_time || group->last_time >= INT64_MAX) {
		r->is_damaged = true;
		return 0;
	}
	recording_read(r->stream, &read.samples, &read.lost, &read.unknown);
	gaps_group(&r->gaps, group, r->hello->epoch,
		   remote_clock_convert(&r->clock, group->first_time),
		   remote_clock_convert(&r->clock, group->last_time), &read);
	link_works(r->link);
	tell_connected(r);
	return group->last_time;
}

static void read_pair(struct remote *r, const struct wire_pair *pair)
{
	r->pair = *pair;
	remote_clock_pair(&r->clock, pair, r->hello);
}

/* Reads a record that perf does not know. Unknown tags are those of later versions. */
static uint64_t read_own(void *arg, const struct perf_event_header *rec)
{
	struct remote *r = arg;

	if (rec->size < sizeof(struct wire_head))
		return 0;
	if (has_tag(rec, WIRE_GROUP, sizeof(struct wire_group)))
		return read_group(r, (const void *)rec);
	if (has_tag(rec, WIRE_PAIR, sizeof(struct wire_pair)))
		read_pair(r, (const void *)rec);
	else if (has_tag(rec, WIRE_PTP, sizeof(struct wire_ptp)))
		remote_clock_ptp(&r->clock, (const void *)rec);
	else if (has_tag(rec, WIRE_PONG, sizeof(struct wire_pong)))
		remote_clock_pong(&r->clock, (const void *)rec);
	else if (has_tag(rec, WIRE_BYE, sizeof(struct wire_bye)))
		r->said_bye = true;
	return 0;
}

/* Connecting ----------------------------------------------------------------------------------- */

static void use_first(struct remote *r, struct source *stream)
{
	struct source_info *info = &r->source.info;

	r->first = stream;
	*info = stream->info;
	info->host =
		r->hello->hostname[0] ? r->hello->hostname : channel_address(link_channel(r->link));
	info->is_live = is_ours(r) && channel_kind(link_channel(r->link)) != CHANNEL_FILE;
	if (info->is_live) /* times are converted */
		info->clock = (struct source_clock){.id = CLOCK_MONOTONIC, .is_live = true};
	r->source.nr_rings = stream->nr_rings;
	r->source.start = UINT64_MAX;
	if (is_ours(r)) /* it may be booted from the same file, and be at another address */
		info->own_kernel = stream->info.own_kernel = r->is_own_kernel;
	if (r->clock.is_known)
		clock_wall_zero(&info->wall_sec, &info->wall_nsec);
}

/* Uses the process that is the virtual machine now: it may have been started again. */
static void find_vm_again(struct remote *r)
{
	struct error ignored;
	struct vm *vm = r->vm ? vm_find("", r->vm_given, &ignored) : NULL;

	if (!vm || vm->pid == r->vm->pid || remote_clock_set_vm(&r->clock, vm)) {
		vm_free(vm);
		return;
	}
	vm_free(r->vm);
	r->vm = vm;
}

/* Takes over what the sender says about itself before its first group. */
static void meet(struct remote *r)
{
	struct wire_hello here = {};

	r->said_bye = r->is_damaged = r->is_silent = r->told = r->is_own_kernel = false;
	r->heard_at = clock_monotonic();
	slew_restart(&r->slew);
	if (r->first)
		find_vm_again(r);
	if (!is_ours(r))
		return;
	preamble_fill(&here);
	r->is_own_kernel = !memcmp(here.boot_id, r->hello->boot_id, sizeof(here.boot_id));
	remote_clock_start(&r->clock, r->hello, r->is_own_kernel);
	if (link_pair(r->link))
		read_pair(r, link_pair(r->link));
}

static int open_stream(struct remote *r, struct error *err)
{
	struct recording_stream input = {
		.own = read_own,
		.arg = r,
		.formats = r->first ? r->first->ops->formats(r->first, NULL) : NULL,
	};
	struct source *stream;
	int ret;

	meet(r);
	input.own_kernel = r->is_own_kernel;
	stream = link_open(r->link, &input, err);
	if (!stream)
		return -EPROTO;
	if (r->first) {
		ret = requests_give(&r->requests, r->first, stream, err);
		if (ret) {
			stream->ops->free(stream);
			return ret;
		}
	} else {
		use_first(r, stream);
	}
	r->stream = stream;
	r->source.decoder = stream->decoder;
	r->ping_at = 0;
	if (!is_ours(r))
		tell_connected(r);
	return 0;
}

int remote_connect_step(struct remote *r, struct error *err)
{
	int ret = link_step(r->link, err);

	return ret > 0 ? open_stream(r, err) : ret;
}

/* Reading -------------------------------------------------------------------------------------- */

static void send_ping(struct remote *r)
{
	uint64_t now = clock_monotonic();
	struct wire_ping ping;

	if (!(r->hello->flags & WIRE_PONGS) || r->is_own_kernel || now < r->ping_at ||
	    !link_is_temporary(r->link))
		return;
	r->ping_at = now + PING_PERIOD;
	remote_clock_ping(&r->clock, &ping);
	/* A ping that does not fit now is of no use later. */
	if (channel_is_socket(link_channel(r->link)))
		send(recording_fd(r->stream), &ping, sizeof(ping), MSG_DONTWAIT | MSG_NOSIGNAL);
	else if (write(recording_fd(r->stream), &ping, sizeof(ping)) < 0)
		r->ping_at = UINT64_MAX; /* the device goes one way only */
}

static void drop_stream(struct remote *r)
{
	struct gaps_read read;

	recording_read(r->stream, &read.samples, &read.lost, &read.unknown);
	r->read_before += read.samples;
	r->dropped += recording_twins(r->stream);
	if (r->stream != r->first)
		r->stream->ops->free(r->stream);
	else
		recording_close(r->stream);
	r->stream = NULL;
	r->source.decoder = r->first->decoder;
}

/* The run ends here, although more may have been sent before its end. */
static void add_last_gap(struct remote *r, uint64_t lost)
{
	uint64_t from = r->source.horizon;

	gaps_add(&r->gaps, from < r->stopped_at ? from : r->stopped_at, r->stopped_at, lost);
}

/* The stream has ended, and everything in it was delivered. */
static void end_stream(struct remote *r)
{
	const char *warning = r->stream->warning.text;
	bool breaks = is_ours(r) && !r->said_bye && link_is_temporary(r->link);
	bool again = breaks && !r->stopped_at;
	struct gaps_read read;
	struct error silent;

	if (again) {
		recording_read(r->stream, &read.samples, &read.lost, &read.unknown);
		gaps_broken(&r->gaps, &read);
		error_set(&silent, 0, "it has sent nothing for %g s", r->silence / 1e9);
		notify(r, "Disconnect from",
		       r->is_damaged  ? "its data is damaged"
		       : r->is_silent ? silent.text
				      : warning);
	} else {
		if (channel_is_socket(link_channel(r->link)) && !r->stopped_at)
			notify(r, "Disconnect from", "");
		if (!r->said_bye && !breaks && warning[0])
			error_set(&r->source.warning, 0, "%s", warning);
	}
	if (breaks && r->stopped_at && !r->is_complete)
		add_last_gap(r, 0);
	drop_stream(r);
	r->ended = !again;
	link_retry(r->link);
}

/* Its records cannot be newer than now. Those without a time do not tell anything. */
static void align_to_now(struct remote *r, uint64_t newest)
{
	if (!newest)
		return;
	r->aligns = false;
	remote_clock_set(&r->clock, (int64_t)(clock_monotonic() - newest), INFINITY);
}

uint64_t remote_stream_horizon(const struct remote *r)
{
	uint64_t horizon = r->stream ? r->stream->horizon : 0;

	if (r->ended)
		return UINT64_MAX;
	/* A stream that has ended is complete, but what follows it is not known. */
	return horizon && horizon != UINT64_MAX ? remote_clock_convert(&r->clock, horizon)
						: r->slew.last;
}

uint64_t remote_latest(const struct remote *r)
{
	return r->source.info.is_live && isfinite(r->clock.error)
		       ? clock_monotonic() + (uint64_t)r->clock.error + r->slew.ahead
		       : UINT64_MAX;
}

/* Whether the sender has not even sent a heart-beat for long. */
static bool falls_silent(struct remote *r)
{
	struct pollfd poll_fd = {};
	uint64_t now = clock_monotonic();

	if (now - r->heard_at < LISTEN_PERIOD || !is_ours(r) || !link_is_temporary(r->link))
		return false;
	poll_fd = (struct pollfd){.fd = recording_fd(r->stream), .events = POLLIN};
	if (poll(&poll_fd, 1, 0) != 0)
		r->heard_at = now;
	r->is_silent = now - r->heard_at > r->silence;
	return r->is_silent;
}

/* Whether what was sent before the end of the run has been read, or does not come. */
static bool has_drained(struct remote *r)
{
	if (!r->stopped_at)
		return false;
	if (is_ours(r) && remote_stream_horizon(r) >= r->stopped_at)
		r->is_complete = true;
	return (r->is_complete && !r->is_ahead) ||
	       (r->is_idle && (r->is_complete || !is_ours(r))) ||
	       clock_monotonic() - r->stopped_at > DRAIN_TIME;
}

/* Takes out the slots whose times are later than now: the clocks that the sender told do not fit,
 * so it is not known when they happened. At the end of the run there is no time left for them. */
static void drop_future(struct remote *r)
{
	uint64_t now = remote_latest(r), lost = 0;
	int kept = r->at;

	for (int i = r->at; i < r->n; i++) {
		const struct perf_event_header *rec = r->held[i].rec;

		if (r->held[i].time <= now)
			r->held[kept++] = r->held[i];
		else
			lost += rec->type == PERF_RECORD_SAMPLE;
	}
	r->n = kept;
	r->dropped += lost;
	r->is_ahead |= lost > 0;
	if (lost)
		add_last_gap(r, lost);
}

/* Connects again. Returns 0, or a negative errno with a message if there is no point in that. */
static int reconnect(struct remote *r, struct error *err)
{
	struct error why = {};
	int ret = remote_connect_step(r, &why);

	if (ret == -ENOMEM || ret == -EINVAL || ret == -ENOENT)
		return error_set(err, ret, "%s: %s", channel_address(link_channel(r->link)),
				 why.text);
	if (ret) { /* someone else may have answered there */
		notify(r, "Waiting for", why.text);
		link_failed(r->link);
	}
	return 0;
}

int remote_fill(struct remote *r, struct error *err)
{
	int n, ret = 0;

	r->at = r->n = 0;
	gaps_recycle(&r->gaps);
	if (!r->stream && !r->ended)
		ret = reconnect(r, err);
	if (ret)
		return ret;
	if (r->ended)
		return gaps_next(&r->gaps, UINT64_MAX) ? 0 : -ENODATA;
	if (!r->stream)
		return 0;
	send_ping(r);
	if (r->stream->ops->stop && (r->is_damaged || falls_silent(r) || has_drained(r)))
		r->stream->ops->stop(r->stream);
	n = r->stream->ops->next(r->stream, r->held, BATCH_MAX, UINT64_MAX, err);
	if (n == -ENODATA) {
		end_stream(r);
		return r->ended && !gaps_next(&r->gaps, UINT64_MAX) ? -ENODATA : 0;
	}
	if (n < 0)
		return n;
	if (n && r->aligns)
		align_to_now(r, r->held[n - 1].time);
	r->is_idle = !n;
	r->n = n;
	slew_promise(&r->slew, r->source.horizon);
	for (int i = 0; i < n; i++) {
		uint64_t theirs = r->held[i].time;

		r->held[i].time =
			slew_time(&r->slew, theirs, remote_clock_convert(&r->clock, theirs));
	}
	if (r->stopped_at)
		drop_future(r);
	return 0;
}

void remote_end(struct remote *r)
{
	if (r->stopped_at)
		return;
	r->stopped_at = clock_monotonic();
	if (r->stream && link_is_temporary(r->link)) {
		drop_future(r);
	} else if (r->stream) {
		if (r->stream->ops->stop)
			r->stream->ops->stop(r->stream);
	} else {
		r->ended = true;
		if (r->gaps.is_broken)
			add_last_gap(r, 0);
	}
}
