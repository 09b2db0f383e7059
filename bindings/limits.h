/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Limits of scripts: interrupts a script that does not return after the run was asked to end (see
 * process/watchdog.h), and raises an error in a script that allocates too much memory. The data is
 * static because signal handlers must find the Lua state.
 */
#pragma once
#include <stdbool.h>
#include <stdint.h>

struct lua_State;

/* Must be called once before Lua runs. */
void limits_install(struct lua_State *L);
/* Limits the memory of Lua, in bytes. Compiled code may exceed the limit by half. */
void limits_set_memory(uint64_t bytes);
/* Returns the limit if an allocation failed because of it, 0 if the system had no memory. */
uint64_t limits_refused_memory(void);
/* Names the script's line that compiled code of `size` bytes at `code` was made from, for the
 * message about code that does not return. place: "FILE:LINE", kept by the caller. Beyond 8000
 * pieces of code the line is unknown. */
void limits_add_code(uintptr_t code, uint32_t size, const char *place);
/* The same for code that is being made. place may be NULL: unknown. */
void limits_latest_code(const char *place);
/* LuaJIT does not print any more that a listener of its compiler failed, which a script that fills
 * the stack causes. */
void limits_hush(void);
/* Forgets all compiled code. */
void limits_forget_code(void);
/* Returns whether little of the C stack is left: Lua functions that call each other through C each
 * take some of it. */
bool limits_stack_is_short(void);
/* Raises the limit, so that a script that has reached it can print its results. */
void limits_allow_more_memory(void);
