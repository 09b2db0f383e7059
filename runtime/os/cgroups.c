/* SPDX-License-Identifier: GPL-2.0-only */
#include "os/cgroups.h"
#include <errno.h>
#include <fcntl.h>
#include <fts.h>
#include <mntent.h>
#include <regex.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "error.h"
#include "nearest.h"

/* A name that the user gave. */
struct wanted {
	const char *name; /* if it is no expression, without slashes around it */
	size_t length;
	regex_t regex;
	bool is_regex, found;
	struct nearest near; /* unless it is an expression */
};

char *cgroups_root(const char *mounts, struct error *err)
{
	FILE *f = setmntent(mounts, "re");
	char buf[8192], *root = NULL;
	struct mntent m;

	if (!f) {
		error_set(err, -errno, "cannot read %s: %s", mounts, strerror(errno));
		return NULL;
	}
	while (getmntent_r(f, &m, buf, sizeof(buf))) {
		bool v1 = !strcmp(m.mnt_type, "cgroup") && hasmntopt(&m, "perf_event");

		if (!v1 && (root || strcmp(m.mnt_type, "cgroup2")))
			continue;
		free(root);
		root = strdup(m.mnt_dir);
		if (v1)
			break;
	}
	endmntent(f);
	if (!root)
		error_set(err, -ENOENT,
			  "cgroups are not mounted; mount them with: "
			  "mount -t cgroup2 none /sys/fs/cgroup");
	return root;
}

static void free_wanted(struct wanted *wanted, int n)
{
	for (int i = 0; i < n; i++)
		if (wanted[i].is_regex)
			regfree(&wanted[i].regex);
	free(wanted);
}

static int compile(struct wanted *w, bool as_regex, struct error *err)
{
	char text[128];
	int code;

	w->length = strlen(w->name);
	if (!as_regex || !w->length) {
		while (*w->name == '/') {
			w->name++;
			w->length--;
		}
		while (w->length && w->name[w->length - 1] == '/')
			w->length--;
		nearest_start(&w->near, w->name);
		return 0;
	}
	code = regcomp(&w->regex, w->name, REG_EXTENDED | REG_NOSUB);
	if (!code) {
		w->is_regex = true;
		return 0;
	}
	regerror(code, &w->regex, text, sizeof(text));
	return error_set(err, -EINVAL, "invalid cgroup expression '%s': %s", w->name, text);
}

/* Returns the number of names. */
static int compile_all(const char *const *names, struct wanted **wanted, struct error *err)
{
	bool as_regex = false;
	int n = 0, ret;

	for (; names[n]; n++)
		as_regex |= strpbrk(names[n], "{}[]()|*+?^$") != NULL;
	*wanted = calloc(n + 1, sizeof(**wanted));
	if (!*wanted)
		return error_set(err, -ENOMEM, "out of memory");
	for (int i = 0; i < n; i++) {
		(*wanted)[i].name = names[i];
		ret = compile(&(*wanted)[i], as_regex, err);
		if (ret) {
			free_wanted(*wanted, i);
			return ret;
		}
	}
	return n;
}

/* Returns whether the group is asked for. Marks all names that ask for it. */
static bool is_wanted(struct wanted *wanted, int n, const char *name)
{
	size_t length = strlen(name);
	bool any = false;

	for (int i = 0; i < n; i++) {
		struct wanted *w = &wanted[i];

		if (!w->is_regex)
			nearest_try(&w->near, name, length);
		if (w->is_regex ? !length || regexec(&w->regex, name, 0, NULL, 0)
				: length != w->length || memcmp(name, w->name, length))
			continue;
		w->found = any = true;
	}
	return any;
}

/* Writes the wanted directories to `dirs`. */
static int walk(const char *root, struct wanted *wanted, int n, FILE *dirs)
{
	char *const paths[] = {(char *)root, NULL};
	FTS *tree = fts_open(paths, FTS_PHYSICAL | FTS_NOCHDIR | FTS_XDEV, NULL);
	FTSENT *entry;

	if (!tree)
		return -errno;
	while ((entry = fts_read(tree))) {
		const char *name = entry->fts_path + strlen(root);
		bool inside = entry->fts_level > 0 && entry->fts_parent->fts_number;

		if (entry->fts_info != FTS_D)
			continue;
		name += *name == '/';
		entry->fts_number = inside;
		if (is_wanted(wanted, n, name)) {
			if (!inside)
				fprintf(dirs, "%s\n", entry->fts_path);
			entry->fts_number = 1;
		}
	}
	fts_close(tree);
	return 0;
}

static int not_found(struct wanted *w, struct error *err)
{
	if (w->is_regex)
		return error_set(err, -ENOENT, "no cgroup matches '%s'", w->name);
	return error_set(err, -ENOENT, "no cgroup '%s'%s", w->name, nearest_hint(&w->near));
}

char *cgroups_find(const char *root, const char *const *names, struct error *err)
{
	char *dirs = NULL;
	size_t dirs_size;
	struct wanted *wanted;
	FILE *dirs_file;
	int n = compile_all(names, &wanted, err), ret = -ENOMEM;

	if (n < 0)
		return NULL;
	dirs_file = open_memstream(&dirs, &dirs_size);
	if (dirs_file)
		ret = walk(root, wanted, n, dirs_file);
	if (dirs_file && fclose(dirs_file))
		ret = -ENOMEM;
	if (ret)
		error_set(err, ret, "cannot look for cgroups in %s: %s", root, strerror(-ret));
	for (int i = 0; i < n && !ret; i++)
		if (!wanted[i].found)
			ret = not_found(&wanted[i], err);
	if (ret) {
		free(dirs);
		dirs = NULL;
	}
	free_wanted(wanted, n);
	return dirs;
}

int cgroups_asked(const char *const *names, const char *group, struct error *err)
{
	struct wanted *wanted;
	char *name = strdup(group);
	bool is_asked = false;
	int n;

	if (!name)
		return error_set(err, -ENOMEM, "out of memory");
	n = compile_all(names, &wanted, err);
	/* The innermost group first. */
	for (char *end = name + strlen(name); n >= 0 && end && !is_asked;
	     end = strrchr(name, '/')) {
		*end = '\0';
		is_asked = is_wanted(wanted, n, name + (*name == '/'));
	}
	if (n >= 0)
		free_wanted(wanted, n);
	free(name);
	return n < 0 ? n : is_asked;
}

/* Opens the directories, one per line. Returns their number. */
static int open_dirs(char *dirs, int32_t *fds, struct error *err)
{
	char *rest;
	int n = 0;

	for (char *dir = strtok_r(dirs, "\n", &rest); dir; dir = strtok_r(NULL, "\n", &rest)) {
		int fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC), code = -errno;

		if (fd >= 0) {
			fds[n++] = fd;
			continue;
		}
		while (n > 0)
			close(fds[--n]);
		return error_set(err, code, "cannot open cgroup %s: %s", dir, strerror(-code));
	}
	return n;
}

int cgroups_open(const char *const *names, int32_t **fds, struct error *err)
{
	char *root = cgroups_root("/proc/self/mounts", err), *dirs;
	int n = 0, ret;

	dirs = root ? cgroups_find(root, names, err) : NULL;
	free(root);
	if (!dirs)
		return -ENOENT;
	for (const char *c = dirs; *c; c++)
		n += *c == '\n';
	*fds = calloc(n + 1, sizeof(**fds));
	ret = *fds ? open_dirs(dirs, *fds, err) : error_set(err, -ENOMEM, "out of memory");
	free(dirs);
	if (ret < 0)
		free(*fds);
	return ret;
}
