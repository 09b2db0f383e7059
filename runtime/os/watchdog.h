/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Watchdog: finds out that a script does not return after the run was asked to end. What counts is
 * the CPU time that this thread spends in Lua, neither waiting nor in the C code that Lua calls:
 * that ends by itself, however long it takes.
 *
 * After a second of it the interpreter is interrupted. Compiled code cannot be: after another
 * second the process has to end.
 */
#pragma once
#include <stdint.h>

struct watchdog_ops {
	/* Has the interpreter raise an error at its next instruction. Called in a signal handler,
	 * as give_up() is. */
	void (*interrupt)(void);
	/* Ends the process; signal: by this signal, 0: with a failure. */
	void (*give_up)(int signal);
	const void *interpreter; /* an address in its code */
};

/* To be called once, by the thread that runs Lua. */
void watchdog_init(const struct watchdog_ops *ops);

/* Handlers of a script run from now on, and should have ended in limit ns; 0: no limit. */
void watchdog_begin(uint64_t limit);
/* The run was asked to end; for signal handlers. */
void watchdog_start(void);
/* They have returned. */
void watchdog_returned(void);
/* The interpreter has come to an instruction, but not to one of the script. */
void watchdog_reached(void);
/* No more handlers run. */
void watchdog_end(void);

/* Ends the process by a signal; returns where nobody has called watchdog_init(). */
void watchdog_give_up(int signal);
