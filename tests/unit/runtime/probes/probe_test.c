/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Uses a folder instead of tracefs: its files keep what is written to them. Live tests cover the
 * kernel's part.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/unit/runtime/compile.h"
#include "error.h"
#include "probes/probe.h"
#include "process/signals.h"

/* Sets the lists of probes. */
static void set_lists(const char *kernel, const char *user)
{
	unlink(in_folder("uprobe_events"));
	write_file(in_folder("kprobe_events"), kernel, strlen(kernel));
	write_file(in_folder("uprobe_events"), user, strlen(user));
}

static void assert_list(const char *file, const char *expected)
{
	char *text, copy[4096] = "";
	size_t size = read_file(in_folder(file), &text);

	assert_true(size < sizeof(copy));
	memcpy(copy, text, size);
	free(text);
	assert_string_equal(copy, expected);
}

/* Makes the folder of a group of events. */
static void add_group(const char *name)
{
	char path[96];

	mkdir(in_folder("events"), 0755);
	snprintf(path, sizeof(path), "events/%s", name);
	assert_int_equal(mkdir(in_folder(path), 0755), 0);
}

static struct probes *new_probes(void)
{
	struct error err = {0};
	struct probes *p = probes_new(folder, &err);

	assert_string_equal(err.text, "");
	assert_non_null(p);
	return p;
}

/* Of a process that no longer exists. */
static long dead_pid(void)
{
	pid_t pid = fork();

	if (!pid)
		_exit(0);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	return pid;
}

static void test_life(void **state)
{
	struct error err = {0};
	char event[64], expected[1024];
	struct probes *p;
	const char *group;

	(void)state;
	set_lists("", "");
	p = new_probes();
	group = probes_group(p);
	assert_int_equal(strncmp(group, "profscript_", 11), 0);
	assert_int_equal(atol(group + 11), getpid());
	assert_int_equal(probes_add(p, PROBE_USER, 0, "malloc", "/lib/libc.so.6:0x10", "n=%di:u64",
				    event, sizeof(event), &err),
			 0);
	assert_string_equal(event, "malloc_1");
	assert_int_equal(probes_add(p, PROBE_USER, 1, "0x10", "/lib/libc.so.6:0x10(0x20)", "",
				    event, sizeof(event), &err),
			 0);
	assert_string_equal(event, "_x10_2");
	assert_int_equal(probes_add(p, PROBE_KERNEL, 0, "do_it.isra.0+4", "mod:do_it.isra.0+4",
				    "a=%si b=%di", event, sizeof(event), &err),
			 0);
	assert_string_equal(event, "do_it_isra_0_4_3");
	snprintf(expected, sizeof(expected),
		 "p:%s/malloc_1 /lib/libc.so.6:0x10 n=%%di:u64\n"
		 "r:%s/_x10_2 /lib/libc.so.6:0x10(0x20)\n",
		 group, group);
	assert_list("uprobe_events", expected);
	snprintf(expected, sizeof(expected),
		 "p:%s/do_it_isra_0_4_3 mod:do_it.isra.0+4 a=%%si b=%%di\n", group);
	assert_list("kprobe_events", expected);

	set_lists("", "");
	snprintf(expected, sizeof(expected), "-:%s/malloc_1\n-:%s/_x10_2\n", group, group);
	probes_free(p);
	assert_list("uprobe_events", expected);
}

static void test_names_fit(void **state)
{
	char name[512], event[64];
	struct probes *p;

	(void)state;
	set_lists("", "");
	memset(name, 'x', sizeof(name) - 1);
	name[sizeof(name) - 1] = '\0';
	p = new_probes();
	for (int i = 0; i < 12; i++)
		assert_int_equal(probes_add(p, PROBE_USER, 0, name, "/bin/x:0x10", "", event,
					    sizeof(event), NULL),
				 0);
	assert_true(strlen(event) < 64);
	assert_string_equal(event + strlen(event) - 4, "x_12");
	probes_free(p);
}

static void test_stale(void **state)
{
	char user[1024], expected[2048], own[64], group[64];
	long dead = dead_pid();
	struct probes *p;
	struct error err = {0};

	(void)state;
	set_lists("", "");
	p = new_probes();
	snprintf(own, sizeof(own), "%s", probes_group(p));
	/* Ours, an older one with the same pid, one of a dead process, and one that belongs to no
	 * run. */
	snprintf(user, sizeof(user),
		 "p:%s/a_1 /bin/x:0x10\np:profscript_%d_5/b_1 /bin/x:0x10 a=%%di\n"
		 "r:profscript_%ld_77/c_1 /bin/x:0x10\nr10:profscript_%ld_77/d_2 /bin/x:0x10\n"
		 "p:profscript_x/e_1 /bin/x:0x10\np:profscript_%ld/f_1 /bin/x:0x10\n"
		 "p:uprobes/profscript_%ld_77 /bin/x:0x10\n",
		 probes_group(p), (int)getpid(), dead, dead, dead, dead);
	set_lists("", user);
	assert_int_equal(probes_remove_stale(folder, &err), 3);
	snprintf(expected, sizeof(expected),
		 "%s-:profscript_%d_5/b_1\n-:profscript_%ld_77/c_1\n-:profscript_%ld_77/d_2\n",
		 user, (int)getpid(), dead, dead);
	assert_list("uprobe_events", expected);
	assert_list("kprobe_events", "");
	probes_free(p);

	/* A run without probes looks for groups first. */
	snprintf(user, sizeof(user), "p:profscript_%ld_77/c_1 vfs_read\n", dead);
	set_lists(user, "");
	probes_sweep(folder);
	assert_list("kprobe_events", user);
	add_group("profscript_x");
	add_group(own);
	probes_sweep(folder);
	assert_list("kprobe_events", user);
	snprintf(group, sizeof(group), "profscript_%ld_77", dead);
	add_group(group);
	probes_sweep(folder);
	snprintf(expected, sizeof(expected), "%s-:profscript_%ld_77/c_1\n", user, dead);
	assert_list("kprobe_events", expected);

	/* The next run with probes removes them first. */
	snprintf(user, sizeof(user), "p:profscript_%ld_77/c_1 vfs_read\n", dead);
	set_lists(user, "");
	probes_free(new_probes());
	snprintf(expected, sizeof(expected), "%s-:profscript_%ld_77/c_1\n", user, dead);
	assert_list("kprobe_events", expected);
}

static void test_refusals(void **state)
{
	static const char log[] = "[    1.000000] trace_uprobe: error: Some older reason\n"
				  "  Command: p:x/y /bin/x:0x10 a=%di:strange b=%si\n"
				  "           ^\n"
				  "[  243.100000] trace_uprobe: error: Unknown type is specified\n"
				  "  Command: p:x/y /bin/x:0x10 a=%di:strange b=%si\n"
				  "                                   ^\n"
				  "[  244.100000] trace_kprobe: error: Of another command\n"
				  "  Command: p:x/z vfs_read\n"
				  "               ^\n";
	struct error err = {0};
	char event[64];
	struct probes *p;

	(void)state;
	set_lists("", "");
	unlink(in_folder("uprobe_events"));
	assert_int_equal(symlink("/dev/full", in_folder("uprobe_events")), 0);
	write_file(in_folder("error_log"), log, strlen(log));
	assert_int_equal(
		probes_write(folder, PROBE_USER, "p:x/y /bin/x:0x10 a=%di:strange b=%si", &err),
		-ENOSPC);
	assert_string_equal(err.text, "Unknown type is specified: 'strange'");
	assert_int_equal(probes_write(folder, PROBE_USER, "-:x/y", &err), -ENOSPC);
	assert_string_equal(err.text, "the kernel rejects it: No space left on device");

	set_lists("", "");
	p = new_probes();
	assert_int_equal(
		probes_add(p, PROBE_USER, 0, "f", "/my file:0x10", "", event, sizeof(event), &err),
		-EINVAL);
	assert_non_null(strstr(err.text, "blanks in the path"));
	assert_int_equal(
		probes_add(p, PROBE_USER, 0, "f", "/a#b:0x10", "", event, sizeof(event), &err),
		-EINVAL);
	assert_int_equal(probes_add(p, PROBE_USER, 0, "f", "/a:0x10", "a=%di\n-:x/y", event,
				    sizeof(event), &err),
			 -EINVAL);
	probes_free(p);
	assert_list("uprobe_events", "");
}

static void test_no_tracefs(void **state)
{
	struct error err = {0};

	(void)state;
	assert_int_equal(probes_write("/nonexistent", PROBE_USER, "-:x/y", &err), -ENOENT);
	assert_non_null(strstr(err.text, "/nonexistent/uprobe_events"));
	assert_int_equal(probes_remove_stale("/nonexistent", &err), 0);
}

/* Otherwise the probes would stay. */
static void test_signals_are_held(void **state)
{
	struct probes *p;

	(void)state;
	set_lists("", "");
	p = new_probes();
	assert_false(signals_stop_requested());
	raise(SIGTERM);
	assert_true(signals_stop_requested());
	probes_free(p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_life),	   cmocka_unit_test(test_names_fit),
		cmocka_unit_test(test_stale),	   cmocka_unit_test(test_refusals),
		cmocka_unit_test(test_no_tracefs), cmocka_unit_test(test_signals_are_held),
	};

	return cmocka_run_group_tests_name("probe", tests, make_folder, remove_folder);
}
