#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only
# Profilers of hardware counters report that there is no hardware PMU.
. "$(dirname "$0")/../../lib.sh"

[ ! -d /sys/bus/event_source/devices/cpu ] || skip_all 'this machine has a hardware PMU'
for name in hwstat llcstat tlbstat; do
	refused "$name" 3 ".*needs a hardware PMU, and this machine has none" $name
done
