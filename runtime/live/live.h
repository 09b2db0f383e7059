/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Live source: perf events of the running kernel, and records of BPF programs. Task records (COMM,
 * FORK, EXIT) have rings of their own, so that a flood of samples does not lose them; only if the
 * target is threads, they share the rings of the events. CPU hotplug is followed. The events of a
 * CPU between coming online and being attached again are reported as an EVENT_LOST with period 0,
 * because their number is unknown.
 *
 * This header is read by C and by LuaJIT's ffi.cdef: plain declarations only.
 */
#pragma once

struct error;
struct source;

/* Creates the source; NULL with a message. */
struct source *live_new(struct error *err);
