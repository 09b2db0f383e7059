/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Live source: perf events of the running kernel, and what BPF programs write. Names and ends of
 * tasks come through rings of their own, so that a flood of samples does not lose them; only
 * threads that are attached to report theirs in the rings of their events. CPUs that go offline and
 * come back are followed; what such a CPU did until it was attached to again is an EVENT_LOST with
 * period 0, as nobody knows how much that was.
 *
 * This header is read by C and by LuaJIT's ffi.cdef: plain declarations only.
 */
#pragma once

struct error;
struct source;

/* NULL with a message. */
struct source *live_new(struct error *err);
