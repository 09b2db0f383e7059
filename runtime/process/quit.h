/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Leaves nothing behind when the process is about to end at once, from a signal handler: the events
 * are closed, then the probes removed, which they kept in use, and the terminal is given back.
 */
#pragma once

/* What else is to be done once the events are closed; it may call only what signal handlers may.
 * NULL: no more. */
void quit_set_cleanup(void (*cleanup)(void *arg), void *arg);
/* struct termios of the terminal on standard input, as it was, and what is to be written to
 * standard output. Both must last. NULL: it is as it was. */
void quit_set_terminal(const void *termios, const char *text);
/* The process must end after it: its files and rings are gone. */
void quit_clean(void);
