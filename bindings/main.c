/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The profscript command: starts LuaJIT, sets up the search path and the C declarations, and calls
 * bindings/init.lua, which runs the whole command. This is the only user of the Lua C API.
 *
 *   profscript ...                 runs bindings/init.lua
 *   profscript --lua FILE [ARG...] runs a Lua file in the same environment, for tests
 */
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <lauxlib.h>
#include <lua.h>
#include <lualib.h>
#include "os/quit.h"
#include "os/watchdog.h"
#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/lsan_interface.h>
#endif

/* The headers for ffi.cdef, in one text. */
extern const char ffi_headers[];

/* bindings/ is linked in as bytecode (luaJIT_BC_* symbols). require() looks there first. */
#define START "return require('bindings.init')(...)"

static int traceback(lua_State *L)
{
	/* A table is an error prepared for the user by Lua: it is passed on unchanged. */
	if (lua_type(L, 1) == LUA_TSTRING)
		luaL_traceback(L, L, lua_tostring(L, 1), 1);
	return 1;
}

/* Finds the folder that contains scripts/: next to the executable in a source tree, otherwise where
 * it was installed. */
static void find_data_dir(char *dir, size_t size)
{
	char probe[4200];
	ssize_t n = readlink("/proc/self/exe", dir, size - 1);
	char *slash;

	if (n > 0) {
		dir[n] = 0;
		slash = strrchr(dir, '/');
		if (slash)
			*slash = 0;
		snprintf(probe, sizeof(probe), "%s/scripts/lib/table.lua", dir);
		if (!access(probe, R_OK))
			return;
	}
	snprintf(dir, size, "%s", PROFSCRIPT_DATADIR);
}

static void set_package_path(lua_State *L, const char *dir)
{
	/* Never search the current directory: the command usually runs as root. */
	lua_getglobal(L, "package");
	lua_pushfstring(L,
			"%s/?.lua;%s/scripts/?.lua;/usr/local/share/lua/5.1/?.lua;"
			"/usr/local/share/lua/5.1/?/init.lua;/usr/share/lua/5.1/?.lua;"
			"/usr/share/lua/5.1/?/init.lua;/usr/share/luajit-2.1.0-beta3/?.lua",
			dir, dir);
	lua_setfield(L, -2, "path");
	lua_pop(L, 1);
}

/* Sets arg as lua(1) does, and arg.data_dir. */
static void set_arg(lua_State *L, const char *file, const char *dir, char **args, int n)
{
	lua_createtable(L, n, 2);
	lua_pushstring(L, file);
	lua_rawseti(L, -2, 0);
	for (int i = 0; i < n; i++) {
		lua_pushstring(L, args[i]);
		lua_rawseti(L, -2, i + 1);
	}
	lua_pushstring(L, dir);
	lua_setfield(L, -2, "data_dir");
	lua_setglobal(L, "arg");
}

/* Leaves the file's result, or the error, on top of the stack. */
static int run(lua_State *L, int argc, char **argv)
{
	const char *file = NULL;
	char dir[4096];
	int first = 1, n;

	find_data_dir(dir, sizeof(dir));
	if (argc > 2 && !strcmp(argv[1], "--lua")) {
		file = argv[2];
		first = 3;
	}
	n = argc - first;
	set_package_path(L, dir);
	set_arg(L, file ? file : "profscript", dir, argv + first, n);

	lua_pushcfunction(L, traceback);
	if (luaL_loadstring(L, "require('ffi').cdef((...))"))
		return -1;
	lua_pushstring(L, ffi_headers);
	if (lua_pcall(L, 1, 0, 1))
		return -1;
	if (file ? luaL_loadfile(L, file) : luaL_loadstring(L, START))
		return -1;
	for (int i = 0; i < n; i++)
		lua_pushstring(L, argv[first + i]);
	return lua_pcall(L, n, 1, 1);
}

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

/* Bytes that may be used once a script had too much: its results are to be printed. */
static void allow_more_memory(void)
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
	allow_more_memory();
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

/* Called by bindings/run/memory.lua. */
void profscript_limit_memory(uint64_t bytes);
void profscript_limit_memory(uint64_t bytes)
{
	memory.limit = bytes;
	memory.end = bytes + bytes / 2;
}

/* The same after an error that compiled code met at the end of memory. */
void profscript_allow_more_memory(void);
void profscript_allow_more_memory(void)
{
	allow_more_memory();
}

static void count_memory(lua_State *L)
{
	memory.allocate = lua_getallocf(L, &memory.data);
	memory.used = (size_t)lua_gc(L, LUA_GCCOUNT, 0) << 10;
	lua_setallocf(L, allocate_limited, NULL);
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

static void watch(lua_State *L)
{
	struct watchdog_ops ops = {interrupt, give_up, (const void *)lua_sethook};

	main_state = L;
	watchdog_init(&ops);
}

/* If stdin, stdout or stderr is closed, no other file may get its descriptor. The replacement is
 * read-only, so that output to it fails instead of getting lost silently. */
static void fill_standard_files(void)
{
	int fd;

	do
		fd = open("/dev/null", O_RDONLY);
	while (fd >= 0 && fd <= STDERR_FILENO);
	if (fd >= 0)
		close(fd);
}

#ifdef __SANITIZE_ADDRESS__
/* LuaJIT's memory comes from malloc() here, so that the leak checker sees the pointers in it. */
static void *allocate(void *data, void *memory, size_t old_size, size_t size)
{
	(void)data, (void)old_size;
	if (!size) {
		free(memory);
		return NULL;
	}
	memory = realloc(memory, size);
	__lsan_ignore_object(memory);
	return memory;
}

/* libtraceevent leaks a copy of a word if it cannot parse a format. */
const char *__lsan_default_suppressions(void)
{
	return "leak:libtraceevent.so";
}

#define luaL_newstate() lua_newstate(allocate, NULL)
#endif

int main(int argc, char **argv)
{
	lua_State *L;
	int status;

	fill_standard_files();
	L = luaL_newstate();
	if (!L) {
		fputs("profscript: cannot start LuaJIT: out of memory\n", stderr);
		return 1;
	}
	watch(L);
	count_memory(L);
	luaL_openlibs(L);
	status = run(L, argc, argv);
	if (status) {
		/* A file run by --lua may fail with any value, also without a message. */
		if (lua_tostring(L, -1))
			fprintf(stderr, "profscript: %s\n", lua_tostring(L, -1));
		status = 1;
	} else {
		status = lua_isnumber(L, -1) ? (int)lua_tointeger(L, -1) : 0;
	}
	fflush(NULL);
#ifdef __SANITIZE_ADDRESS__
	return status;
#else
	/* The end of the process frees memory faster than closing the state. */
	_exit(status);
#endif
}
