/* SPDX-License-Identifier: GPL-2.0-only */
#include "limits.h"
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>
#include <lauxlib.h>
#include <lua.h>
#include "process/quit.h"
#include "process/watchdog.h"

/* For signal handlers and the allocator. */
static lua_State *main_state;

/* Wrappers of Lua's own functions, such as string.gsub. */
static const char wrappers[] = "@bindings/options/environment.lua";

/* If a script or a library function that it called is running, describes the script's line and
 * returns true. Code of the host is not interrupted: then it always returns false. */
static bool find_place(lua_State *L, lua_Debug *ar)
{
	int top = lua_gettop(
		L); /* at which it stays: a call that is hooked would get more arguments */
	bool is_script = false;

	lua_getfield(L, LUA_REGISTRYINDEX, "profscript.scripts");
	for (int level = 0; lua_istable(L, -1) && lua_getstack(L, level, ar); level++) {
		lua_getinfo(L, "Sl", ar);
		lua_getfield(L, -1, ar->source);
		is_script = !lua_isnil(L, -1);
		lua_pop(L, 1);
		if (is_script ||
		    (strcmp(ar->source, wrappers) &&
		     (!strncmp(ar->source, "@bindings/", 10) || !strncmp(ar->source, "@bpf/", 5))))
			break;
	}
	lua_settop(L, top);
	return is_script;
}

/* Pushes "FILE:LINE" of the script that runs. */
static bool push_place(lua_State *L)
{
	lua_Debug ar;

	if (!find_place(L, &ar))
		return false;
	lua_pushfstring(L, "%s:%d", ar.short_src, ar.currentline);
	return true;
}

/* Runs at the next instruction after interrupt(). If no script is running, the watchdog tries
 * again. */
static void raise_interrupt(lua_State *L, lua_Debug *ar)
{
	(void)ar;
	watchdog_reached();
	lua_sethook(L, NULL, 0, 0);
	if (!push_place(L))
		return;
	lua_pushliteral(L, ": the script does not return; interrupted");
	lua_concat(L, 2);
	lua_error(L);
}

/* As in lua(1): no other Lua function may be called in a signal handler. */
static void interrupt(void)
{
	lua_sethook(main_state, raise_interrupt, LUA_MASKCALL | LUA_MASKRET | LUA_MASKCOUNT, 1);
}

/* Memory of Lua. Above `limit`, a hook makes the interpreter raise an error with the script's line.
 * Compiled code does not run hooks: it continues until allocation fails at `end`. */
static struct {
	lua_Alloc allocate;
	void *data;
	size_t used, limit, end; /* 0: no limit */
	bool asked, refused;
} memory;

void limits_allow_more_memory(void)
{
	memory.limit = memory.end;
	memory.end += memory.end / 4;
	memory.asked = memory.refused = false;
}

uint64_t limits_refused_memory(void)
{
	return memory.refused ? memory.limit : 0;
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
	lua_pushfstring(
		L, ": out of memory: the script uses %d MiB (set PROFSCRIPT_MEMORY to allow more)",
		(int)mib);
	lua_concat(L, 2);
	lua_error(L);
}

static void *allocate_limited(void *data, void *block, size_t old_size, size_t size)
{
	size_t more = size > old_size ? size - old_size : 0;

	(void)data;
	if (memory.limit && more && memory.used + more > memory.limit) {
		if (memory.used + more > memory.end) {
			memory.refused = true;
			return NULL;
		}
		if (!memory.asked) {
			memory.asked = true;
			lua_gc(main_state, LUA_GCSETPAUSE, 100); /* do not count garbage */
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

/* Below it the stack is short. */
static uintptr_t stack_end;

enum { MAX_STACK = 64 << 20 }; /* where there is no limit: other memory is mapped far below */

bool limits_stack_is_short(void)
{
	return (uintptr_t)__builtin_frame_address(0) < stack_end;
}

/* Half is for such calls. The rest is for what the last of them calls. */
static void measure_stack(void)
{
	uintptr_t here = (uintptr_t)__builtin_frame_address(0);
	struct rlimit limit;
	uint64_t size = MAX_STACK;

	if (!getrlimit(RLIMIT_STACK, &limit) && limit.rlim_cur < MAX_STACK)
		size = limit.rlim_cur;
	stack_end = here - size / 2;
}

enum { MAX_CODE = 8000 }; /* LuaJIT's maxtrace, see init.lua */

/* Compiled code of scripts. A signal handler reads it, so an entry is complete before it counts. */
static struct {
	uintptr_t from;
	uint32_t size;
	const char *place;
} code[MAX_CODE];
static volatile uint32_t n_code;
static const char *volatile latest_place;

void limits_add_code(uintptr_t from, uint32_t size, const char *place)
{
	if (n_code == MAX_CODE)
		return;
	code[n_code].from = from;
	code[n_code].size = size;
	code[n_code].place = place;
	n_code++;
}

void limits_latest_code(const char *place)
{
	latest_place = place;
}

/* LuaJIT writes the message in pieces, of which the last one is a line feed. */
static ssize_t write_but_hushed(void *data, const char *text, size_t size)
{
	static const char message[] = "VM handler failed: ";
	static bool is_hushed;

	(void)data;
	is_hushed = is_hushed || !strncmp(text, message, sizeof(message) - 1);
	if (!is_hushed)
		return write(STDERR_FILENO, text, size);
	is_hushed = text[size - 1] != '\n';
	return (ssize_t)size;
}

void limits_hush(void)
{
	cookie_io_functions_t functions = {.write = write_but_hushed};
	FILE *file = fopencookie(NULL, "w", functions);

	if (!file)
		return;
	setvbuf(file, NULL, _IONBF, 0);
	stderr = file;
}

void limits_forget_code(void)
{
	n_code = 0;
}

static const char *place_of(uintptr_t pc)
{
	for (uint32_t i = 0; i < n_code; i++)
		if (pc - code[i].from < code[i].size)
			return code[i].place;
	return latest_place;
}

static bool say(const char *text)
{
	return write(STDERR_FILENO, text, strlen(text)) >= 0;
}

/* The signal of which the process dies, after a message; 0: none. */
static volatile sig_atomic_t last_signal;

static void die(const char *place)
{
	bool said = say("profscript: ") && (!place || (say(place) && say(": "))) &&
		    say("the script does not return; terminated without results\n");

	if (!said || !last_signal)
		_exit(1);
	signal(last_signal, SIG_DFL);
	raise(last_signal); /* blocked until the handler returns */
}

static void die_placeless(int number)
{
	(void)number;
	say("profscript: the script does not return; terminated without results\n");
	_exit(last_signal ? 128 + last_signal : 1);
}

/* The line from which the script called the function of Lua that runs, in the interpreter. Nothing
 * says that Lua's stack can be read at this moment. */
static const char *calling_place(void)
{
	static char text[LUA_IDSIZE + 16];
	struct sigaction action = {.sa_handler = die_placeless, .sa_flags = SA_NODEFER};
	lua_Debug ar;

	sigaction(SIGSEGV, &action, NULL);
	sigaction(SIGBUS, &action, NULL);
	if (!lua_getstack(main_state, 0, &ar) || !lua_getinfo(main_state, "S", &ar) ||
	    *ar.what != 'C' || !find_place(main_state, &ar))
		return NULL;
	snprintf(text, sizeof(text), "%s:%d", ar.short_src, ar.currentline);
	return text;
}

static void give_up(int number, uintptr_t pc)
{
	last_signal = number;
	quit_clean();
	die(pc ? place_of(pc) : number ? NULL : calling_place());
}

void limits_install(struct lua_State *L)
{
	struct watchdog_ops ops = {interrupt, give_up, (const void *)lua_sethook};

	main_state = L;
	measure_stack();
	watchdog_init(&ops);
	memory.allocate = lua_getallocf(L, &memory.data);
	memory.used = (size_t)lua_gc(L, LUA_GCCOUNT, 0) << 10;
	lua_setallocf(L, allocate_limited, NULL);
}
