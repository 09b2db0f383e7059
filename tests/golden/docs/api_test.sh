#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only
# docs/api.md is up to date, and no function that scripts reach lacks an annotation.
. "$(dirname "$0")/../../lib.sh"
cd "$TOP" || exit 1
expect_text 'docs/api.md: run make api' docs/api.md "$PROFSCRIPT" --lua docs/api.lua
