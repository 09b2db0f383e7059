// SPDX-License-Identifier: GPL-2.0-only
#include "live/bpf_ring.h"
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>
#include <linux/bpf.h>
#include <linux/perf_event.h>
#include "bpf/bpf.h"
#include "os/cpus.h"
#include "decode/decoder.h"
#include "error.h"
#include "event.h"
#include "live/merge.h"
#include "live/evlist.h"
#include "live/ring.h"
#include "source.h"

/* A mapped ring: a ring buffer map, or a CPU's entry in a perf event array. */
struct mapped {
	void *base, *data; /* data: only for ring buffers */
	size_t base_size, data_size;
	uint32_t output;
	int cpu;	   /* -1: all CPUs */
	int fd;		   /* owned if it is a perf event; a map's descriptor belongs to libbpf */
	struct ring *ring; /* NULL: not yet added */
};

struct bpf_rings {
	const struct bpf_output_class *outputs;
	uint32_t nr_outputs, nr_rings;
	struct mapped *rings;
	int *layouts;	   /* of the decoder, for each output that is a perf event array */
	uint64_t reported; /* losses returned by bpf_rings_lost() so far */
	uint64_t dropped;  /* unreported losses of closed rings */
	bool has_lost;	   /* the kernel counts lost records of perf events */
};

static size_t page_size(void)
{
	return sysconf(_SC_PAGESIZE);
}

static struct mapped *add(struct bpf_rings *b, uint32_t output, int cpu, int fd, struct error *err)
{
	struct mapped *grown = reallocarray(b->rings, b->nr_rings + 1, sizeof(*grown));

	if (!grown) {
		error_set(err, -ENOMEM, "out of memory");
		return NULL;
	}
	b->rings = grown;
	grown += b->nr_rings++;
	*grown = (struct mapped){
		.base = MAP_FAILED, .data = MAP_FAILED, .output = output, .cpu = cpu, .fd = fd};
	return grown;
}

static void unmap(const struct bpf_rings *b, const struct mapped *m)
{
	if (m->base != MAP_FAILED)
		munmap(m->base, m->base_size);
	if (m->data != MAP_FAILED)
		munmap(m->data, m->data_size);
	if (b->outputs[m->output].map.per_cpu)
		close(m->fd);
}

static int open_ringbuf(struct bpf_rings *b, uint32_t index, struct error *err)
{
	const struct bpf_output *out = &b->outputs[index].map;
	struct mapped *m = add(b, index, -1, out->map, err);

	if (!m)
		return -ENOMEM;
	m->base_size = page_size();
	m->data_size = page_size() + 2 * (size_t)out->size;
	m->base = mmap(NULL, m->base_size, PROT_READ | PROT_WRITE, MAP_SHARED, m->fd, 0);
	if (m->base != MAP_FAILED)
		m->data = mmap(NULL, m->data_size, PROT_READ, MAP_SHARED, m->fd, page_size());
	if (m->data == MAP_FAILED)
		return error_set(err, -errno, "cannot map a ring buffer: %s", strerror(errno));
	return 0;
}

static struct perf_event_attr output_attr(const struct bpf_rings *b, const struct bpf_output *out,
					  bool disabled)
{
	return (struct perf_event_attr){
		.type = PERF_TYPE_SOFTWARE,
		.config = PERF_COUNT_SW_BPF_OUTPUT,
		.size = sizeof(struct perf_event_attr),
		.sample_period = 1,
		.sample_type = PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_TID | PERF_SAMPLE_TIME |
			       PERF_SAMPLE_CPU | PERF_SAMPLE_RAW,
		.read_format = b->has_lost ? PERF_FORMAT_LOST : 0,
		.wakeup_watermark = out->size * page_size() / 2,
		.disabled = disabled,
		.sample_id_all = 1,
		.watermark = 1,
		.use_clockid = 1,
		.clockid = CLOCK_MONOTONIC,
	};
}

static int open_cpu(struct bpf_rings *b, uint32_t index, int cpu, bool disabled,
		    struct decoder *decoder, struct error *err)
{
	const struct bpf_output *out = &b->outputs[index].map;
	struct perf_event_attr attr = output_attr(b, out, disabled);
	int fd = evlist_open_event(&attr, -1, cpu, -1, 0), ret;
	struct mapped *m;
	uint64_t id;

	if (fd < 0)
		return error_set(err, fd, "cannot open bpf-output: %s", strerror(-fd));
	m = add(b, index, cpu, fd, err);
	if (!m) {
		close(fd);
		return -ENOMEM;
	}
	m->base_size = (out->size + 1) * page_size();
	m->base = mmap(NULL, m->base_size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (m->base == MAP_FAILED)
		return error_set(err, -errno, "cannot map a ring of %u pages: %s", out->size,
				 strerror(errno));
	ret = bpf_put_entry(out->map, cpu, fd);
	if (ret)
		return error_set(err, ret, "cannot put a ring into a BPF map: %s", strerror(-ret));
	if (ioctl(fd, PERF_EVENT_IOC_ID, &id) || decoder_add_id(decoder, id, b->layouts[index]))
		return error_set(err, -EINVAL, "cannot get the id of bpf-output");
	return 0;
}

static int open_cpus(struct bpf_rings *b, uint32_t index, const struct cpus *cpus,
		     struct decoder *decoder, struct error *err)
{
	const struct bpf_output *out = &b->outputs[index].map;
	struct perf_event_attr attr = output_attr(b, out, true);
	int ret;

	b->layouts[index] = decoder_add_attr(decoder, &attr, err);
	if (b->layouts[index] < 0)
		return b->layouts[index];
	ret = decoder_add_class(decoder, b->layouts[index], b->outputs[index].class,
				b->outputs[index].payload);
	for (int cpu = -1; !ret && (cpu = cpus_next(cpus, cpu)) >= 0;)
		ret = open_cpu(b, index, cpu, true, decoder, err);
	return ret;
}

struct bpf_rings *bpf_rings_open(const struct bpf_output_class *outputs, uint32_t n,
				 const struct cpus *cpus, bool has_lost, struct decoder *decoder,
				 struct error *err)
{
	struct bpf_rings *b = calloc(1, sizeof(*b));
	int ret = 0;

	if (b)
		b->layouts = calloc(n, sizeof(*b->layouts));
	if (!b || !b->layouts) {
		free(b);
		error_set(err, -ENOMEM, "out of memory");
		return NULL;
	}
	b->outputs = outputs;
	b->nr_outputs = n;
	b->has_lost = has_lost;
	for (uint32_t i = 0; i < n && !ret; i++)
		ret = outputs[i].map.per_cpu ? open_cpus(b, i, cpus, decoder, err)
					     : open_ringbuf(b, i, err);
	if (ret) {
		bpf_rings_close(b);
		return NULL;
	}
	return b;
}

int bpf_rings_add_cpu(struct bpf_rings *b, int cpu, struct decoder *decoder, struct error *err)
{
	uint32_t nr_before = b->nr_rings;
	int ret = 0;

	for (uint32_t i = 0; i < b->nr_outputs && !ret; i++)
		if (b->outputs[i].map.per_cpu)
			ret = open_cpu(b, i, cpu, false, decoder, err);
	while (ret && b->nr_rings > nr_before)
		unmap(b, &b->rings[--b->nr_rings]);
	return ret;
}

void bpf_rings_close(struct bpf_rings *b)
{
	if (!b)
		return;
	for (uint32_t i = 0; i < b->nr_rings; i++)
		unmap(b, &b->rings[i]);
	free(b->rings);
	free(b->layouts);
	free(b);
}

int bpf_rings_add(struct bpf_rings *b, uint32_t i, struct merge *merge,
		  const struct decoder *decoder)
{
	struct mapped *m = &b->rings[i];
	const struct bpf_output *out = &b->outputs[m->output].map;

	m->ring = out->per_cpu ? ring_new(m->base, out->size, decoder)
			       : ring_new_bpf(m->base, m->data, out->size, out->time_at,
					      (m->output + 1) << SLOT_OWN_SHIFT);
	if (m->ring && !merge_add(merge, m->ring))
		return 0;
	ring_free(m->ring);
	m->ring = NULL;
	return -ENOMEM;
}

/* Returns the number of lost records of a perf event that no record in its ring reported. */
static uint64_t unreported(const struct bpf_rings *b, const struct mapped *m)
{
	uint64_t value[2]; /* value, lost */

	if (!b->has_lost || !m->ring || !b->outputs[m->output].map.per_cpu ||
	    read(m->fd, value, sizeof(value)) != sizeof(value))
		return 0;
	return value[1] - ring_lost(m->ring);
}

void bpf_rings_drop(struct bpf_rings *b, const struct ring *ring)
{
	for (uint32_t i = 0; i < b->nr_rings; i++) {
		struct mapped *m = &b->rings[i];

		if (m->ring != ring)
			continue;
		b->dropped += unreported(b, m);
		unmap(b, m);
		*m = b->rings[--b->nr_rings];
		return;
	}
}

uint32_t bpf_rings_nr(const struct bpf_rings *b)
{
	return b->nr_rings;
}

int bpf_rings_fd(const struct bpf_rings *b, uint32_t i)
{
	return b->rings[i].fd;
}

int bpf_rings_cpu(const struct bpf_rings *b, uint32_t i)
{
	return b->rings[i].cpu;
}

bool bpf_rings_has_cpus(const struct bpf_rings *b)
{
	for (uint32_t i = 0; i < b->nr_outputs; i++)
		if (b->outputs[i].map.per_cpu)
			return true;
	return false;
}

bool bpf_rings_is_level(const struct bpf_rings *b, uint32_t i)
{
	return !b->outputs[b->rings[i].output].map.per_cpu;
}

int bpf_rings_enable(struct bpf_rings *b, struct error *err)
{
	for (uint32_t i = 0; i < b->nr_rings; i++)
		if (b->outputs[b->rings[i].output].map.per_cpu &&
		    ioctl(b->rings[i].fd, PERF_EVENT_IOC_ENABLE, 0))
			return error_set(err, -errno, "cannot start bpf-output: %s",
					 strerror(errno));
	return 0;
}

void bpf_rings_stop(struct bpf_rings *b)
{
	for (uint32_t i = 0; i < b->nr_rings; i++) {
		if (b->outputs[b->rings[i].output].map.per_cpu)
			ioctl(b->rings[i].fd, PERF_EVENT_IOC_DISABLE, 0);
		else
			ring_freeze(b->rings[i].ring);
	}
}

uint64_t bpf_rings_lost(struct bpf_rings *b)
{
	uint64_t lost = 0, new;

	for (uint32_t i = 0; i < b->nr_outputs; i++)
		if (b->outputs[i].map.lost)
			lost += __atomic_load_n(b->outputs[i].map.lost, __ATOMIC_RELAXED);
	new = lost - b->reported;
	b->reported = lost;
	return new;
}

uint64_t bpf_rings_unreported(const struct bpf_rings *b)
{
	uint64_t n = b->dropped;

	for (uint32_t i = 0; i < b->nr_rings; i++)
		n += unreported(b, &b->rings[i]);
	return n;
}

static int32_t word_at(const uint8_t *record, int32_t at)
{
	int32_t word;

	if (at < 0)
		return -1;
	memcpy(&word, record + at, sizeof(word));
	return word;
}

static inline bool decode(const struct bpf_output_class *out, const struct slot *slot,
			  struct event *ev)
{
	const uint8_t *record = slot->rec;
	uint32_t size;

	memcpy(&size, record, sizeof(size));
	if (size < out->payload)
		return false;
	record += BPF_RINGBUF_HDR_SZ;
	ev->raw = record;
	ev->raw_size = size;
	ev->chain = NULL;
	ev->key = 0;
	ev->pid = word_at(record, out->map.pid_at);
	ev->tid = word_at(record, out->map.tid_at);
	ev->cpu = word_at(record, out->map.cpu_at);
	ev->class = out->class;
	ev->period = 1;
	return true;
}

int bpf_decode(const struct bpf_output_class *outputs, const struct slot *slot, struct event *ev)
{
	return decode(&outputs[(slot->flags >> SLOT_OWN_SHIFT) - 1], slot, ev) ? 1 : -EBADMSG;
}

int bpf_decode_run(const struct bpf_output_class *outputs, const struct slot *slots, int n,
		   uint64_t base, uint64_t from, struct event *restrict ev)
{
	int i;

	for (i = 0; i < n; i++, ev++) {
		const struct slot *slot = &slots[i];
		uint32_t mark = slot->flags >> SLOT_OWN_SHIFT;

		if (!mark || slot->flags & ((1 << SLOT_OWN_SHIFT) - 1) || slot->time < from ||
		    !decode(&outputs[mark - 1], slot, ev))
			break;
		ev->time = (double)(int64_t)(slot->time - base);
		ev->ring = slot->ring;
		ev->flags = 0;
	}
	return i;
}
