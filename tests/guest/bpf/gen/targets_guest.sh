#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only
# Targets of BPF programs on a distribution's kernel, where a task has two lists of perf events.
EVENTS_ONLY=1 exec bash "$(dirname "$0")/../../../live/bpf/gen/targets_test.sh"
