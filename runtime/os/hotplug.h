/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * CPUs that go online and offline, as the kernel announces it by uevents. (Polling the list of
 * online CPUs would miss a CPU that was offline only in between, and its perf events are gone all
 * the same.)
 */
#pragma once
#include <stdbool.h>
#include <stddef.h>

struct cpus;

/* Returns a descriptor for the other functions, which the caller closes, or a negative errno. */
int hotplug_open(void);
/* Reads pending announcements without waiting and adds the CPUs they name to *changed. Returns
 * whether the CPUs online must be looked at: there was such a CPU, or messages were lost. */
bool hotplug_changed(int fd, struct cpus *changed);
/* Returns the CPU of a uevent ("online@/devices/system/cpu/cpu3"), or -1. */
int hotplug_cpu(const char *message, size_t size);
