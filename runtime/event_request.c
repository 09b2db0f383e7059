/* SPDX-License-Identifier: GPL-2.0-only */
#include "event_request.h"
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

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
