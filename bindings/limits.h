/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Limits of scripts: one that does not return once the run was asked to end is interrupted (see
 * os/watchdog.h), and one that uses too much memory gets an error at the line that asked for more.
 * There is one Lua state, and signal handlers must find it: hence the static data.
 */
#pragma once
#include <stdint.h>

struct lua_State;

/* Call it once, before Lua runs. */
void limits_install(struct lua_State *L);
/* Limits what Lua allocates, in bytes. Compiled code may use half as much again. */
void limits_set_memory(uint64_t bytes);
/* Raises the limit by a little, so that a script that has reached it can print its results. */
void limits_allow_more_memory(void);
