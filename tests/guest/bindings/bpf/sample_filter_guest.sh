#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only
# The test of the same name on another kernel, whose structures differ from those of the host's.
exec bash "$(dirname "$0")/../live/bpf_filter_test.sh"
