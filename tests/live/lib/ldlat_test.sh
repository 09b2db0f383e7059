#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only
# ldlat-loads and ldlat-stores report what they lack.
. "$(dirname "$0")/../../lib.sh"

if [ -d /sys/bus/event_source/devices/cpu ]; then
	skip 'without their events' 'this machine has a hardware PMU'
else
	for name in ldlat-loads ldlat-stores; do
		refused "$name" 3 "$name: needs (an Intel processor|a hardware PMU)" $name --trigger 10 --than 30
	done
fi
refused 'a recording' 2 "ldlat-loads: option '--input' does not apply to this profiler" ldlat-loads --input "$DATA/sched.data"
