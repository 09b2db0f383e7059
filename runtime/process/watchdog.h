/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Watchdog: ends a script that does not return after the run was asked to end. It counts the time
 * on the wall for which this thread is in Lua, so that a script ends within two seconds on a busy
 * machine, too. Waiting does not count, and neither does one long call of C code outside of Lua,
 * because it ends by itself.
 *
 * After a quarter of a second the thread gets the CPU before others, where it may, because a
 * script that returns soon has results. After 0.75 s the interpreter is interrupted. Compiled code
 * and Lua's own functions cannot be interrupted: after another 0.5 s the process is ended. A
 * script that waits, such as in io.read(), is woken and interrupted after a second.
 */
#pragma once
#include <stdint.h>

struct watchdog_ops {
	/* Makes the interpreter raise an error at its next instruction. Called in a signal handler,
	 * like give_up(). */
	void (*interrupt)(void);
	/* Ends the process by a signal; 0: with an exit status. code: an address in the compiled
	 * code that runs; 0: none was seen. */
	void (*give_up)(int signal, uintptr_t code);
	const void *interpreter; /* an address in its code */
};

/* Must be called once, by the thread that runs Lua. */
void watchdog_init(const struct watchdog_ops *ops);

/* Handlers of a script run from now on. They are to end within limit ns; 0: no limit. */
void watchdog_begin(uint64_t limit);
/* The run was asked to end. May be called in signal handlers. */
void watchdog_start(void);
/* The handlers returned: starts to count anew. */
void watchdog_returned(void);
/* The interpreter was interrupted, but not in code of the script. */
void watchdog_reached(void);
/* No handlers run from now on. */
void watchdog_end(void);

/* Ends the process by a signal. Returns if watchdog_init() was not called. */
void watchdog_give_up(int signal);
