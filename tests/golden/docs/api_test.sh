#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only
# docs/api.md matches the annotations in the code, and everything that scripts can reach has one.
. "$(dirname "$0")/../../lib.sh"
cd "$TOP" || exit 1
expect_text 'docs/api.md: run make api' docs/api.md "$PROFSCRIPT" --lua docs/api.lua
