/* SPDX-License-Identifier: GPL-2.0-only */
#include "clocks/kvm_ptp.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>
#include "clocks/clock_pair.h"
#include "clocks/wall_offset.h"
#include "error.h"

struct kvm_ptp {
	int fd;
	struct wall_offset wall; /* of this guest */
};

/* Reads the first line of a file; "" if there is none. */
static void read_line(const char *path, char *line, int size)
{
	FILE *f = fopen(path, "re");

	if (!f || !fgets(line, size, f))
		line[0] = 0;
	if (f)
		fclose(f);
	line[strcspn(line, "\n")] = 0;
}

/* Finds the device's name, such as ptp0; "" if there is none. */
static void find_device(const char *root, char *name, size_t size)
{
	char path[512], clock[64];
	struct dirent *entry;
	DIR *dir;

	name[0] = 0;
	snprintf(path, sizeof(path), "%s/sys/class/ptp", root);
	dir = opendir(path);
	while (dir && !name[0] && (entry = readdir(dir))) {
		snprintf(path, sizeof(path), "%s/sys/class/ptp/%s/clock_name", root, entry->d_name);
		read_line(path, clock, sizeof(clock));
		if (!strcmp(clock, "KVM virtual PTP"))
			snprintf(name, size, "%s", entry->d_name);
	}
	if (dir)
		closedir(dir);
}

static bool is_guest(const char *root)
{
	char path[256], sources[128];

	snprintf(path, sizeof(path),
		 "%s/sys/devices/system/clocksource/clocksource0/available_clocksource", root);
	read_line(path, sources, sizeof(sources));
	return strstr(sources, "kvm-clock");
}

struct kvm_ptp *kvm_ptp_open(const char *root, struct error *err)
{
	char name[256], path[512];
	struct kvm_ptp *ptp;
	int fd;

	error_set(err, 0, "%s", "");
	find_device(root, name, sizeof(name));
	if (!name[0]) {
		if (is_guest(root))
			error_set(err, -ENOENT, "KVM's PTP clock is missing: modprobe ptp_kvm");
		return NULL;
	}
	snprintf(path, sizeof(path), "%s/dev/%s", root, name);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	ptp = fd < 0 ? NULL : calloc(1, sizeof(*ptp));
	if (!ptp) {
		error_set(err, -errno, "KVM's PTP clock: %s: %s", path, strerror(errno));
		if (fd >= 0)
			close(fd);
		return NULL;
	}
	ptp->fd = fd;
	return ptp;
}

void kvm_ptp_close(struct kvm_ptp *ptp)
{
	if (!ptp)
		return;
	close(ptp->fd);
	free(ptp);
}

static uint64_t ns_of(const struct ptp_clock_time *t)
{
	return (uint64_t)t->sec * 1000000000 + t->nsec;
}

uint64_t kvm_ptp_tightest(const struct ptp_clock_time *ts, uint32_t samples, uint64_t *real,
			  uint32_t *error)
{
	uint64_t host = 0, best = UINT64_MAX;

	for (uint32_t i = 0; i < samples; i++) {
		uint64_t from = ns_of(ts + 2 * i), to = ns_of(ts + 2 * i + 2);

		if (to - from >= best)
			continue;
		best = to - from;
		*real = from + best / 2;
		host = ns_of(ts + 2 * i + 1);
	}
	*error = (best + 1) / 2 < UINT32_MAX ? (best + 1) / 2 : UINT32_MAX;
	return host;
}

/* Reads the host's wall clock and the guest's. There is no PTP_SYS_OFFSET_EXTENDED of this device.
 */
static bool read_walls(int fd, uint64_t *host, uint64_t *real, uint32_t *error)
{
	struct ptp_sys_offset_precise precise = {};
	struct ptp_sys_offset bracket = {.n_samples = KVM_PTP_SAMPLES};

	if (!ioctl(fd, PTP_SYS_OFFSET_PRECISE, &precise)) {
		*host = ns_of(&precise.device);
		*real = ns_of(&precise.sys_realtime);
		*error = 0;
		return true;
	}
	if (ioctl(fd, PTP_SYS_OFFSET, &bracket))
		return false;
	*host = kvm_ptp_tightest(bracket.ts, KVM_PTP_SAMPLES, real, error);
	return *error < UINT32_MAX;
}

bool kvm_ptp_read(struct kvm_ptp *ptp, struct kvm_ptp_reading *out)
{
	struct clock_pair pair;
	uint64_t real;
	double error;

	clock_pair_read(&pair);
	wall_offset_add(&ptp->wall, &pair);
	if (!read_walls(ptp->fd, &out->host_real, &real, &out->error))
		return false;
	clock_pair_read(&pair);
	wall_offset_add(&ptp->wall, &pair);
	if (!wall_offset_to_mono(&ptp->wall, real, &out->mono, &error))
		return false;
	out->error += (uint32_t)fmin(ceil(error), UINT32_MAX - out->error);
	return true;
}
