#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only
# Captured events on a distribution's kernel, whose flags and types differ from those of the host's kernel.
exec bash "$(dirname "$0")/../../../live/bpf/ways/capture_test.sh"
