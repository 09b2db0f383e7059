/* SPDX-License-Identifier: GPL-2.0-only */
/* A record is in one of three places: the mapped file, or the chunk into which the file or the pipe
 * was read (compressed or not); the chunk into which it was decompressed; or, if it is not aligned,
 * a chunk into which it was copied. A full chunk with kept records is retired, and freed when the
 * newest of them is released; a chunk without kept records is reused. */
#include "recording/stream.h"
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zstd.h>
#include "os/bus.h"
#include "process/signals.h"

enum {
	RECORD_USER = 64,	  /* first type of perf's own records; below are the kernel's */
	RECORD_TRACING_DATA = 66, /* header, u32 size; followed by data padded to 8 bytes */
	RECORD_AUXTRACE = 71,	  /* header, u64 size, more; followed by data */
	RECORD_COMPRESSED = 81,	  /* header, zstd data */
	RECORD_COMPRESSED2 = 83,  /* header, u64 size, zstd data, padding */
	CHUNK = 1 << 18,
	MAX_RECORD = 1 << 16,
	MARKS = 64,
	MARK_STEP = 4 << 20, /* bytes */
	AHEAD = 2048,	     /* bytes to prefetch ahead of a record */
	WAIT_MS = 100,
	MAX_BYTES = 1 << 28 /* for stream_bytes(): far above any table of contents */
};

struct chunk {
	struct chunk *next;
	uint64_t newest; /* time of the newest kept record */
	bool kept;
	_Alignas(8) uint8_t data[CHUNK];
};

/* Undelivered bytes in the file or in a chunk. */
struct span {
	const uint8_t *at, *end;
	struct chunk *chunk; /* NULL: the file */
};

/* A position in the mapped file, and the time of the newest record before it. */
struct mark {
	uint64_t offset, newest;
};

struct stream {
	int fd;
	bool pipe, ended;
	const uint8_t *file; /* NULL: it is read */
	uint64_t file_size;
	uint64_t unread; /* bytes of a pipe, or of the range of a file that is not mapped */
	bool cut;	 /* the file that is not mapped is shorter than that */
	struct span outer, unpacked, aligned;
	ZSTD_inBuffer packed; /* the current compressed record */
	bool unpacking;	      /* packed may contain more */
	ZSTD_DStream *zstd;
	uint8_t *start; /* bytes that were read from the pipe before; NULL: none are left */
	size_t start_at, start_size;
	uint64_t payload;   /* bytes between the last record and the next one */
	struct chunk *last; /* contains the last record; NULL: it is in the file */
	struct chunk *retired;
	uint8_t *bytes;
	struct mark marks[MARKS]; /* ascending */
	unsigned int nr_marks;
	uint64_t forgotten; /* bytes of the file already dropped from memory */
	uint64_t newest;    /* time of the newest record kept in the file so far */
};

/* Whether a mapping of this size leaves address space for everything else (ulimit -v). */
static bool may_map(uint64_t size)
{
	struct rlimit limit;

	return getrlimit(RLIMIT_AS, &limit) || size <= limit.rlim_cur / 2;
}

/* Maps the file, or leaves it to be read. */
static void map_file(struct stream *s, uint64_t size)
{
	void *file = size && may_map(size) ? mmap(NULL, size, PROT_READ, MAP_PRIVATE, s->fd, 0)
					   : MAP_FAILED;

	s->file_size = s->unread = size;
	if (file != MAP_FAILED && !bus_guard(file, size)) {
		munmap(file, size);
		file = MAP_FAILED;
	}
	if (file == MAP_FAILED) {
		lseek(s->fd, 0, SEEK_SET);
		return;
	}
	madvise(file, size, MADV_SEQUENTIAL);
	s->file = file;
	s->unread = 0;
	s->outer.at = file;
	s->outer.end = s->file + size;
}

struct stream *stream_new(int fd)
{
	struct stream *s = calloc(1, sizeof(*s));
	struct stat st;

	if (!s)
		return NULL;
	s->fd = fd;
	if (fstat(fd, &st)) {
		free(s);
		return NULL;
	}
	s->pipe = !S_ISREG(st.st_mode);
	s->unread = UINT64_MAX;
	if (!s->pipe)
		map_file(s, st.st_size);
	return s;
}

struct stream *stream_continue(int fd, const void *start, size_t size)
{
	struct stream *s = calloc(1, sizeof(*s));

	if (!s)
		return NULL;
	s->fd = fd;
	s->pipe = true;
	s->unread = UINT64_MAX;
	s->start = malloc(size);
	s->start_size = size;
	if (s->start) {
		memcpy(s->start, start, size);
		return s;
	}
	free(s);
	errno = ENOMEM;
	return NULL;
}

void stream_free(struct stream *s)
{
	if (!s)
		return;
	free(s->start);
	while (s->retired) {
		struct chunk *next = s->retired->next;

		free(s->retired);
		s->retired = next;
	}
	free(s->outer.chunk);
	free(s->unpacked.chunk);
	free(s->aligned.chunk);
	free(s->bytes);
	ZSTD_freeDStream(s->zstd);
	if (s->file) {
		bus_release(s->file);
		munmap((void *)s->file, s->file_size);
	}
	free(s);
}

bool stream_is_file(const struct stream *s, uint64_t *size)
{
	*size = s->file_size;
	return !s->pipe;
}

uint64_t stream_position(const struct stream *s)
{
	if (s->file)
		return s->outer.at - s->file;
	return (s->pipe ? UINT64_MAX : s->file_size) - s->unread;
}

const void *stream_at(struct stream *s, uint64_t offset, size_t size)
{
	uint8_t *bytes;
	ssize_t n = 1;

	if (s->file)
		return s->file + offset;
	bytes = realloc(s->bytes, size + 1);
	if (!bytes)
		return NULL;
	s->bytes = bytes;
	for (size_t done = 0; done < size && n > 0; done += n)
		n = pread(s->fd, bytes + done, size - done, (off_t)(offset + done));
	if (n <= 0)
		errno = n ? errno : ENODATA;
	return n > 0 ? bytes : NULL;
}

int stream_limit(struct stream *s, uint64_t from, uint64_t to)
{
	s->outer.at = s->file + from;
	s->outer.end = s->file + to;
	if (s->file)
		return 0;
	s->outer.at = s->outer.end = s->outer.chunk ? s->outer.chunk->data : NULL;
	s->unread = to - from;
	return lseek(s->fd, (off_t)from, SEEK_SET) < 0 ? -errno : 0;
}

bool stream_is_cut(const struct stream *s)
{
	struct stat st;

	return s->cut || (s->file && (bus_failed(s->file) ||
				      (!fstat(s->fd, &st) && (uint64_t)st.st_size < s->file_size)));
}

static size_t left_in(const struct span *span)
{
	return span->end - span->at;
}

/* Makes room after the span's end for at least one record. The unread bytes stay in one piece. */
static int make_room(struct stream *s, struct span *span)
{
	struct chunk *chunk = span->chunk;
	size_t left = left_in(span);

	if (chunk && chunk->data + CHUNK - span->end >= MAX_RECORD)
		return 0;
	if (!chunk || chunk->kept) {
		chunk = malloc(sizeof(*chunk));
		if (!chunk)
			return -ENOMEM;
		chunk->kept = false;
		chunk->newest = 0;
		if (span->chunk) {
			span->chunk->next = s->retired;
			s->retired = span->chunk;
		}
		span->chunk = chunk;
	}
	if (left)
		memmove(chunk->data, span->at, left);
	span->at = chunk->data;
	span->end = chunk->data + left;
	return 0;
}

/* Takes more of the bytes that were read before the stream. */
static void take_start(struct stream *s)
{
	size_t room = s->outer.chunk->data + CHUNK - s->outer.end;
	size_t left = s->start_size - s->start_at, n = left < room ? left : room;

	memcpy((uint8_t *)s->outer.end, s->start + s->start_at, n);
	s->outer.end += n;
	s->start_at += n;
	s->unread -= n;
	if (s->start_at < s->start_size)
		return;
	free(s->start);
	s->start = NULL;
}

/* Reads more from the pipe, or from the file that is not mapped. Returns 1, 0 at its end, or an
 * error as stream_next(). */
static int read_more(struct stream *s, bool wait)
{
	struct pollfd poll_fd = {.fd = s->fd, .events = POLLIN};
	size_t room;
	ssize_t n;
	int ret;

	if (!s->unread || s->ended)
		return 0;
	ret = make_room(s, &s->outer);
	if (ret)
		return ret;
	if (s->start) {
		take_start(s);
		return 1;
	}
	do
		ret = poll(&poll_fd, 1, wait ? WAIT_MS : 0);
	while (ret <= 0 && wait && (!ret || errno == EINTR) && !signals_must_end());
	if (ret <= 0)
		return wait ? -EINTR : -EAGAIN;
	room = s->outer.chunk->data + CHUNK - s->outer.end;
	n = read(s->fd, (uint8_t *)s->outer.end, room < s->unread ? room : s->unread);
	if (n < 0)
		return -errno; /* -EAGAIN: the descriptor is non-blocking */
	s->outer.end += n;
	s->ended = !n;
	s->cut = !n && !s->pipe;
	s->unread -= n;
	return s->cut ? -EBADMSG : !!n;
}

/* Copies a record to an aligned address. */
static const void *align(struct stream *s, const uint8_t *rec, size_t size)
{
	void *copy;

	if (make_room(s, &s->aligned))
		return NULL;
	copy = memcpy((uint8_t *)s->aligned.end, rec, size);
	s->aligned.end += (size + 7) & ~7ul;
	s->aligned.at = s->aligned.end;
	s->last = s->aligned.chunk;
	return copy;
}

/* Takes the next record of the span. Returns 0 if it is not complete. */
static int take(struct stream *s, struct span *span, const struct perf_event_header **rec)
{
	const uint8_t *at = span->at;
	struct perf_event_header header;
	size_t left = left_in(span);

	if (left < sizeof(header))
		return 0;
	memcpy(&header, at, sizeof(header));
	if (header.size < sizeof(header))
		return -EBADMSG;
	if (header.size > left)
		return 0;
	span->at += header.size;
	s->last = span->chunk;
	*rec = (uintptr_t)at & 7 ? align(s, at, header.size) : (const void *)at;
	return *rec ? 1 : -ENOMEM;
}

static int start_unpacking(struct stream *s, const struct perf_event_header *rec)
{
	size_t size = rec->size - sizeof(*rec);
	const uint8_t *data = (const void *)(rec + 1);

	if (rec->type == RECORD_COMPRESSED2) {
		uint64_t packed_size;

		if (size < sizeof(packed_size))
			return -EBADMSG;
		memcpy(&packed_size, data, sizeof(packed_size));
		data += sizeof(packed_size);
		size -= sizeof(packed_size);
		if (packed_size > size)
			return -EBADMSG;
		size = packed_size;
	}
	if (!s->zstd)
		s->zstd = ZSTD_createDStream();
	if (!s->zstd)
		return -ENOMEM;
	s->packed = (ZSTD_inBuffer){.src = data, .size = size};
	s->unpacking = true;
	return 0;
}

static int unpack(struct stream *s)
{
	struct chunk *chunk;
	ZSTD_outBuffer out;
	int ret = make_room(s, &s->unpacked);

	if (ret)
		return ret;
	chunk = s->unpacked.chunk;
	out.dst = chunk->data;
	out.size = CHUNK;
	out.pos = s->unpacked.end - chunk->data;
	if (ZSTD_isError(ZSTD_decompressStream(s->zstd, &out, &s->packed)))
		return -EBADMSG;
	s->unpacked.end = chunk->data + out.pos;
	s->unpacking = out.pos == out.size || s->packed.pos < s->packed.size;
	return 0;
}

static uint64_t payload_of(const struct perf_event_header *rec)
{
	uint64_t size = 0;

	if (rec->type == RECORD_AUXTRACE && rec->size >= sizeof(*rec) + 8)
		memcpy(&size, rec + 1, 8);
	if (rec->type == RECORD_TRACING_DATA && rec->size >= sizeof(*rec) + 4) {
		memcpy(&size, rec + 1, 4);
		size = (size + 7) & ~7ull;
	}
	return size;
}

/* Skips the payload of the last record. Returns false if it is not complete yet. */
static bool skip_payload(struct stream *s)
{
	uint64_t n = left_in(&s->outer) < s->payload ? left_in(&s->outer) : s->payload;

	s->outer.at += n;
	s->payload -= n;
	return !s->payload;
}

/* Reads the next uncompressed record. Returns as stream_next(). */
static int next_outer(struct stream *s, bool wait, const struct perf_event_header **rec)
{
	for (;;) {
		int ret = !s->payload || skip_payload(s) ? take(s, &s->outer, rec) : 0;

		if (ret > 0 && (*rec)->type >= RECORD_USER)
			s->payload = payload_of(*rec);
		if (ret)
			return ret;
		ret = read_more(s, wait);
		if (ret < 0)
			return ret;
		if (!ret)
			return left_in(&s->outer) || left_in(&s->unpacked) || s->payload ? -ENODATA
											 : 0;
	}
}

/* Reads any record, in any state of the stream. Not inlined, to keep the common case short. */
static int __attribute__((noinline))
next_record(struct stream *s, bool wait, const struct perf_event_header **rec)
{
	for (;;) {
		int ret = take(s, &s->unpacked, rec);

		if (ret)
			return ret;
		if (s->unpacking) {
			ret = unpack(s);
			if (ret)
				return ret;
			continue;
		}
		ret = next_outer(s, wait, rec);
		if (ret <= 0)
			return ret;
		if ((*rec)->type != RECORD_COMPRESSED && (*rec)->type != RECORD_COMPRESSED2)
			return 1;
		ret = start_unpacking(s, *rec);
		if (ret)
			return ret;
	}
}

int stream_next(struct stream *s, bool wait, const struct perf_event_header **rec)
{
	const struct perf_event_header *at = (const void *)s->outer.at;
	size_t left = left_in(&s->outer);

	/* The common case: a kernel record that can be delivered in place. The next record can only
	 * be found after loading this one's size from memory. Without the prefetch, these loads
	 * take half the time of a whole analysis. */
	if (!s->payload && !s->unpacking && !left_in(&s->unpacked) && left >= sizeof(*at) &&
	    !((uintptr_t)at & 7) && at->type < RECORD_USER && at->size >= sizeof(*at) &&
	    at->size <= left) {
		__builtin_prefetch((const uint8_t *)at + AHEAD);
		__builtin_prefetch((const uint8_t *)at + AHEAD + 64);
		s->outer.at += at->size;
		s->last = s->outer.chunk;
		*rec = at;
		return 1;
	}
	return next_record(s, wait, rec);
}

/* Collects size bytes that are not all in one chunk. */
static int collect(struct stream *s, size_t size)
{
	size_t room = 0;

	for (size_t n = 0; n < size;) {
		size_t part = left_in(&s->outer) < size - n ? left_in(&s->outer) : size - n;
		int ret;

		/* Memory grows with the data read, because the size may be wrong. */
		while (n + part > room) {
			uint8_t *bytes = realloc(s->bytes, room ? room * 2 : CHUNK);

			if (!bytes)
				return -ENOMEM;
			s->bytes = bytes;
			room = room ? room * 2 : CHUNK;
		}
		if (part) {
			memcpy(s->bytes + n, s->outer.at, part);
			s->outer.at += part;
			n += part;
		}
		if (n == size)
			break;
		ret = read_more(s, true);
		if (ret <= 0)
			return ret ? ret : -ENODATA;
	}
	return 0;
}

const void *stream_bytes(struct stream *s, size_t size)
{
	const uint8_t *at = s->outer.at;
	int ret;

	if (size <= left_in(&s->outer)) {
		s->outer.at += size;
		return at;
	}
	ret = s->file ? -ENODATA : size > MAX_BYTES ? -EBADMSG : collect(s, size);
	if (!ret)
		return s->bytes;
	errno = -ret;
	return NULL;
}

const void *stream_payload(struct stream *s, size_t *size)
{
	*size = s->payload;
	s->payload = 0;
	return stream_bytes(s, *size);
}

/* Adds a mark every MARK_STEP bytes of the file, as long as there is room. */
static void mark_file(struct stream *s, const struct perf_event_header *rec, uint64_t time)
{
	uint64_t offset = (const uint8_t *)rec - s->file;
	uint64_t before = s->nr_marks ? s->marks[s->nr_marks - 1].offset : s->forgotten;

	if (offset >= before + MARK_STEP && s->nr_marks < MARKS)
		s->marks[s->nr_marks++] = (struct mark){offset & ~(uint64_t)4095, s->newest};
	if (time > s->newest)
		s->newest = time;
}

/* Drops the released part of the file from memory, so that memory does not grow with the size of
 * the recording. */
static void forget_file(struct stream *s, uint64_t oldest)
{
	unsigned int done = 0;

	while (done < s->nr_marks && s->marks[done].newest < oldest)
		done++;
	if (!done)
		return;
	madvise((void *)(s->file + s->forgotten), s->marks[done - 1].offset - s->forgotten,
		MADV_DONTNEED);
	s->forgotten = s->marks[done - 1].offset;
	s->nr_marks -= done;
	memmove(s->marks, s->marks + done, s->nr_marks * sizeof(s->marks[0]));
}

size_t stream_keep(struct stream *s, const struct perf_event_header *rec, uint64_t time)
{
	if (!s->last) {
		mark_file(s, rec, time);
		return 0;
	}
	s->last->kept = true;
	if (time > s->last->newest)
		s->last->newest = time;
	return rec->size;
}

void stream_release(struct stream *s, uint64_t oldest)
{
	struct span *spans[] = {&s->outer, &s->unpacked, &s->aligned};

	if (s->nr_marks)
		forget_file(s, oldest);
	for (struct chunk **at = &s->retired; *at;) {
		struct chunk *chunk = *at;

		if (chunk->newest >= oldest) {
			at = &chunk->next;
			continue;
		}
		*at = chunk->next;
		free(chunk);
	}
	for (int i = 0; i < 3; i++) {
		struct chunk *chunk = spans[i]->chunk;

		if (chunk && chunk->newest < oldest) {
			chunk->kept = false;
			chunk->newest = 0;
		}
	}
}
