/* SPDX-License-Identifier: GPL-2.0-only */
#include "process/signals.h"
#include <errno.h>
#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>
#include "os/clock.h"
#include "process/watchdog.h"

/* Signal handlers have no other place for their state. */
static volatile sig_atomic_t stop_requested, reopen_requested, report_requested;
static volatile sig_atomic_t waiting; /* for this many other programs */
static volatile sig_atomic_t must_end, must_end_soon;
static volatile uint64_t asked_at, stopped_at; /* times of the first and the latest request */
static volatile uint64_t cpu_at;	       /* CPU time of this process at the first one */
static volatile sig_atomic_t wake_fd = -1;

enum {
	/* A request may arrive as two signals: timeout(1) signals its child and then the process
	 * group. Signals this close together count as one. */
	TOGETHER = 200000000, /* ns */
	GRACE = 1000000000,   /* ns to wait for others after SIGTERM and SIGHUP, and to do much */
	CPU_GRACES = 3,	      /* for less than that, of CPU time */
	GRACES = 20
};

static uint64_t cpu_time(void)
{
	struct timespec now;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
	return now.tv_sec * UINT64_C(1000000000) + now.tv_nsec;
}

/* Call this after the flag of a request was set. */
static void wake(void)
{
	const uint64_t one = 1;
	int code = errno;
	ssize_t n = write(wake_fd, &one, sizeof(one));

	(void)n; /* it only fails if nobody waits, or many requests wait already */
	errno = code;
}

static void request_stop(int number)
{
	uint64_t now = clock_monotonic();

	if (number != SIGINT)
		must_end_soon = 1;
	if (!stop_requested) {
		asked_at = stopped_at = now;
		cpu_at = cpu_time();
		stop_requested = 1;
		wake();
		watchdog_start();
	} else if (now - stopped_at <= TOGETHER) {
		return;
	} else if (waiting && !must_end) {
		stopped_at = now;
		must_end = 1;
	} else {
		watchdog_give_up(number);
		signal(number, SIG_DFL);
		raise(number); /* blocked until the handler returns */
	}
}

static void request_reopen(int signal)
{
	(void)signal;
	reopen_requested = 1;
	wake();
}

static void request_report(int signal)
{
	(void)signal;
	report_requested = 1;
	wake();
}

void signals_install_requests(void)
{
	/* poll() returns anyway; no other call needs to. */
	struct sigaction reopen = {.sa_handler = request_reopen, .sa_flags = SA_RESTART};
	struct sigaction report = {.sa_handler = request_report, .sa_flags = SA_RESTART};

	sigaction(SIGUSR1, &reopen, NULL);
	sigaction(SIGUSR2, &report, NULL);
}

void signals_install(void)
{
	/* No SA_RESTART: a write() that waits for its reader must return. */
	struct sigaction stop = {.sa_handler = request_stop};
	struct sigaction ignore = {.sa_handler = SIG_IGN};

	clock_monotonic(); /* which handlers need: the first call reads files */
	/* It is readable at once, because a request may have come before. */
	if (wake_fd < 0)
		wake_fd = eventfd(1, EFD_CLOEXEC | EFD_NONBLOCK);

	sigaction(SIGINT, &stop, NULL);
	sigaction(SIGTERM, &stop, NULL);
	sigaction(SIGHUP, &stop, NULL);
	/* A closed pipe is reported by write(2). */
	sigaction(SIGPIPE, &ignore, NULL);
}

int signals_fd(void)
{
	return wake_fd;
}

void signals_clear_fd(void)
{
	uint64_t requests;
	ssize_t n = read(wake_fd, &requests, sizeof(requests));

	(void)n; /* it fails if the descriptor is clear already */
}

bool signals_stop_requested(void)
{
	return stop_requested;
}

bool signals_overdue(uint64_t *before, uint64_t done, uint64_t much)
{
	uint64_t late;

	if (!stop_requested) {
		*before = done;
		return false;
	}
	late = clock_monotonic() - asked_at;
	return late > GRACE && (done - *before >= much || late > GRACES * (uint64_t)GRACE ||
				cpu_time() - cpu_at > CPU_GRACES * (uint64_t)GRACE);
}

void signals_wait_for_others(bool waits)
{
	waiting += waits ? 1 : -1;
}

bool signals_must_end(void)
{
	if (stop_requested && must_end_soon && clock_monotonic() - stopped_at > GRACE)
		must_end = 1;
	return must_end;
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
