/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Closer: a child process that closes perf events after this process has ended. The kernel waits
 * some 50 ms for each tracepoint whose last event is closed, one after the other, however many
 * threads close them: all system calls take 17 s.
 */
#pragma once

struct closer;

/* Starts a closer that has all perf events open, so that this process can close them without
 * waiting. NULL if there can be none. */
struct closer *closer_start(void);
/* Call this when this process has closed its events: the closer does, too. Closer may be NULL. */
void closer_release(struct closer *closer);
