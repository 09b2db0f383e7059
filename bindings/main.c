/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The profscript command: starts LuaJIT, sets up the search path and the C declarations, and calls
 * bindings/init.lua, which runs the whole command. Only this file and limits.c use the Lua C API.
 *
 *   profscript ...                 runs bindings/init.lua
 *   profscript --lua FILE [ARG...] runs a Lua file in the same environment, for tests
 */
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <unistd.h>
#include <lauxlib.h>
#include <lua.h>
#include <lualib.h>
#include "limits.h"
#include "process/signals.h"
#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/lsan_interface.h>
#endif

/* All headers for ffi.cdef. */
extern const char ffi_headers[];

/* bindings/ is linked in as bytecode (luaJIT_BC_* symbols), which require() searches first. */
#define START "return require('bindings.init')(...)"

static int traceback(lua_State *L)
{
	/* A table is a Failure (bindings/base/failure.lua): pass it on unchanged. */
	if (lua_type(L, 1) == LUA_TSTRING)
		luaL_traceback(L, L, lua_tostring(L, 1), 1);
	return 1;
}

/* Finds the directory that contains scripts/: that of the executable in a source tree, otherwise
 * the installed one. */
static void find_data_dir(char *dir, size_t size)
{
	char probe[4200];
	ssize_t n = readlink("/proc/self/exe", dir, size - 1);
	char *slash, *path;

	if (n < 0) { /* without proc: the path that was executed */
		path = realpath((const char *)getauxval(AT_EXECFN), NULL);
		n = path ? snprintf(dir, size, "%s", path) : -1;
		free(path);
	}
	if (n > 0 && (size_t)n < size) {
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

/* If stdin, stdout or stderr is closed, occupies its descriptor, so that no other file gets it. The
 * replacement is read-only, so that writes fail instead of being lost silently. */
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
/* Allocates LuaJIT's memory with malloc(), so that the leak checker sees the pointers in it. */
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

	signals_install_requests();
	fill_standard_files();
	L = luaL_newstate();
	if (!L) {
		fputs("profscript: cannot start LuaJIT: out of memory\n", stderr);
		return 1;
	}
	limits_install(L);
	luaL_openlibs(L);
	status = run(L, argc, argv);
	if (status) {
		/* A file run by --lua may fail with any value, even without a message. */
		if (lua_tostring(L, -1))
			fprintf(stderr, "profscript: %s\n", lua_tostring(L, -1));
		status = 1;
	} else {
		status = lua_isnumber(L, -1) ? (int)lua_tointeger(L, -1) : 0;
	}
	/* Help and lists are written through stdio. A reader that has gone is no error. */
	if ((fflush(stdout) || ferror(stdout)) && errno != EPIPE) {
		fprintf(stderr, "profscript: cannot write the output: %s\n", strerror(errno));
		status = status ? status : 1;
	}
	fflush(NULL);
#ifdef __SANITIZE_ADDRESS__
	return status;
#else
	/* Exiting frees memory faster than closing the state. */
	_exit(status);
#endif
}
