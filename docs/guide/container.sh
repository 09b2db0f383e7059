#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
# Usage: container.sh NAME   What makes a container one, for docs/containers.md: a program in a control group NAME, in a
# mount and a pid namespace of its own. Only there, /opt/app exists.
set -eu
root=$(sed -n 's/^[^ ]* \([^ ]*\) cgroup2 .*/\1/p' /proc/self/mounts | head -n 1)
mkdir -p "$root/$1"
echo $$ >"$root/$1/cgroup.procs"
exec unshare --mount --pid --fork --mount-proc --kill-child sh -c '
	mount -t tmpfs none /opt
	cp /usr/bin/python3 /opt/app
	exec /opt/app -c "import time
while True:
    open(\"/etc/hostname\").read()
    [i * i for i in range(20000)]
    time.sleep(0.01)"'
