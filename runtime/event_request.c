/* SPDX-License-Identifier: GPL-2.0-only */
#include "event_request.h"
#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <linux/perf_event.h>

#define SAME(member)                                                          \
	_Static_assert(offsetof(struct perf_attr, member) ==                  \
			       offsetof(struct perf_event_attr, member),      \
		       "perf_event_attr." #member);                           \
	_Static_assert(sizeof(((struct perf_attr *)0)->member) ==             \
			       sizeof(((struct perf_event_attr *)0)->member), \
		       "perf_event_attr." #member)

SAME(type);
SAME(size);
SAME(config);
SAME(sample_period);
SAME(sample_type);
SAME(read_format);
SAME(wakeup_events);
SAME(bp_type);
SAME(config1);
SAME(config2);
SAME(branch_sample_type);
SAME(sample_regs_user);
SAME(sample_stack_user);
SAME(clockid);
SAME(sample_regs_intr);
SAME(aux_watermark);
SAME(sample_max_stack);
_Static_assert(sizeof(struct perf_attr) == PERF_ATTR_SIZE_VER5, "perf_event_attr");

static bool copy_string(const char **to, const char *from)
{
	*to = from ? strdup(from) : NULL;
	return !from || *to;
}

int event_request_copy(struct event_request *to, const struct event_request *from)
{
	bool ok;

	*to = *from;
	ok = copy_string(&to->name, from->name);
	ok &= copy_string(&to->config1_text, from->config1_text);
	ok &= copy_string(&to->filter, from->filter);
	ok &= copy_string(&to->cpus, from->cpus);
	if (ok)
		return 0;
	event_request_clear(to);
	return -ENOMEM;
}

void event_request_clear(struct event_request *req)
{
	free((char *)req->name);
	free((char *)req->config1_text);
	free((char *)req->filter);
	free((char *)req->cpus);
	memset(req, 0, sizeof(*req));
}
