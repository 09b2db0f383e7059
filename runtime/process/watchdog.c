/* SPDX-License-Identifier: GPL-2.0-only */
#include "process/watchdog.h"
#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <ucontext.h>
#include "os/priority.h"
#include "process/self_maps.h"

enum {
	TICK = 10000000, /* ns of CPU time between two looks: loops of calls are in Lua at few */
	PATIENCE = 100,	 /* ticks in Lua before it is interrupted */
	GIVE_UP = 40,	 /* more of them before it is given up */
	CALLS = 40,	 /* ticks in C that count with the next one in Lua, which has called it */
	DELAY = 20,	 /* ticks that one counts for at the most, where others have the CPU */
	SLOW = 10,	 /* ticks after which others no longer have the CPU first */
	FIRST = -20,	 /* nice */
	MAX_INTERRUPTS = 200, /* of a script that catches all errors */
	WAKE = 500000000,     /* ns between two looks at whether a script waits */
	WAITS = 2,	      /* looks after which it is woken */
	RAN = 1000000,	      /* ns of CPU time between two looks of a script that runs */
	PATH_SIZE = 256
};

static struct watchdog_ops ops;
static timer_t tick_timer, limit_timer, wake_timer;
static volatile sig_atomic_t ready, running;
/* Ticks in Lua since the script returned, and since the interpreter was interrupted. */
static volatile sig_atomic_t ticks, ticks_since, interrupts;
static volatile uintptr_t last_code;   /* in compiled code since the script returned */
static volatile sig_atomic_t calls;    /* ticks in C since the last one in Lua, up to CALLS */
static volatile sig_atomic_t waits;    /* looks since it last ran */
static volatile uint64_t last_cpu;     /* ns of CPU time at the last look */
static volatile uint64_t last_tick;    /* when it was, ns on CLOCK_MONOTONIC */
static volatile sig_atomic_t is_first; /* its priority is FIRST, and was niceness */
static volatile sig_atomic_t niceness;

/* The files of the interpreter's code and of the running code; compiled Lua has none. */
struct place {
	uintptr_t pc;
	char interpreter[PATH_SIZE], code[PATH_SIZE];
	bool found;
};

static int look(const struct self_map *map, void *arg)
{
	struct place *place = arg;
	uintptr_t interpreter = (uintptr_t)ops.interpreter;

	if (map->from <= interpreter && interpreter < map->to)
		strncpy(place->interpreter, map->path, PATH_SIZE - 1);
	if (map->from <= place->pc && place->pc < map->to) {
		strncpy(place->code, map->path, PATH_SIZE - 1);
		place->found = true;
	}
	return 0;
}

static bool is_in_lua(const ucontext_t *context)
{
	struct place place = {0};

#if defined(__x86_64__)
	place.pc = (uintptr_t)context->uc_mcontext.gregs[REG_RIP];
#elif defined(__aarch64__)
	place.pc = (uintptr_t)context->uc_mcontext.pc;
#else
	return true;
#endif
	self_maps_each(look, &place);
	if (place.found && !place.code[0])
		last_code = place.pc;
	return place.found && (!place.code[0] || !strcmp(place.code, place.interpreter));
}

static void arm(timer_t timer, uint64_t first, uint64_t interval)
{
	struct itimerspec spec = {
		.it_value = {(time_t)(first / 1000000000), (long)(first % 1000000000)},
		.it_interval = {(time_t)(interval / 1000000000), (long)(interval % 1000000000)},
	};

	timer_settime(timer, 0, &spec, NULL);
}

static uint64_t read_clock(clockid_t id)
{
	struct timespec t = {0};

	clock_gettime(id, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

/* How many ticks of the clock on the wall this one stands for: on a busy machine, a tick of CPU
 * time takes longer, and the user waits. */
static int elapsed(void)
{
	uint64_t now = read_clock(CLOCK_MONOTONIC);
	uint64_t n = (now - last_tick) / TICK;

	last_tick = now;
	return n < 1 ? 1 : n > DELAY ? DELAY : (int)n;
}

/* What others do with the CPU is no reason to end a script that only needs a while. Another policy
 * than the normal one is the user's choice, and stays. */
static void go_first(void)
{
	if (is_first || (sched_getscheduler(0) & ~SCHED_RESET_ON_FORK) != SCHED_OTHER)
		return;
	is_first = 1;
	niceness = getpriority(PRIO_PROCESS, 0);
	priority_hurry(); /* what a script starts does not inherit what follows */
	setpriority(PRIO_PROCESS, 0, FIRST);
}

static void look_at_script(const ucontext_t *context)
{
	int step = elapsed();

	if (!is_in_lua(context)) {
		/* One long call ends by itself. A loop of short ones is in Lua now and then. */
		calls = calls + step < CALLS ? calls + step : CALLS;
		return;
	}
	step += calls;
	calls = 0;
	if (ticks > SLOW)
		go_first();
	if (ticks < PATIENCE) {
		ticks += step;
		if (ticks < PATIENCE)
			return;
		step = 1;
	}
	ticks_since += step;
	if (ticks_since > GIVE_UP || ++interrupts > MAX_INTERRUPTS)
		ops.give_up(0, last_code);
	ops.interrupt();
}

static void on_tick(int number, siginfo_t *info, void *context)
{
	int code = errno;

	(void)number;
	if (!running)
		return;
	if (info->si_value.sival_int) /* the limit */
		watchdog_start();
	else
		look_at_script(context);
	errno = code;
}

/* Its signal ends the call in which the script waits. A script that gets little CPU time, but some,
 * does not wait. */
static void on_wake(int number)
{
	uint64_t cpu;

	(void)number;
	if (!running)
		return;
	cpu = read_clock(CLOCK_THREAD_CPUTIME_ID);
	if (cpu - last_cpu > RAN)
		waits = 0;
	last_cpu = cpu;
	if (waits < WAITS)
		waits++;
	else
		ops.interrupt();
}

void watchdog_init(const struct watchdog_ops *new_ops)
{
	struct sigaction action = {.sa_sigaction = on_tick, .sa_flags = SA_RESTART | SA_SIGINFO};
	struct sigevent tick = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGALRM};
	struct sigevent limit = tick;
	struct sigaction wake_action = {.sa_handler = on_wake};
	struct sigevent wake = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGVTALRM};

	ops = *new_ops;
	limit.sigev_value.sival_int = 1;
	sigaction(SIGALRM, &action, NULL);
	sigaction(SIGVTALRM, &wake_action, NULL);
	ready = !timer_create(CLOCK_THREAD_CPUTIME_ID, &tick, &tick_timer) &&
		!timer_create(CLOCK_MONOTONIC, &limit, &limit_timer) &&
		!timer_create(CLOCK_MONOTONIC, &wake, &wake_timer);
}

void watchdog_begin(uint64_t limit)
{
	watchdog_returned();
	running = ready;
	if (running && limit)
		arm(limit_timer, limit, 0);
}

void watchdog_start(void)
{
	if (!running)
		return;
	last_tick = read_clock(CLOCK_MONOTONIC);
	arm(tick_timer, TICK, TICK);
	arm(wake_timer, WAKE, WAKE);
}

void watchdog_returned(void)
{
	ticks = ticks_since = interrupts = calls = waits = 0;
	last_code = 0;
}

void watchdog_reached(void)
{
	ticks_since = 0;
	last_code = 0;
}

void watchdog_end(void)
{
	if (!running)
		return;
	running = 0;
	arm(tick_timer, 0, 0);
	arm(limit_timer, 0, 0);
	arm(wake_timer, 0, 0);
	if (is_first)
		setpriority(PRIO_PROCESS, 0, niceness);
	is_first = 0;
}

void watchdog_give_up(int signal)
{
	if (ops.give_up)
		ops.give_up(signal, last_code);
}
