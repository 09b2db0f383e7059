#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only
# task-state: outputs compared with *.expect files.
. "$(dirname "$0")/../../lib.sh"

expect_output task-state sched task-state --perins
expect_output task-state-than sched task-state --than 100us
