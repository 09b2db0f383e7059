/* SPDX-License-Identifier: GPL-2.0-only */
#include "os/hotplug.h"
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include <linux/netlink.h>
#include "os/cpus.h"

enum { KERNEL_EVENTS = 1 }; /* multicast group */

int hotplug_open(void)
{
	struct sockaddr_nl addr = {.nl_family = AF_NETLINK, .nl_groups = KERNEL_EVENTS};
	int fd = socket(AF_NETLINK, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK,
			NETLINK_KOBJECT_UEVENT);

	if (fd >= 0 && bind(fd, (struct sockaddr *)&addr, sizeof(addr))) {
		close(fd);
		fd = -1;
	}
	return fd >= 0 ? fd : -errno;
}

int hotplug_cpu(const char *message, size_t size)
{
	char text[64];
	int cpu, end = 0;

	if (!size || size > 4096)
		return -1;
	snprintf(text, sizeof(text), "%.*s", (int)size, message);
	if (sscanf(text, "online@/devices/system/cpu/cpu%d%n", &cpu, &end) < 1)
		sscanf(text, "offline@/devices/system/cpu/cpu%d%n", &cpu, &end);
	return end && !text[end] && cpu >= 0 && cpu < CPUS_MAX ? cpu : -1;
}

bool hotplug_changed(int fd, struct cpus *changed)
{
	bool any = false;
	char message[4096];

	for (;;) {
		ssize_t n = recv(fd, message, sizeof(message), 0);
		int cpu;

		if (n < 0 && errno == ENOBUFS) {
			any = true;
			continue;
		}
		if (n <= 0)
			return any;
		cpu = hotplug_cpu(message, n);
		if (cpu < 0)
			continue;
		cpus_add(changed, cpu);
		any = true;
	}
}
