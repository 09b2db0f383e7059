#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only
# The site of `make site` builds without a warning, its links lead somewhere, and it loads nothing from elsewhere.
# Only Lua runs here.
. "$(dirname "$0")/../../lib.sh"
command -v mkdocs >/dev/null || skip_all 'no mkdocs'
cd "$TOP" || exit 1
luajit docs/site.lua "$TMP" && mkdocs build -q -s -f "$TMP/site.yml" >"$TMP/out" 2>&1
result $? 'it builds' "$TMP/out"
check 'its links lead somewhere' python3 tests/tools/site.py "$TMP/site"
check 'a search finds functions' grep -q 'session.recorder(settings)' "$TMP/site/search/search_index.json"
