#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only
# Output that cannot be written is reported in one line.
. "$(dirname "$0")/../../../lib.sh"
sched=$DATA/sched.data

refused '-o in a missing folder' 1 "cannot open '/no/dir/file': No such file" trace --input "$sched" -o /no/dir/file
refused '-o onto a directory' 1 "cannot open '/': Is a directory" trace --input "$sched" -o /
refused '-o on a full device' 1 "cannot write '/dev/full': No space left" trace --input "$sched" -o /dev/full
