#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only
# The live test of the same name on another kernel, with other structures than the host's.
exec bash "$(dirname "$0")/../../../live/bpf/run/sample_filter_test.sh"
