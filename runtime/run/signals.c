/* SPDX-License-Identifier: GPL-2.0-only */
#include "run/signals.h"
#include <signal.h>
#include <stddef.h>

/* A handler can reach nothing else. */
static volatile sig_atomic_t stop_requested, reopen_requested, report_requested;

static void request_stop(int signal)
{
	(void)signal;
	stop_requested = 1;
}

static void request_reopen(int signal)
{
	(void)signal;
	reopen_requested = 1;
}

static void request_report(int signal)
{
	(void)signal;
	report_requested = 1;
}

void signals_install(void)
{
	/* No SA_RESTART: a sleeping poll() is to return. RESETHAND: the second signal kills. */
	struct sigaction stop = {.sa_handler = request_stop, .sa_flags = SA_RESETHAND};
	struct sigaction reopen = {.sa_handler = request_reopen};
	struct sigaction report = {.sa_handler = request_report};
	struct sigaction ignore = {.sa_handler = SIG_IGN};

	sigaction(SIGINT, &stop, NULL);
	sigaction(SIGTERM, &stop, NULL);
	sigaction(SIGHUP, &stop, NULL);
	sigaction(SIGUSR1, &reopen, NULL);
	sigaction(SIGUSR2, &report, NULL);
	/* A reader that went away is an error of write(2). */
	sigaction(SIGPIPE, &ignore, NULL);
}

bool signals_stop_requested(void)
{
	return stop_requested;
}

bool signals_take_reopen(void)
{
	bool requested = reopen_requested;

	reopen_requested = 0;
	return requested;
}

bool signals_take_report(void)
{
	bool requested = report_requested;

	report_requested = 0;
	return requested;
}
