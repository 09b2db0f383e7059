/* SPDX-License-Identifier: GPL-2.0-only */
#include "session/session_state.h"
#include <errno.h>
#include <string.h>
#include "decode/decoder.h"
#include "error.h"
#include "formats/formats.h"
#include "decode/records.h"
#include "stacks/resolve.h"
#include "os/clock.h"
#include "process/signals.h"
#include "session/family.h"
#include "session/groups.h"
#include "session/tasks.h"
#include "session/vcpus.h"
#include "os/threads.h"
#include "process/watchdog.h"
#include "os/workload.h"

enum {
	MAX_WAIT = 100000000,		/* ns */
	EXIT_WAIT = 1000000,		/* ns */
	SILENCE = 1000000000,		/* ns */
	MUCH = 5000,			/* events to read after a signal, see signals_overdue() */
	MISC_LOST_SAMPLES_BPF = 1 << 15 /* not lost: rejected by a BPF filter of perf */
};

void session_close_class(struct session *s, uint16_t class)
{
	if (s->source->ops->close_class)
		s->source->ops->close_class(s->source, class);
}

void session_set_base(struct session *s, uint64_t time)
{
	if (time < s->first_time)
		time = s->first_time;
	s->has_base = true;
	s->base = time;
	if (s->interval)
		s->tick_at = time + s->interval;
	if (s->duration && s->end_at - time > s->duration)
		s->end_at = time + s->duration;
}

static bool counts_only(const struct session *s)
{
	return s->source->ops->read_counts && !s->nr_sampled;
}

void session_stop(struct session *s)
{
	if (s->stopped)
		return;
	s->stopped = true;
	s->stop_time = s->source->ops->now(s->source);
	if (s->stop_time > s->end_at)
		s->stop_time = s->end_at;
	for (uint32_t k = 0; k < s->nr_clears; k++)
		for (uint32_t i = 0; i < s->clears[k].n; i++)
			__atomic_store_n(&s->clears[k].bytes[i], 0, __ATOMIC_SEQ_CST);
	if (s->source->ops->stop)
		s->source->ops->stop(s->source);
	if (counts_only(s) && s->source->ops->now(s->source) != UINT64_MAX)
		s->stats.to = (double)(int64_t)(s->source->ops->now(s->source) - s->base);
}

/* Fetches the next slots up to `until`. Returns 0 if there are none now. */
static int fetch(struct session *s, uint64_t until, int max, struct error *err)
{
	int n = s->source->ops->next(s->source, s->slots, max, until, err);

	session_follow_vms(s);
	s->next_slot = s->next_copied = 0;
	s->nr_slots = n > 0 ? n : 0;
	if (n == -ENODATA) {
		s->ended = true;
		return 0;
	}
	return n;
}

/* Skips the empty intervals of a recording up to the next event. */
static int skip_empty_intervals(struct session *s, struct error *err)
{
	int n = fetch(s, UINT64_MAX, 1, err);

	if (n == 1 && s->slots[0].time >= s->tick_at)
		s->tick_at +=
			(s->slots[0].time - s->tick_at) / s->interval * s->interval + s->interval;
	return n;
}

/* Whether a slot is in a form of its source's own, not a perf record. */
static bool is_own(const struct slot *slot)
{
	return slot->flags >> SLOT_OWN_SHIFT & SLOT_OWN_MASK;
}

/* Counts a loss and completes its event. Returns false if it has been counted already. */
static bool note_loss(struct session *s, struct machine *m, const struct slot *slot,
		      struct event *ev)
{
	const struct perf_event_header *rec = slot->rec;
	uint64_t end;

	if (is_own(slot)) {
		s->stats.lost += ev->period;
		ev->key -= s->base;
		return true;
	}
	/* perf writes the sums of its loss counters at the end of a recording. LOST records have
	 * reported most of them. */
	if (rec->type == PERF_RECORD_LOST_SAMPLES) {
		if (rec->misc & MISC_LOST_SAMPLES_BPF)
			return false;
		m->summed_losses += ev->period;
		if (m->summed_losses <= m->lost)
			return false;
		ev->period = m->summed_losses - m->lost;
	}
	m->lost += ev->period;
	if (!decoder_time(m->source->decoder, slot->rec, &end))
		end = slot->time;
	else if (m->source->ops->convert)
		end = m->source->ops->convert(m->source, end);
	if (end < slot->time)
		end = slot->time;
	if (s->source->info.is_recorded && end < s->first_time)
		return false;
	s->stats.lost += ev->period;
	ev->key = end - s->base;
	if (m->source->ring_tid && slot->ring < m->source->nr_rings) {
		ev->tid = m->source->ring_tid[slot->ring];
		ev->cpu = -1;
	}
	return true;
}

/* Whether a program of 32 bits has begun: the kernel maps its vdso where only those can reach it.
 */
static bool is_narrow(const struct perf_event_header *rec, const struct event *ev)
{
	uint32_t at = records_mmap_path(rec->type, ev->raw, ev->raw_size);
	static const char vdso[] = "[vdso]";
	uint64_t addr;

	if (ev->raw_size < at + sizeof(vdso) || memcmp(ev->raw + at, vdso, sizeof(vdso)) != 0)
		return false;
	memcpy(&addr, ev->raw + 8, sizeof(addr)); /* after pid and tid */
	return addr <= UINT32_MAX;
}

static void note_task(struct session *s, struct machine *m, const struct slot *slot,
		      const struct event *ev)
{
	/* The family and the threads of the target are on this machine. */
	struct family *family = m == s->machines ? s->family : NULL;
	const int32_t *ids = (const int32_t *)ev->raw;
	uint64_t addr;
	const char *symbol = resolve_kernel_start(slot->rec, ev, &addr);
	char name[16];

	if (symbol)
		formats_anchor_symbols(m->source->ops->formats(m->source, NULL), symbol, addr);
	if (m->resolve)
		resolve_record(m->resolve, slot->rec, ev);
	switch (ev->class) {
	case EVENT_MMAP:
		s->stats.narrow += is_narrow(slot->rec, ev);
		break;
	case EVENT_COMM: /* pid, tid, name */
		memset(name, 0, sizeof(name));
		memcpy(name, ev->raw + 8,
		       ev->raw_size - 8 < sizeof(name) ? ev->raw_size - 8 : sizeof(name) - 1);
		name[sizeof(name) - 1] = 0;
		tasks_set(m->tasks, ev->tid, name, ev->time);
		break;
	case EVENT_FORK: /* pid, parent pid, tid, parent tid */
		tasks_fork(m->tasks, ev->tid, ids[3], ev->time);
		s->stats.began += s->has_base && slot->time >= s->base;
		if (family)
			family_fork(family, ids[3], ev->tid);
		break;
	case EVENT_EXIT:
		tasks_exit(m->tasks, ev->pid, ev->tid, ev->time);
		if (family)
			family_exit(family, ev->tid);
		break;
	}
}

/* Whether a slot is a record other than a sample that may be an event. A source's own records have
 * no header. */
static bool is_record(const struct session *s, const struct slot *slot)
{
	const struct perf_event_header *rec = slot->rec;

	return s->records && !is_own(slot) && rec->type != PERF_RECORD_SAMPLE;
}

/* Earlier events are dropped. Those of other machines began before the run. */
static uint64_t first_time(const struct session *s, const struct machine *m)
{
	return m == s->machines ? s->first_time : 0;
}

/* Handles a record other than a sample. It updates the session's own state, if it concerns it, and
 * is delivered as an event to those who requested such records. */
static int complete_records(struct session *s, struct machine *m, const struct slot *slot,
			    struct event *ev, int n)
{
	int delivered = 0, first = ev->class < EVENT_FIRST;
	uint64_t time, from = first_time(s, m);

	if (first) {
		note_task(s, m, slot, ev);
		/* Scripts know the tasks of this machine only. */
		delivered = m == s->machines && s->wanted >> ev->class & 1;
	}
	/* perf also writes records of the state before its start. They have no time and are not
	 * events. */
	if (n == first || slot->time < from || !decoder_time(m->source->decoder, slot->rec, &time))
		return delivered;
	for (int i = first; i < n; i++) {
		if (!records_event(s->records, slot->rec, &ev[i])) {
			s->stats.bad++;
			break;
		}
		ev[delivered++] = ev[i];
		s->stats.to = ev[i].time;
		s->stats.events++;
		s->samples[ev[i].class].read++;
	}
	return delivered;
}

static uint16_t event_flags(const struct slot *slot)
{
	return (slot->flags & ((1 << EVENT_MEMBER_SHIFT) - 1)) |
	       slot->flags >> SLOT_MEMBER_SHIFT << EVENT_MEMBER_SHIFT;
}

/* Completes the n events decoded from a slot; n can be an error. Returns the number of events to
 * deliver, or -ENOSPC. */
static int complete_others(struct session *s, struct machine *m, const struct slot *slot,
			   struct event *ev, int n)
{
	if (n == -EBADMSG) {
		s->stats.bad++;
		return 0;
	}
	if (n <= 0)
		return n;
	for (int i = 0; i < n; i++) {
		ev[i].time = (double)(int64_t)(slot->time - s->base);
		ev[i].ring = slot->ring;
		ev[i].flags = event_flags(slot);
	}
	if (ev->class == EVENT_LOST) {
		/* Only task records can be lost then. */
		if (counts_only(s) && ev->period)
			return 0;
		return note_loss(s, m, slot, ev);
	}
	if (ev->class < EVENT_FIRST || is_record(s, slot))
		return complete_records(s, m, slot, ev, n);
	for (int i = 0; i < n; i++) {
		struct class_samples *t = &s->samples[ev[i].class];

		t->read += slot->time >= first_time(s, m);
		t->early += slot->time < first_time(s, m);
	}
	if (slot->time < first_time(s, m))
		return 0;
	for (int i = 0; ev->pid < 0 && ev->tid > 0 && i < n; i++)
		ev[n - 1 - i].pid = tasks_pid_of_ended(m->tasks, ev->tid);
	if (m->resolve)
		resolve_unwind(m->resolve, m->source->decoder, slot->rec, ev, n);
	s->stats.to = ev->time;
	s->stats.events += n;
	s->stats.late += slot->flags & EVENT_LATE;
	return n;
}

static int decode_slots(struct session *s, uint32_t *flags)
{
	int n = 0;

	for (uint32_t i = 0; i < s->nr_machines; i++)
		if (s->machines[i].resolve)
			resolve_begin_batch(s->machines[i].resolve);
	if (s->records)
		records_begin_batch(s->records);
	while (s->next_slot < s->nr_slots) {
		const struct slot *slot = &s->slots[s->next_slot];
		struct machine *m = &s->machines[slot->flags >> SLOT_MEMBER_SHIFT];
		const struct source_ops *ops = m->source->ops;
		const struct decoder *d = m->source->decoder;
		int left = s->nr_slots - s->next_slot, got;
		bool own = is_own(slot), is_counted = own || m != s->machines;
		const struct perf_event_header *rec = slot->rec;

		if (!s->has_base && slot->time)
			session_set_base(s, slot->time);
		if (left > BATCH_MAX - n)
			left = BATCH_MAX - n;
		got = own ? ops->decode_run(m->source, slot, left, s->base, s->first_time,
					    &s->batch[n])
			  : decoder_decode_run(d, slot, left, s->base, first_time(s, m),
					       &s->batch[n]);
		if (got) {
			if (m->vcpus)
				vcpus_apply(m->vcpus, &s->batch[n], got);
			for (int i = n; is_counted && i < n + got; i++)
				s->samples[s->batch[i].class].read++;
			m->samples += got;
			n += got;
			s->next_slot += got;
			s->stats.events += got;
			s->stats.to = s->batch[n - 1].time;
			continue;
		}
		if (n == BATCH_MAX)
			break;
		if (!own && rec->type == PERF_RECORD_CGROUP)
			groups_note(m->groups, slot->rec);
		got = own ? ops->decode(m->source, slot, &s->batch[n])
			  : decoder_decode(d, slot->rec, &s->batch[n], BATCH_MAX - n);
		got = complete_others(s, m, slot, &s->batch[n], got);
		if (got > 0 && m->vcpus)
			vcpus_apply(m->vcpus, &s->batch[n], got);
		if (got == -ENOSPC)
			break;
		if (got && s->batch[n].class == EVENT_LOST)
			*flags |= BATCH_LOST;
		n += got;
		m->samples += !own && rec->type == PERF_RECORD_SAMPLE;
		s->next_slot++;
	}
	return n;
}

static uint64_t hold(struct source *src)
{
	return src->ops->hold ? src->ops->hold(src) : 0;
}

/* All target threads have ended. The exit status of a workload arrives shortly after that. */
static void end_with_threads(struct session *s)
{
	if (s->is_target)
		s->threads_ended = true;
	else
		session_stop(s);
}

/* Whether the source itself reports all that may happen before the end of the interval: nothing is
 * to be delivered, and no process is watched. */
static bool is_idle(const struct session *s)
{
	return !s->looks_around && counts_only(s) && !s->wanted && s->nr_machines == 1 &&
	       !s->workload && (!s->nr_tids || s->per_thread) && !s->stopped && signals_fd() >= 0;
}

static void wait_for_more(struct session *s)
{
	uint64_t now = s->source->ops->now(s->source), timeout = MAX_WAIT;
	int ret;

	if (now != UINT64_MAX && is_idle(s))
		timeout = INT64_MAX;

	if (s->tick_at && now != UINT64_MAX) {
		uint64_t tick = s->tick_at + (counts_only(s) ? 0 : hold(s->source));

		if (tick < now + timeout)
			timeout = tick > now ? tick - now : 1;
	}
	if (!s->stopped && now != UINT64_MAX && s->end_at < now + timeout)
		timeout = s->end_at > now ? s->end_at - now : 1;
	if (now != UINT64_MAX && s->wake_at && s->wake_at < now + timeout)
		timeout = s->wake_at > now ? s->wake_at - now : 1;
	if (s->threads_ended && timeout > EXIT_WAIT)
		timeout = EXIT_WAIT;
	ret = s->source->ops->wait(s->source, timeout);
	s->wake_at = 0;
	if (ret == -ESRCH)
		end_with_threads(s);
}

/* Whether the family has ended, as of the records that have been decoded. */
static bool has_died_out(struct session *s, uint64_t now)
{
	return s->next_slot == s->nr_slots && family_died_out(s->family, now, s->source->horizon);
}

/* Ends the run when its threads have ended, if there are no rings of these threads to report it:
 * all of the run's events on them may be those of other machines. */
static void watch_threads(struct session *s)
{
	uint64_t now = s->source->ops->now(s->source);

	if (now < s->watch_at)
		return;
	s->watch_at = now + MAX_WAIT;
	if (s->family ? has_died_out(s, now)
		      : threads_ended(s->tids, s->nr_tids, &s->nr_tids_ended))
		end_with_threads(s);
}

static void end_interval(struct session *s, struct batch *batch)
{
	batch->flags |= BATCH_TICK;
	batch->tick_time = (double)(int64_t)(s->tick_at - s->base);
	s->tick_at += s->interval;
	s->ticked = true;
}

/* Whether all events up to a time have been delivered. Counts are never held back. */
static bool has_reached(const struct session *s, uint64_t time)
{
	if (counts_only(s)) {
		uint64_t now = s->source->ops->now(s->source);

		if (now != UINT64_MAX)
			return now > time;
	}
	return s->source->horizon >= time;
}

/* Whether the current interval ends before the stream. At the end of the stream, counts are read
 * anyway. */
static bool ends_with_tick(const struct session *s)
{
	return s->tick_at && (counts_only(s) ? s->tick_at < s->end_at : s->tick_at <= s->end_at);
}

/* Whether the duration is over, although the reader may be behind. Events must stop now: otherwise
 * more of them would be counted than delivered. */
static bool is_over(const struct session *s)
{
	uint64_t now = s->source->ops->now(s->source);

	return now != UINT64_MAX && now > s->end_at && !s->stopped && !counts_only(s);
}

/* The user asked the run to end. Ctrl-C also ends the perf that writes a pipe, so the pipe is read
 * to its end, if that comes in time. It does not end what another machine sends. */
static void interrupt(struct session *s)
{
	bool is_recorded = s->source->info.is_recorded, waits = s->source->ops->wait;
	bool is_pipe = is_recorded && waits && !s->source->info.host;

	if (!s->interrupted && is_pipe)
		signals_wait_for_others(true);
	s->interrupted = true;
	if (s->stopped || (is_pipe && !signals_must_end()))
		return;
	s->cut = true;
	session_stop(s);
	if (is_pipe && !s->ended)
		error_set(&s->source->warning, 0, "interrupted before the end of the recording");
	if (is_recorded && !waits)
		s->ended = true;
}

/* Whether a live run that was interrupted has not read its rings in time: no more events come, but
 * handlers may take long for those that are there. In rings that are overwritten, these are what
 * the run is for. */
static bool leaves_rest(struct session *s)
{
	return signals_overdue(&s->events_before_signal, s->stats.events, MUCH) && s->stopped &&
	       s->source->ops->wait && !s->source->info.is_recorded && !s->keeps_newest;
}

void session_check_end(struct session *s)
{
	if (is_over(s) || (signals_stop_requested() && !s->source->info.is_recorded))
		session_stop(s);
}

/* Ends the run after its duration if a sender is silent whose clock is not known: no event of it
 * may ever tell that the time is over. While it sends, its times decide. */
static void watch_silence(struct session *s, bool is_silent)
{
	uint64_t now = clock_monotonic();

	if (!is_silent && now + SILENCE > s->give_up_at)
		s->give_up_at = now + SILENCE;
	else if (is_silent && now > s->give_up_at)
		session_stop(s);
}

static int next_batch(struct session *s, struct batch *batch, struct error *err)
{
	uint64_t until = ends_with_tick(s) ? s->tick_at - 1 : s->end_at;
	/* The output of recordings must not depend on time. */
	bool is_paced = !s->source->info.is_recorded;
	int n = 0, size = is_paced ? pace_next(&s->pace, s->nr_batch, BATCH_MAX) : BATCH_MAX;

	watchdog_returned();
	batch->events = s->batch;
	batch->n = 0;
	batch->flags = 0;
	if (signals_stop_requested())
		interrupt(s);
	if (s->workload && workload_ended(s->workload, &s->stats.workload_status) &&
	    (!s->follows || s->threads_ended))
		session_stop(s);
	if (is_over(s))
		session_stop(s);
	if (s->nr_tids && (!s->per_thread || s->nr_machines > 1) && (!s->is_target || s->family) &&
	    !s->stopped)
		watch_threads(s);
	if (s->next_slot == s->nr_slots && !s->ended && leaves_rest(s)) {
		s->ended = s->cut = true; /* it may have stopped before the signal */
		s->stats.leaves_rest = true;
	} else if (s->next_slot == s->nr_slots && !s->ended) {
		if (s->ticked && s->source->info.is_recorded)
			n = skip_empty_intervals(s, err);
		else
			/* The end of the first interval is known only with the time base. */
			n = fetch(s, until, s->has_base ? size : 1, err);
		if (n < 0)
			return n;
		if (s->give_up_at)
			watch_silence(s, !n);
	}
	batch->n = decode_slots(s, &batch->flags);
	if (batch->n)
		s->ticked = false;
	if (s->ended && s->next_slot == s->nr_slots) {
		batch->flags |= BATCH_END | (s->cut ? BATCH_INTERRUPTED : 0);
	} else if (!batch->n && !n && until != UINT64_MAX && has_reached(s, until)) {
		if (until == s->end_at) {
			session_stop(s);
			s->ended = true;
		} else {
			end_interval(s, batch);
		}
	} else if (!batch->n && !n && s->source->ops->wait) {
		wait_for_more(s);
	}
	if (s->source->notice.text[0])
		batch->flags |= BATCH_NOTICE;
	return 0;
}

/* A script may have kept a pointer to an event of the previous batch. If this batch does not reuse
 * its place, it must not lead to memory that was unmapped. */
static int hand_out(struct session *s, const struct batch *batch, int ret)
{
	for (int i = ret < 0 ? 0 : batch->n; i < s->nr_batch; i++)
		s->batch[i] = (struct event){.time = s->batch[i].time, .class = EVENT_FILTERED};
	s->nr_batch = ret < 0 ? 0 : batch->n;
	if (!s->source->info.is_recorded)
		pace_hand_out(&s->pace);
	return ret;
}

int session_next(struct session *s, struct batch *batch, struct error *err)
{
	return hand_out(s, batch, next_batch(s, batch, err));
}

int session_dump(struct session *s, double from, double until, struct batch *batch,
		 double *whole_from, struct error *err)
{
	int n = 0;

	*batch = (struct batch){.events = s->batch};
	s->source->dump_from = from > 0 ? s->base + (int64_t)from : 0;
	if (s->next_slot == s->nr_slots)
		n = fetch(s, s->base + (int64_t)until, BATCH_MAX, err);
	if (n >= 0)
		batch->n = decode_slots(s, &batch->flags);
	if (!n && !batch->n)
		batch->flags |= BATCH_END;
	*whole_from =
		s->source->whole_from ? (double)(int64_t)(s->source->whole_from - s->base) : 0;
	return hand_out(s, batch, n < 0 ? n : 0);
}

void session_wake_on(struct session *s, int fd)
{
	s->source->wake_fd = fd;
}

void session_look_around(struct session *s)
{
	s->looks_around = true;
}

void session_wake_after(struct session *s, uint64_t ns)
{
	uint64_t at = s->source->ops->now(s->source) + ns;

	if (!s->wake_at || at < s->wake_at)
		s->wake_at = at;
}
