/* SPDX-License-Identifier: GPL-2.0-only */
#include "os/workload.h"
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>
#include "error.h"

struct workload {
	pid_t pid;
	int go;	    /* written to make the child execute the command */
	int failed; /* read to get the errno of execvp(), or end of file if it succeeded */
	bool ended;
	int status;
	struct rusage usage;
	char name[256];
};

static void __attribute__((noreturn)) run_child(char *const argv[], int go, int failed)
{
	char c;
	int code;

	prctl(PR_SET_PDEATHSIG, SIGTERM);
	prctl(PR_SET_NAME, "profscript-exec");
	if (read(go, &c, 1) == 1) {
		signal(SIGPIPE, SIG_DFL);
		execvp(argv[0], argv);
		code = errno;
		while (write(failed, &code, sizeof(code)) < 0 && errno == EINTR)
			;
	}
	_exit(127);
}

struct workload *workload_new(char *const argv[], struct error *err)
{
	struct workload *w = calloc(1, sizeof(*w));
	int go[2] = {-1, -1}, failed[2] = {-1, -1}, code;

	if (!w || pipe2(go, O_CLOEXEC) || pipe2(failed, O_CLOEXEC))
		goto fail;
	w->pid = fork();
	if (w->pid < 0)
		goto fail;
	if (!w->pid) {
		close(go[1]);
		close(failed[0]);
		run_child(argv, go[0], failed[1]);
	}
	close(go[0]);
	close(failed[1]);
	w->go = go[1];
	w->failed = failed[0];
	strncpy(w->name, argv[0], sizeof(w->name) - 1);
	return w;
fail:
	code = errno;
	for (int i = 0; i < 2; i++) {
		if (go[i] >= 0)
			close(go[i]);
		if (failed[i] >= 0)
			close(failed[i]);
	}
	free(w);
	error_set(err, -code, "cannot start '%s': %s", argv[0], strerror(code));
	return NULL;
}

pid_t workload_pid(const struct workload *w)
{
	return w->pid;
}

int workload_start(struct workload *w, struct error *err)
{
	int code = 0;
	ssize_t n;

	if (write(w->go, "", 1) != 1)
		return error_set(err, -errno, "cannot start '%s': %s", w->name, strerror(errno));
	do
		n = read(w->failed, &code, sizeof(code));
	while (n < 0 && errno == EINTR);
	if (n > 0)
		return error_set(err, -code, "cannot execute '%s': %s", w->name, strerror(code));
	return 0;
}

bool workload_ended(struct workload *w, int *status)
{
	if (!w->ended && wait4(w->pid, &w->status, WNOHANG, &w->usage) == w->pid)
		w->ended = true;
	*status = w->status;
	return w->ended;
}

static uint64_t ns_of(struct timeval time)
{
	return time.tv_sec * UINT64_C(1000000000) + time.tv_usec * UINT64_C(1000);
}

uint64_t workload_ns(const struct workload *w)
{
	return ns_of(w->usage.ru_utime) + ns_of(w->usage.ru_stime);
}

void workload_free(struct workload *w)
{
	if (!w)
		return;
	close(w->go);
	close(w->failed);
	free(w);
}
