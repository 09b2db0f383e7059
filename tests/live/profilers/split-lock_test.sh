#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only
# split-lock reports what it lacks.
# Runs alone.
. "$(dirname "$0")/../../lib.sh"

if [ -d /sys/bus/event_source/devices/cpu ]; then
	skip 'without its event' 'this machine has a hardware PMU'
else
	refused 'without its event' 3 "(split-lock: no event is known for this processor|'r[0-9a-f]+' needs a hardware PMU)" split-lock
	refused '-T' 3 "(split-lock: no event is known for this processor|'r[0-9a-f]+' needs a hardware PMU)" \
		split-lock --trigger 100 --perins -g
fi
refused '-g' 2 '.*-g needs samples' split-lock -g
refused '-T 0' 2 '.*-g needs samples' split-lock --trigger 0 -g
