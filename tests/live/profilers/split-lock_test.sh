#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only
# split-lock reports what it lacks.
. "$(dirname "$0")/../../lib.sh"

if [ -d /sys/bus/event_source/devices/cpu ]; then
	skip 'without its event' 'this machine has a hardware PMU'
else
	refused 'without its event' 3 "(split-lock: no event is known for this processor|'r[0-9a-f]+' needs a hardware PMU)" split-lock
fi
refused '-g' 2 '.*-g needs samples' split-lock -g
