#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only
# Events of single system calls on a distribution's kernel, where tracepoints of system calls may not fault yet.
exec bash "$(dirname "$0")/../../../live/bpf/gen/system_calls_test.sh"
