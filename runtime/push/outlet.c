/* SPDX-License-Identifier: GPL-2.0-only */
#include "push/outlet.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>
#include <zstd.h>
#include "clocks/kvm_ptp.h"
#include "push/receiver.h"
#include "push/task_scan.h"
#include "source.h"
#include "wire/own_records.h"

enum {
	HEART_BEAT = 100000000, /* ns */
	PAIR_PERIOD = 1000000000,
	RETRY_AFTER = 100000000,
	CLIENTS_TOLD = 16, /* in CLIENTS_PERIOD, one by one */
	ACCEPTS = 8,	   /* in a turn: half of UNPROVEN_MAX, so that all have time to answer */
	RECORD_TIME_CONV = 79,
	CONV_SHIFT = 32
};

/* ns in which only so many lines tell of clients: anybody can come again and again. */
#define CLIENTS_PERIOD 5000000000ull

struct outlet *outlet_new(struct outlets *all, const char *address, struct error *err)
{
	struct outlet *o = calloc(1, sizeof(*o));

	if (!o) {
		error_set(err, -ENOMEM, "out of memory");
		return NULL;
	}
	o->all = all;
	o->channel = channel_new(address, err);
	if (o->channel)
		return o;
	free(o);
	return NULL;
}

void outlet_free(struct outlet *o)
{
	if (!o)
		return;
	for (uint32_t i = 0; i < o->nr_receivers; i++)
		receiver_free(o->receivers[i]);
	group_free(o->group);
	channel_free(o->channel);
	free(o->events);
	free(o);
}

static bool is_fatal(const struct outlet *o)
{
	return channel_kind(o->channel) == CHANNEL_FILE ||
	       channel_kind(o->channel) == CHANNEL_STDIO;
}

/* Groups for another machine, or for the disk, are compressed. */
static bool packs(const struct outlet *o, int fd)
{
	switch (channel_kind(o->channel)) {
	case CHANNEL_TCP:
	case CHANNEL_VSOCK:
		return !channel_is_near(fd);
	case CHANNEL_DEVICE:
		return !channel_is_fifo(o->channel);
	case CHANNEL_FILE:
		return true;
	default:
		return false;
	}
}

/* A client gets no line of its own. Those of the next CLIENTS_PERIOD are told together with it. */
static void put_off(struct outlet *o)
{
	if (!o->refused && !o->untold && !o->untold_gone.receivers)
		o->put_off_at = o->now;
}

static void tell_refusal(struct outlet *o, const char *name, const char *why)
{
	if (o->refused_at && o->now - o->refused_at < CLIENTS_PERIOD) {
		put_off(o);
		o->refused++;
		return;
	}
	o->refused_at = o->now;
	outlets_tell(o->all, "Refuse client %s: %s", name, why);
}

/* Whether there is still room for a line about one that is accepted. */
static bool may_tell(struct outlet *o)
{
	if (o->now - o->accepted_at >= CLIENTS_PERIOD) {
		o->accepted_at = o->now;
		o->accepted = 0;
	}
	return o->accepted++ < CLIENTS_TOLD;
}

static const char *plural(uint32_t n)
{
	return n == 1 ? "" : "s";
}

/* Tells of those clients that had no lines of their own. */
static void tell_further_clients(struct outlet *o)
{
	const char *address = channel_address(o->channel);
	uint32_t gone = o->untold_gone.receivers;

	if (o->refused) {
		outlets_tell(o->all, "Refuse %u more client%s of %s", o->refused,
			     plural(o->refused), address);
		o->refused_at = o->now;
	}
	if (o->untold)
		outlets_tell(o->all, "Accept %u more client%s of %s", o->untold, plural(o->untold),
			     address);
	if (gone)
		outlets_tell(o->all, "%u more client%s of %s %s: %llu events sent, %llu dropped",
			     gone, plural(gone), address, gone == 1 ? "hangs up" : "hang up",
			     (unsigned long long)o->untold_gone.sent,
			     (unsigned long long)o->untold_gone.dropped);
	o->refused = o->untold = 0;
	memset(&o->untold_gone, 0, sizeof(o->untold_gone));
}

static void refuse(struct outlet *o, struct receiver *r, const char *why)
{
	tell_refusal(o, r->name, why);
	for (uint32_t i = 0; i < o->nr_receivers; i++) {
		if (o->receivers[i] != r)
			continue;
		o->receivers[i] = o->receivers[--o->nr_receivers];
		break;
	}
	receiver_free(r);
}

/* Tells that a client came, once it has proven what it must. There is room for only so many. */
static void welcome(struct outlet *o, struct receiver *r)
{
	uint32_t others = 0;

	for (uint32_t i = 0; i < o->nr_receivers; i++)
		others += o->receivers[i]->is_accepted;
	if (others == RECEIVERS_MAX) {
		refuse(o, r, "there are too many already");
		return;
	}
	r->is_accepted = true;
	if (!channel_is_socket(o->channel))
		return;
	r->is_told = may_tell(o);
	if (r->is_told) {
		outlets_tell(o->all, "Accept client %s", r->name);
		return;
	}
	put_off(o);
	o->untold++;
}

/* Whoever does not know the secret must not keep out others: the oldest client that has not proven
 * it makes room. */
static void make_room(struct outlet *o)
{
	struct receiver *oldest = NULL;
	uint32_t unproven = 0;

	for (uint32_t i = 0; i < o->nr_receivers; i++) {
		struct receiver *r = o->receivers[i];

		unproven += !r->is_accepted;
		if (!r->is_accepted && (!oldest || r->since < oldest->since))
			oldest = r;
	}
	if (unproven == UNPROVEN_MAX)
		refuse(o, oldest, "it does not prove in time that it knows the secret");
}

/* Takes over the descriptor. */
static int add_receiver(struct outlet *o, int fd, const char *name, struct error *err)
{
	struct receiver *r;

	make_room(o);
	r = receiver_new(fd, o->all->poller, name,
			 channel_is_socket(o->channel) ? &o->all->secret : NULL, packs(o, fd));
	if (!r)
		return error_set(err, -ENOMEM, "out of memory");
	o->receivers[o->nr_receivers++] = r;
	if (r->state == RECEIVER_NEW)
		welcome(o, r);
	return 0;
}

/* Opens a file, or a device whose other end may not be there yet. */
static int open_file(struct outlet *o, struct error *err)
{
	int fd = channel_open(o->channel, true, err);

	return fd < 0 ? fd : add_receiver(o, fd, channel_address(o->channel), err);
}

static int listen_at(struct outlet *o, struct error *err)
{
	char name[CHANNEL_NAME];
	int n;

	if (channel_is_public(o->channel) && !o->all->secret.size)
		return error_set(err, -EACCES,
				 "%s: other hosts could connect, so a secret is needed: "
				 "--secret FILE, or PROFSCRIPT_SECRET; or listen at this machine "
				 "only, as in 127.0.0.1:PORT",
				 channel_address(o->channel));
	n = channel_listen(o->channel, err);
	if (n < 0)
		return n;
	o->nr_listening = n;
	for (int i = 0; i < n; i++) {
		struct epoll_event ev = {.events = EPOLLIN};

		epoll_ctl(o->all->poller, EPOLL_CTL_ADD, channel_listener(o->channel, i, name),
			  &ev);
		outlets_tell(o->all, "Listen at %s", name);
	}
	return 0;
}

int outlet_open(struct outlet *o, struct error *err)
{
	if (channel_is_socket(o->channel))
		return listen_at(o, err);
	return channel_kind(o->channel) == CHANNEL_DEVICE ? 0 : open_file(o, err);
}

void outlet_set_events(struct outlet *o, struct wire_event *events, uint32_t n)
{
	o->events = events;
	o->nr_events = n;
}

/* Returns the rate of the TSC; 0: unknown yet. */
static uint64_t tsc_khz(const struct outlets *all, const struct clock_pair *now)
{
	uint64_t ns = now->mono - all->first_pair.mono;

	if (!now->tsc || ns < RATE_TIME)
		return 0;
	return (double)(now->tsc - all->first_pair.tsc) * 1e6 / ns;
}

static void fill_pair(struct outlets *all, struct wire_pair *pair, const struct clock_pair *now)
{
	*pair = (struct wire_pair){
		.head = wire_head(WIRE_PAIR, sizeof(*pair)),
		.tsc = now->tsc,
		.clock = push_clock_time(&all->clock, now->mono),
		.mono = now->mono,
		.real = now->real,
		.read_error_ns = now->error,
		.real_error_us = now->real_error,
	};
}

/* Returns false if there is no PTP clock. */
static bool fill_ptp(struct outlets *all, struct wire_ptp *ptp)
{
	struct kvm_ptp_reading now;

	if (!all->ptp || !kvm_ptp_read(all->ptp, &now))
		return false;
	*ptp = (struct wire_ptp){
		.head = wire_head(WIRE_PTP, sizeof(*ptp)),
		.clock = push_clock_time(&all->clock, now.mono),
		.mono = now.mono,
		.host_real = now.host_real,
		.error_ns = now.error,
	};
	return true;
}

/* clock = zero + (tsc * mult >> shift), as on the control page of a ring. */
static void fill_conv(struct time_conv *conv, double rate, const struct wire_pair *now)
{
	uint64_t mult = (uint64_t)(rate * (1ull << CONV_SHIFT));

	*conv = (struct time_conv){
		.header = {.type = RECORD_TIME_CONV, .size = sizeof(*conv)},
		.shift = CONV_SHIFT,
		.mult = mult,
		.zero = now->clock - (uint64_t)((unsigned __int128)now->tsc * mult >> CONV_SHIFT),
		.mask = UINT64_MAX,
		.has_zero = 1,
	};
}

/* Fills the readings of the clocks, if they are due. Returns how many bytes of the front are not
 * sent. */
static uint32_t fill_clocks(struct outlet *o, struct group_front *front)
{
	struct clock_pair now;
	uint64_t khz;

	if (!o->all->is_live || o->flushed_at - o->paired_at < PAIR_PERIOD)
		return offsetof(struct group_front, group);
	clock_pair_read(&now);
	khz = tsc_khz(o->all, &now);
	if (!khz)
		return offsetof(struct group_front, group);
	o->paired_at = o->flushed_at;
	fill_pair(o->all, &front->pair, &now);
	fill_conv(&front->conv, push_clock_is_cycles(&o->all->clock) ? 1 : 1e6 / khz, &front->pair);
	return fill_ptp(o->all, &front->ptp) ? 0 : offsetof(struct group_front, pair);
}

/* Starts a group, or only counts records if nobody reads them. */
static void begin_group(struct outlet *o)
{
	o->before = o->produced;
	o->lost_before = o->lost;
	o->unknown_before = o->unknown;
	o->oldest = UINT64_MAX;
	if (!o->group)
		o->group = group_new(&o->all->pool);
}

static void stop_groups(struct outlet *o)
{
	group_free(o->group);
	o->group = NULL;
}

void outlet_flush(struct outlet *o, uint64_t last_time)
{
	struct group *g = o->group;

	if (!g)
		return;
	o->flushed_at = o->now;
	if (last_time > o->promised)
		o->promised = last_time;
	g->skip = fill_clocks(o, &g->front);
	g->front.group = (struct wire_group){
		.head = wire_head(WIRE_GROUP, sizeof(g->front.group)),
		.seq = o->seq++,
		.first_time = o->oldest < o->promised ? o->oldest : o->promised,
		.last_time = o->promised,
		.events = o->produced - o->before,
		.unknown_before = o->unknown_before,
		.events_before = o->before,
		.lost_before = o->lost_before,
	};
	g = group_end(g);
	g->users = 1;
	for (uint32_t i = 0; i < o->nr_receivers; i++)
		receiver_add(o->receivers[i], g, o->all->zstd);
	if (!--g->users)
		group_free(g);
	o->group = NULL;
	begin_group(o);
}

static void start_receiver(struct outlet *o, struct receiver *r)
{
	struct outlets *all = o->all;
	bool answers = r->is_socket || channel_kind(o->channel) == CHANNEL_DEVICE;
	bool is_cycles = push_clock_is_cycles(&all->clock);
	struct wire_hello hello = {
		.flags = WIRE_ORDERED | (answers ? WIRE_PONGS : 0) | (r->packs ? WIRE_ZSTD : 0) |
			 (all->clock.axis ? WIRE_CLOCK_SHIFTED : 0) | (is_cycles ? WIRE_CYCLES : 0),
		.epoch = all->epoch,
		.clockid = all->clockid,
		.clock_offset = all->clock.offset,
	};
	struct task_scan *scan = NULL;
	struct clock_pair now;
	struct wire_pair pair;
	struct wire_ptp ptp;
	uint64_t mono = 0, real = all->wall_zero;

	if (real)
		real -= all->clock.offset; /* when the converted clock was 0 */
	clock_pair_read(&now);
	if (all->is_live) {
		mono = push_clock_time(&all->clock, now.mono);
		/* A file tells the wall time that the run prints, to the ns. A long connection
		 * needs today's. */
		real = answers || !all->wall_zero ? now.real : all->wall_zero + now.mono;
		hello.tsc_khz = tsc_khz(all, &now);
		if (all->is_local)
			scan = task_scan_new(all->trailer_words, all->has_addresses);
	}
	preamble_fill(&hello);
	if (all->is_foreign)
		memset(hello.boot_id, 0, sizeof(hello.boot_id));
	if (all->host)
		snprintf(hello.hostname, sizeof(hello.hostname), "%s", all->host);
	preamble_write(&r->front, o->events, o->nr_events, &hello, mono, is_cycles ? 0 : real);
	fill_pair(all, &pair, &now);
	if (all->is_live)
		bytes_add(&r->front, &pair, sizeof(pair));
	if (fill_ptp(all, &ptp))
		bytes_add(&r->front, &ptp, sizeof(ptp));
	receiver_start(r, scan, &all->symbols);
	if (!o->group)
		begin_group(o);
}

static int retry_device(struct outlet *o, uint64_t now, struct error *err)
{
	struct error why;
	int fd;

	if (o->nr_receivers || now < o->retry_at)
		return 0;
	o->retry_at = now + RETRY_AFTER;
	fd = channel_open(o->channel, true, &why);
	if (fd == -EACCES || fd == -EPERM || fd == -EROFS) /* it will not change */
		return error_set(err, fd, "cannot write %s", why.text);
	if (fd < 0 || channel_hangs(fd)) {
		if (fd >= 0)
			close(fd);
		return 0;
	}
	outlets_tell(o->all, "Device %s is connected", channel_address(o->channel));
	return add_receiver(o, fd, channel_address(o->channel), err);
}

static int accept_all(struct outlet *o, struct error *err)
{
	char name[CHANNEL_NAME];
	int ret = 0;

	for (int i = 0; i < o->nr_listening && !ret; i++) {
		int fd = 0, left = ACCEPTS;

		while (!ret && left-- && (fd = channel_accept(o->channel, i, name)) >= 0)
			ret = add_receiver(o, fd, name, err);
		/* Else the poller would call again and again. */
		if (!ret && (fd == -EMFILE || fd == -ENFILE)) {
			outlets_tell(o->all, "Refuse all further clients: %s", strerror(-fd));
			epoll_ctl(o->all->poller, EPOLL_CTL_DEL,
				  channel_listener(o->channel, i, name), NULL);
		}
	}
	return ret;
}

static void note_untold(struct outlet *o, const struct receiver *r, uint64_t dropped)
{
	put_off(o);
	o->untold_gone.receivers++;
	o->untold_gone.sent += r->sent;
	o->untold_gone.dropped += dropped;
}

/* Removes a receiver that has ended. */
static int remove_receiver(struct outlet *o, uint32_t index, struct error *err)
{
	struct receiver *r = o->receivers[index];
	bool is_device = channel_kind(o->channel) == CHANNEL_DEVICE;
	uint64_t dropped = r->dropped + receiver_queued(r);
	int ret = 0;

	o->sent += r->sent;
	o->dropped += dropped;
	if (channel_kind(o->channel) == CHANNEL_STDIO && !r->why.text[0])
		ret = -EPIPE;
	else if (is_fatal(o) || (is_device && r->why.text[0]))
		ret = error_set(err, -EIO, "cannot write %s: %s", r->name,
				r->why.text[0] ? r->why.text : "its reader is gone");
	else if (is_device)
		outlets_tell(o->all, "Device %s has hung up: %llu events sent, %llu dropped",
			     r->name, (unsigned long long)r->sent, (unsigned long long)dropped);
	else if (!r->is_accepted)
		tell_refusal(o, r->name,
			     r->why.text[0] ? r->why.text
					    : "it does not prove that it knows the secret");
	else if (r->why.text[0])
		outlets_tell(o->all, "Close client %s: %s: %llu events sent, %llu dropped", r->name,
			     r->why.text, (unsigned long long)r->sent, (unsigned long long)dropped);
	else if (!r->is_told)
		note_untold(o, r, dropped);
	else
		outlets_tell(o->all, "Client hangs up %s: %llu events sent, %llu dropped", r->name,
			     (unsigned long long)r->sent, (unsigned long long)dropped);
	receiver_free(r);
	o->receivers[index] = o->receivers[--o->nr_receivers];
	return ret;
}

/* Whether a receiver has nothing to read. Those that are behind wait for a full group. */
static bool has_hungry(const struct outlet *o)
{
	for (uint32_t i = 0; i < o->nr_receivers; i++)
		if (o->receivers[i]->state == RECEIVER_READS &&
		    !receiver_is_behind(o->receivers[i]))
			return true;
	return false;
}

static void flush_if_due(struct outlet *o, uint64_t now, uint64_t horizon)
{
	uint64_t age = now - o->flushed_at;

	if (!o->group || age < (o->group->size ? FLUSH_AFTER : HEART_BEAT) || !has_hungry(o))
		return;
	outlet_flush(o, horizon == UINT64_MAX ? o->newest : horizon);
}

int outlet_turn(struct outlet *o, uint64_t now, uint64_t horizon, bool called, struct error *err)
{
	bool reads = false;
	int ret;

	o->now = now;
	ret = called ? accept_all(o, err) : 0;
	if (now - o->put_off_at >= CLIENTS_PERIOD)
		tell_further_clients(o);
	if (!ret && channel_kind(o->channel) == CHANNEL_DEVICE)
		ret = retry_device(o, now, err);
	for (uint32_t i = 0; i < o->nr_receivers; i++) {
		if (called || receiver_is_doubtful(o->receivers[i]))
			receiver_read(o->receivers[i], &o->all->secret);
		if (o->receivers[i]->state == RECEIVER_NEW && !o->receivers[i]->is_accepted)
			welcome(o, o->receivers[i]);
	}
	for (uint32_t i = 0; i < o->nr_receivers; i++)
		if (o->receivers[i]->state == RECEIVER_NEW && push_clock_ready(&o->all->clock))
			start_receiver(o, o->receivers[i]);
	flush_if_due(o, now, horizon);
	for (uint32_t i = o->nr_receivers; i-- > 0;) {
		struct receiver *r = o->receivers[i];

		receiver_send(r);
		if (r->state == RECEIVER_ENDED && !ret)
			ret = remove_receiver(o, i, err);
		else
			reads |= r->state == RECEIVER_READS;
	}
	if (!reads)
		stop_groups(o);
	return ret;
}

void outlet_end(struct outlet *o)
{
	if (o->group && o->group->size)
		outlet_flush(o, o->newest);
	for (uint32_t i = 0; i < o->nr_receivers; i++)
		receiver_say_bye(o->receivers[i]);
	tell_further_clients(o);
}

bool outlet_is_full(const struct outlet *o)
{
	for (uint32_t i = 0; i < o->nr_receivers; i++)
		if (o->receivers[i]->charge > QUEUE_BYTES / 2)
			return true;
	return !o->group;
}

bool outlet_is_behind(const struct outlet *o)
{
	for (uint32_t i = 0; i < o->nr_receivers; i++)
		if (receiver_is_behind(o->receivers[i]))
			return true;
	return false;
}
