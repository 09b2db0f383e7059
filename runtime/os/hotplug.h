/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * CPUs that come and go, as the kernel announces them by uevents. (Reading the list of those that
 * are online every now and then would miss one that was away in between; its events are gone all
 * the same.)
 */
#pragma once
#include <stdbool.h>
#include <stddef.h>

struct cpus;

/* The descriptor to give to the others and to close; negative errno where there is none. */
int hotplug_open(void);
/* Reads what has been announced, does not wait; adds CPUs that came or went to *changed. Whether
 * there was anything that calls for a look at the CPUs online: such a CPU, or messages lost. */
bool hotplug_changed(int fd, struct cpus *changed);
/* The CPU that a uevent is about ("online@/devices/system/cpu/cpu3"), -1: about none. */
int hotplug_cpu(const char *message, size_t size);
