/* SPDX-License-Identifier: GPL-2.0-only */
#include "decode/records.h"
#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <linux/perf_event.h>
#include "event.h"

struct payload_memory {
	struct payload_memory *next;
	uint64_t bytes[];
};

struct records {
	struct payload_memory *made; /* since the batch began */
};

/* A record that is being read, and the struct it becomes. */
struct conversion {
	const struct perf_event_header *rec;
	const uint8_t *in;
	uint8_t *out;
	uint32_t in_size, out_size; /* out has room for MOST bytes */
};

enum { MOST = UINT16_MAX }; /* the largest offset that a word can hold */

static bool put(struct conversion *c, uint32_t word_at, const void *text, uint32_t n)
{
	uint32_t word = (n + 1) << 16 | c->out_size;

	if (c->out_size + n + 1 > MOST)
		return false;
	memcpy(c->out + word_at, &word, sizeof(word));
	memcpy(c->out + c->out_size, text, n);
	c->out[c->out_size + n] = 0;
	c->out_size += n + 1;
	return true;
}

/* Appends the text at `at`, up to its NUL. */
static bool put_text(struct conversion *c, uint32_t word_at, uint32_t at)
{
	return at <= c->in_size &&
	       put(c, word_at, c->in + at, strnlen((const char *)c->in + at, c->in_size - at));
}

static bool put_hex(struct conversion *c, uint32_t word_at, uint32_t at, uint32_t n)
{
	static const char digits[] = "0123456789abcdef";
	char text[512];

	if (n > sizeof(text) / 2 || at + n > c->in_size)
		return false;
	for (uint32_t i = 0; i < n; i++) {
		text[2 * i] = digits[c->in[at + i] >> 4];
		text[2 * i + 1] = digits[c->in[at + i] & 15];
	}
	return put(c, word_at, text, 2 * n);
}

static bool convert_ksymbol(struct conversion *c)
{
	return put_text(c, offsetof(struct record_ksymbol, name), 16);
}

static bool convert_bpf_event(struct conversion *c)
{
	return put_hex(c, offsetof(struct record_bpf_event, tag), 8, 8);
}

static bool convert_cgroup(struct conversion *c)
{
	return put_text(c, offsetof(struct record_cgroup, path), 8);
}

static bool convert_text_poke(struct conversion *c)
{
	const struct record_text_poke *out = (const void *)c->out;
	uint32_t old_len = out->old_len;

	return put_hex(c, offsetof(struct record_text_poke, old_bytes), 12, old_len) &&
	       put_hex(c, offsetof(struct record_text_poke, new_bytes), 12 + old_len, out->new_len);
}

/* Older kernels have fewer kinds of namespaces. */
static bool convert_namespaces(struct conversion *c)
{
	uint32_t most = sizeof(struct record_namespaces);

	memcpy(c->out, c->in, c->in_size < most ? c->in_size : most);
	return true;
}

static bool convert_comm(struct conversion *c)
{
	uint32_t exec = !!(c->rec->misc & PERF_RECORD_MISC_COMM_EXEC);

	memcpy(c->out + offsetof(struct record_comm, exec), &exec, sizeof(exec));
	return put_text(c, offsetof(struct record_comm, comm), 8);
}

uint32_t records_mmap_path(uint32_t type, const uint8_t *payload, uint32_t size)
{
	enum { SHORT = 56, LONG = 64, MOST_PROT = PROT_READ | PROT_WRITE | PROT_EXEC };
	uint32_t prot;

	if (type != PERF_RECORD_MMAP2)
		return 32;
	if (size < LONG)
		return LONG;
	memcpy(&prot, payload + SHORT, sizeof(prot));
	return prot > MOST_PROT ? SHORT : LONG;
}

static bool convert_mmap(struct conversion *c)
{
	return put_text(c, offsetof(struct record_mmap, filename),
			records_mmap_path(c->rec->type, c->in, c->in_size));
}

/* The first bytes of a record are copied; convert(), if set, does the rest. */
static const struct {
	uint32_t types[3];
	uint16_t copied, size;
	bool (*convert)(struct conversion *c);
} kinds[RECORD_KINDS] = {
	[RECORD_KSYMBOL] = {{PERF_RECORD_KSYMBOL},
			    16,
			    sizeof(struct record_ksymbol),
			    convert_ksymbol},
	[RECORD_BPF_EVENT] = {{PERF_RECORD_BPF_EVENT},
			      8,
			      sizeof(struct record_bpf_event),
			      convert_bpf_event},
	[RECORD_CGROUP] = {{PERF_RECORD_CGROUP}, 8, sizeof(struct record_cgroup), convert_cgroup},
	[RECORD_TEXT_POKE] = {{PERF_RECORD_TEXT_POKE},
			      12,
			      sizeof(struct record_text_poke),
			      convert_text_poke},
	[RECORD_NAMESPACES] = {{PERF_RECORD_NAMESPACES},
			       16,
			       sizeof(struct record_namespaces),
			       convert_namespaces},
	[RECORD_COMM] = {{PERF_RECORD_COMM}, 8, sizeof(struct record_comm), convert_comm},
	[RECORD_FORK] = {{PERF_RECORD_FORK}, 16, sizeof(struct record_task), NULL},
	[RECORD_EXIT] = {{PERF_RECORD_EXIT}, 16, sizeof(struct record_task), NULL},
	[RECORD_MMAP] = {{PERF_RECORD_MMAP2, PERF_RECORD_MMAP},
			 32,
			 sizeof(struct record_mmap),
			 convert_mmap},
};

void records_ask(struct perf_event_attr *attr, enum record_kind kind)
{
	attr->ksymbol |= kind == RECORD_KSYMBOL;
	attr->bpf_event |= kind == RECORD_BPF_EVENT;
	attr->cgroup |= kind == RECORD_CGROUP;
	attr->text_poke |= kind == RECORD_TEXT_POKE;
	attr->namespaces |= kind == RECORD_NAMESPACES;
	attr->comm |= kind == RECORD_COMM;
	/* comm_exec only says how exec is reported and means nothing without comm. But on a CPU the
	 * kernel looks only at events that have one of a few bits set, and cgroup and namespaces
	 * are not among them. */
	attr->comm_exec |=
		kind == RECORD_COMM || kind == RECORD_CGROUP || kind == RECORD_NAMESPACES;
	attr->task |= kind == RECORD_FORK || kind == RECORD_EXIT;
	attr->mmap |= kind == RECORD_MMAP;
	attr->mmap2 |= kind == RECORD_MMAP;
}

bool records_are_asked(const struct perf_event_attr *attr, enum record_kind kind)
{
	switch (kind) {
	case RECORD_KSYMBOL:
		return attr->ksymbol;
	case RECORD_BPF_EVENT:
		return attr->bpf_event;
	case RECORD_CGROUP:
		return attr->cgroup;
	case RECORD_TEXT_POKE:
		return attr->text_poke;
	case RECORD_NAMESPACES:
		return attr->namespaces;
	case RECORD_COMM:
		return attr->comm;
	case RECORD_FORK:
	case RECORD_EXIT:
		return attr->task;
	case RECORD_MMAP:
		return attr->mmap;
	default:
		return false;
	}
}

const uint32_t *records_types(enum record_kind kind)
{
	return kinds[kind].types;
}

int records_support(enum record_kind kind)
{
	struct perf_event_attr attr = {.type = PERF_TYPE_SOFTWARE,
				       .size = sizeof(attr),
				       .config = PERF_COUNT_SW_DUMMY,
				       .exclude_kernel = 1,
				       .disabled = 1};
	int fd;

	records_ask(&attr, kind);
	fd = syscall(SYS_perf_event_open, &attr, 0, -1, -1, PERF_FLAG_FD_CLOEXEC);
	if (fd < 0)
		return -errno;
	close(fd);
	return 0;
}

struct records *records_new(void)
{
	return calloc(1, sizeof(struct records));
}

void records_free(struct records *r)
{
	if (!r)
		return;
	records_begin_batch(r);
	free(r);
}

void records_begin_batch(struct records *r)
{
	while (r->made) {
		struct payload_memory *next = r->made->next;

		free(r->made);
		r->made = next;
	}
}

static enum record_kind kind_of(uint32_t type)
{
	enum record_kind kind = RECORD_NONE;

	while (++kind < RECORD_KINDS)
		if (kinds[kind].types[0] == type || kinds[kind].types[1] == type)
			return kind;
	return RECORD_NONE;
}

bool records_event(struct records *r, const struct perf_event_header *rec, struct event *ev)
{
	enum record_kind kind = kind_of(rec->type);
	struct conversion c = {
		.rec = rec, .in = ev->raw, .in_size = ev->raw_size, .out_size = kinds[kind].size};
	struct payload_memory *memory, *shrunk;

	if (!kind || ev->raw_size < kinds[kind].copied)
		return false;
	memory = calloc(1, sizeof(*memory) + MOST + 1);
	if (!memory)
		return false;
	c.out = (uint8_t *)memory->bytes;
	memcpy(c.out, c.in, kinds[kind].copied);
	if (kinds[kind].convert && !kinds[kind].convert(&c)) {
		free(memory);
		return false;
	}
	shrunk = realloc(memory, sizeof(*memory) + c.out_size);
	memory = shrunk ? shrunk : memory;
	memory->next = r->made;
	r->made = memory;
	ev->raw = (const uint8_t *)memory->bytes;
	ev->raw_size = c.out_size;
	return true;
}
