/* SPDX-License-Identifier: GPL-2.0-only */
#include "limits.h"
#include <signal.h>
#include <stdbool.h>
#include <string.h>
#include <unistd.h>
#include <lauxlib.h>
#include <lua.h>
#include "os/quit.h"
#include "os/watchdog.h"

/* What signal handlers and the allocator need to find. */
static lua_State *main_state;

/* Whether code of a script runs, or what it has called for its own sake: then the place is pushed.
 * The host's code ends by itself. */
static bool push_place(lua_State *L)
{
	lua_Debug ar;
	bool is_script;

	lua_getfield(L, LUA_REGISTRYINDEX, "profscript.scripts");
	for (int level = 0; lua_istable(L, -1) && lua_getstack(L, level, &ar); level++) {
		lua_getinfo(L, "Sl", &ar);
		lua_getfield(L, -1, ar.source);
		is_script = !lua_isnil(L, -1);
		lua_pop(L, 1);
		if (is_script) {
			lua_pushfstring(L, "%s:%d", ar.short_src, ar.currentline);
			return true;
		}
		if (!strncmp(ar.source, "@bindings/", 10))
			break;
	}
	return false;
}

/* At the next instruction after interrupt(). Without a script's code the watchdog tries again. */
static void raise_interrupt(lua_State *L, lua_Debug *ar)
{
	(void)ar;
	watchdog_reached();
	lua_sethook(L, NULL, 0, 0);
	if (!push_place(L))
		return;
	lua_pushliteral(L, ": the script does not return: interrupted");
	lua_concat(L, 2);
	lua_error(L);
}

/* As lua(1) does it: this is all that may be called in a signal handler. */
static void interrupt(void)
{
	lua_sethook(main_state, raise_interrupt, LUA_MASKCALL | LUA_MASKRET | LUA_MASKCOUNT, 1);
}

/* What Lua has allocated. Beyond `limit` the interpreter is asked to raise an error, which has the
 * script's line; compiled code may go on up to `end`, where there is no more. */
static struct {
	lua_Alloc allocate;
	void *data;
	size_t used, limit, end; /* 0: no limit */
	bool asked;
} memory;

void limits_allow_more_memory(void)
{
	memory.limit = memory.end;
	memory.end += memory.end / 4;
	memory.asked = false;
}

static void raise_memory(lua_State *L, lua_Debug *ar)
{
	size_t mib = memory.limit >> 20;

	(void)ar;
	lua_sethook(L, NULL, 0, 0);
	lua_gc(L, LUA_GCCOLLECT, 0);
	if (memory.used < memory.limit - memory.limit / 8 || !push_place(L)) {
		memory.asked = false;
		return;
	}
	limits_allow_more_memory();
	lua_pushfstring(L,
			": out of memory: the script uses %d MiB (PROFSCRIPT_MEMORY allows more)",
			(int)mib);
	lua_concat(L, 2);
	lua_error(L);
}

static void *allocate_limited(void *data, void *block, size_t old_size, size_t size)
{
	size_t more = size > old_size ? size - old_size : 0;

	(void)data;
	if (memory.limit && more && memory.used + more > memory.limit) {
		if (memory.used + more > memory.end)
			return NULL;
		if (!memory.asked) {
			memory.asked = true;
			lua_gc(main_state, LUA_GCSETPAUSE, 100); /* garbage is not to count */
			lua_gc(main_state, LUA_GCSETSTEPMUL, 1000);
			lua_sethook(main_state, raise_memory,
				    LUA_MASKCALL | LUA_MASKRET | LUA_MASKCOUNT, 1);
		}
	}
	block = memory.allocate(memory.data, block, old_size, size);
	if (block || !size)
		memory.used += size - old_size;
	return block;
}

void limits_set_memory(uint64_t bytes)
{
	memory.limit = bytes;
	memory.end = bytes + bytes / 2;
}

static void give_up(int number)
{
	static const char line[] =
		"profscript: the script does not return: ended without its results\n";

	if (write(STDERR_FILENO, line, sizeof(line) - 1) < 0)
		number = 0;
	quit_clean();
	if (!number)
		_exit(1);
	signal(number, SIG_DFL);
	raise(number); /* it is blocked until the handler returns */
}

void limits_install(struct lua_State *L)
{
	struct watchdog_ops ops = {interrupt, give_up, (const void *)lua_sethook};

	main_state = L;
	watchdog_init(&ops);
	memory.allocate = lua_getallocf(L, &memory.data);
	memory.used = (size_t)lua_gc(L, LUA_GCCOUNT, 0) << 10;
	lua_setallocf(L, allocate_limited, NULL);
}
