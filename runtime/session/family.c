/* SPDX-License-Identifier: GPL-2.0-only */
#include "session/family.h"
#include <stdlib.h>
#include <string.h>
#include "os/threads.h"

struct family {
	uint64_t childless_at;	  /* no member was left then; 0: some are */
	bool has_grown;		  /* since then */
	uint8_t member[PIDS_MAX]; /* by tid; most pages are never written */
};

static bool is_tid(int32_t tid)
{
	return tid > 0 && tid < PIDS_MAX;
}

struct family *family_new(const int32_t *tids, uint32_t n)
{
	struct family *f = calloc(1, sizeof(*f));

	for (uint32_t i = 0; f && i < n; i++)
		if (is_tid(tids[i]))
			f->member[tids[i]] = 1;
	return f;
}

void family_free(struct family *f)
{
	free(f);
}

void family_fork(struct family *f, int32_t parent, int32_t tid)
{
	if (!is_tid(parent) || !is_tid(tid))
		return;
	f->member[tid] = f->member[parent];
	f->has_grown |= f->member[tid];
}

void family_exit(struct family *f, int32_t tid)
{
	if (is_tid(tid))
		f->member[tid] = 0;
}

static bool have_all_ended(const struct family *f)
{
	const uint8_t *at = f->member, *end = at + PIDS_MAX;

	/* A thread that has exited stays a member until its EXIT record: the FORK records of its
	 * children may not have arrived yet. */
	for (; (at = memchr(at, 1, end - at)); at++) {
		int32_t tid = at - f->member;
		uint32_t n = 0;

		if (!threads_ended(&tid, 1, &n))
			return false;
	}
	return true;
}

bool family_died_out(struct family *f, uint64_t now, uint64_t read_until)
{
	if (!have_all_ended(f)) {
		f->childless_at = 0;
		return false;
	}
	/* A member that was not known then may have had children before it ended. */
	if (!f->childless_at || f->has_grown) {
		f->childless_at = now;
		f->has_grown = false;
	}
	return read_until >= f->childless_at;
}
