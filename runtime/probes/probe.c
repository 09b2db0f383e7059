/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The name of a group contains the process id and the start time of the process, because ids are
 * reused.
 */
#include "probes/probe.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "error.h"
#include "process/quit.h"
#include "process/signals.h"

enum { NAME_SIZE = 64, LINE_SIZE = 4096 }; /* both are the kernel's limits, including the NUL */

struct probe {
	enum probe_target target;
	char name[NAME_SIZE];
};

struct probes {
	char *tracefs;
	char group[NAME_SIZE];
	struct probe *list;
	uint32_t count;
};

static const char *const files[] = {
	[PROBE_KERNEL] = "kprobe_events", [PROBE_USER] = "uprobe_events"};
static const char prefix[] = "profscript_";

static const char *find_tracefs(const char *tracefs)
{
	if (tracefs)
		return tracefs;
	return access("/sys/kernel/tracing/events", F_OK) ? "/sys/kernel/debug/tracing"
							  : "/sys/kernel/tracing";
}

/* Returns the start time of a process in clock ticks since boot; 0: it does not exist. */
static unsigned long long start_time(long pid)
{
	char path[64], stat[1024], *at;
	unsigned long long start = 0;
	FILE *file;
	size_t n;

	snprintf(path, sizeof(path), "/proc/%ld/stat", pid);
	file = fopen(path, "re");
	if (!file)
		return 0;
	n = fread(stat, 1, sizeof(stat) - 1, file);
	fclose(file);
	stat[n] = '\0';
	/* The name in parentheses may contain anything; the start time is field 22. */
	at = strrchr(stat, ')');
	for (int field = 2; at && field < 22; field++)
		at = strchr(at + 1, ' ');
	if (at)
		start = strtoull(at, NULL, 10);
	return start;
}

/* Reads the kernel's error log for the command: the reason, and the words it points at. */
static bool read_error_log(const char *tracefs, const char *command, char *out, size_t size)
{
	static const char mark[] = "  Command: ";
	char path[256], *line = NULL, reason[256] = "";
	size_t room = 0, column;
	bool ours = false, found = false;
	FILE *file;

	snprintf(path, sizeof(path), "%s/error_log", tracefs);
	file = fopen(path, "re");
	while (file && getline(&line, &room, file) > 0) {
		const char *text = strstr(line, "error: ");

		line[strcspn(line, "\n")] = '\0';
		if (strncmp(line, mark, strlen(mark)) == 0) {
			ours = strcmp(line + strlen(mark), command) == 0;
		} else if (line[0] == '[' && text) {
			snprintf(reason, sizeof(reason), "%s", text + strlen("error: "));
			ours = false;
		} else if (ours && line[column = strspn(line, " ")] == '^') {
			column -= column < strlen(mark) ? column : strlen(mark);
			if (column > strlen(command))
				column = strlen(command);
			snprintf(out, size, "%s: '%.*s'", reason,
				 (int)strcspn(command + column, " "), command + column);
			found = true;
		}
	}
	if (file)
		fclose(file);
	free(line);
	return found;
}

int probes_write(const char *tracefs, enum probe_target target, const char *line, struct error *err)
{
	char path[256], reason[512], *text;
	ssize_t n = -1;
	int fd, code, len;

	/* The kernel would read on in the next line, and ignore what follows '#'. */
	if (strpbrk(line, "#\n"))
		return error_set(err, -EINVAL,
				 "the kernel does not accept '#' or line breaks in probes");
	/* In a single write(): the kernel parses each one as separate lines. */
	len = asprintf(&text, "%s\n", line);
	if (len < 0)
		return error_set(err, -ENOMEM, "out of memory");
	tracefs = find_tracefs(tracefs);
	snprintf(path, sizeof(path), "%s/%s", tracefs, files[target]);
	/* Without O_APPEND the kernel would clear the list. */
	fd = open(path, O_WRONLY | O_APPEND | O_CLOEXEC);
	if (fd >= 0)
		n = write(fd, text, len);
	code = n < 0 ? errno : 0;
	free(text);
	if (fd >= 0)
		close(fd);
	if (!code)
		return 0;
	if (fd >= 0 && read_error_log(tracefs, line, reason, sizeof(reason)))
		return error_set(err, -code, "%s", reason);
	return error_set(err, -code, "%s: %s", fd < 0 ? path : "the kernel rejects it",
			 strerror(code));
}

/* Returns whether a name starts with the group of a run whose process does not exist any more, and
 * ends or goes on with a slash. */
static bool is_stale(const char *name)
{
	unsigned long long start;
	char *end;
	long pid;

	if (strncmp(name, prefix, strlen(prefix)) != 0)
		return false;
	pid = strtol(name + strlen(prefix), &end, 10);
	if (pid <= 0 || *end != '_')
		return false;
	start = strtoull(end + 1, &end, 10);
	return (*end == '/' || !*end) && start_time(pid) != start;
}

/* Returns "GROUP/EVENT" of a line "p:GROUP/EVENT ..." of a list, NULL if it has none. */
static char *listed_event(char *line)
{
	char *event = strchr(line, ':');

	if (!event)
		return NULL;
	event++;
	event[strcspn(event, " \n")] = '\0';
	return strchr(event, '/') ? event : NULL;
}

/* Removes the probes of one list whose process does not exist any more. */
static int remove_stale(const char *tracefs, enum probe_target target, int *removed,
			struct error *err)
{
	char path[256], *line = NULL, *event;
	char **events = NULL;
	size_t room = 0, count = 0;
	FILE *file;

	snprintf(path, sizeof(path), "%s/%s", tracefs, files[target]);
	file = fopen(path, "re");
	if (!file)
		return errno == ENOENT ? 0
				       : error_set(err, -errno, "%s: %s", path, strerror(errno));
	/* The list is read to its end first, because it changes as probes are removed. */
	while (getline(&line, &room, file) > 0) {
		char **grown;

		event = listed_event(line);
		if (!event || !is_stale(event))
			continue;
		grown = realloc(events, (count + 1) * sizeof(*grown));
		if (!grown)
			break;
		events = grown;
		if (asprintf(&events[count], "-:%s", event) < 0)
			break;
		count++;
	}
	fclose(file);
	free(line);
	for (size_t i = 0; i < count; i++) {
		/* Another run may do the same, or the process is alive in another namespace: then
		 * the kernel keeps the probe. */
		*removed += probes_write(tracefs, target, events[i], NULL) == 0;
		free(events[i]);
	}
	free(events);
	return 0;
}

int probes_remove_stale(const char *tracefs, struct error *err)
{
	int removed = 0, ret;

	tracefs = find_tracefs(tracefs);
	ret = remove_stale(tracefs, PROBE_KERNEL, &removed, err);
	if (!ret)
		ret = remove_stale(tracefs, PROBE_USER, &removed, err);
	return ret ? ret : removed;
}

void probes_sweep(const char *tracefs)
{
	char path[256];
	struct dirent *entry;
	bool found = false;
	DIR *dir;

	tracefs = find_tracefs(tracefs);
	snprintf(path, sizeof(path), "%s/events", tracefs);
	dir = opendir(path);
	while (dir && !found && (entry = readdir(dir)))
		found = is_stale(entry->d_name);
	if (dir)
		closedir(dir);
	if (found)
		probes_remove_stale(tracefs, NULL);
}

/* Concatenates the texts. Returns false if there is no room. */
static bool join(char *out, size_t size, const char *const *texts)
{
	size_t at = 0, n;

	for (; *texts; texts++) {
		n = strlen(*texts);
		if (at + n >= size)
			return false;
		memcpy(out + at, *texts, n);
		at += n;
	}
	out[at] = 0;
	return true;
}

/* The same as probes_free() where the process is about to end in a signal handler. */
static void remove_at_once(void *arg)
{
	const struct probes *p = arg;
	char path[256], line[2 * NAME_SIZE + 8];

	for (uint32_t i = 0; i < p->count; i++) {
		const struct probe *probe = &p->list[i];
		const char *const file[] = {p->tracefs, "/", files[probe->target], NULL};
		const char *const text[] = {"-:", p->group, "/", probe->name, "\n", NULL};
		int fd = join(path, sizeof(path), file) && join(line, sizeof(line), text)
				 ? open(path, O_WRONLY | O_APPEND | O_CLOEXEC)
				 : -1;

		if (fd < 0)
			continue;
		if (write(fd, line, strlen(line)) < 0)
			line[0] = 0; /* another run finds it, and that this process is gone */
		close(fd);
	}
}

struct probes *probes_new(const char *tracefs, struct error *err)
{
	struct probes *p = calloc(1, sizeof(*p));

	if (p)
		p->tracefs = strdup(find_tracefs(tracefs));
	if (!p || !p->tracefs) {
		free(p);
		error_set(err, -ENOMEM, "out of memory");
		return NULL;
	}
	if (probes_remove_stale(p->tracefs, err) < 0) {
		probes_free(p);
		return NULL;
	}
	snprintf(p->group, sizeof(p->group), "%s%ld_%llu", prefix, (long)getpid(),
		 start_time(getpid()));
	signals_install();
	quit_set_cleanup(remove_at_once, p);
	return p;
}

void probes_free(struct probes *p)
{
	char line[2 * NAME_SIZE + 8];

	if (!p)
		return;
	quit_set_cleanup(NULL, NULL);
	for (uint32_t i = 0; i < p->count; i++) {
		snprintf(line, sizeof(line), "-:%s/%s", p->group, p->list[i].name);
		probes_write(p->tracefs, p->list[i].target, line, NULL);
	}
	free(p->list);
	free(p->tracefs);
	free(p);
}

const char *probes_group(const struct probes *p)
{
	return p->group;
}

/* Makes the name of the event from the characters of name that the kernel allows, and a unique
 * number. */
static void make_name(const struct probes *p, const char *name, char *event)
{
	size_t len = 0;

	for (; name[len] && len < NAME_SIZE - 16; len++) {
		bool letter = isalpha((unsigned char)name[len]) ||
			      (len && isdigit((unsigned char)name[len]));

		event[len] = letter ? name[len] : '_';
	}
	snprintf(event + len, NAME_SIZE - len, "_%u", p->count + 1);
}

int probes_add(struct probes *p, enum probe_target target, int32_t is_return, const char *name,
	       const char *place, const char *args, char *event, size_t size, struct error *err)
{
	struct probe probe = {.target = target};
	struct probe *grown = realloc(p->list, (p->count + 1) * sizeof(*grown));
	char line[LINE_SIZE];
	int len, ret;

	if (!grown)
		return error_set(err, -ENOMEM, "out of memory");
	p->list = grown;
	if (strpbrk(place, " \t"))
		return error_set(err, -EINVAL,
				 "the kernel does not accept blanks in the path of a probe with "
				 "arguments");
	make_name(p, name, probe.name);
	len = snprintf(line, sizeof(line), "%c:%s/%s %s%s%s", is_return ? 'r' : 'p', p->group,
		       probe.name, place, *args ? " " : "", args);
	if (len >= (int)sizeof(line))
		return error_set(err, -E2BIG, "the arguments are too long");
	ret = probes_write(p->tracefs, target, line, err);
	if (ret)
		return ret;
	grown[p->count++] = probe;
	snprintf(event, size, "%s", probe.name);
	return 0;
}
