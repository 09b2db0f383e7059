#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only
# docs/api.md is up to date, no function that scripts reach lacks an annotation, and links to it are valid.
. "$(dirname "$0")/../../lib.sh"
cd "$TOP" || exit 1
expect_text 'docs/api.md: run make api' docs/api.md "$PROFSCRIPT" --lua docs/api.lua

# GitHub's anchor of a heading: lower case, without punctuation, with - for blanks, and -N for the Nth repetition.
sed -n '/^```/,/^```$/d; s/^##* //p' docs/api.md | tr '[:upper:]' '[:lower:]' | tr -cd 'a-z0-9_ \n-' | tr ' ' - |
	awk '{ print n[$0]++ ? $0 "-" n[$0] - 1 : $0 }' | sort -u >"$TMP/anchors"
grep -oh 'api\.md#[a-z0-9_-]*' README.md docs/*.md | cut -d'#' -f2 >"$TMP/links"
grep -oh '](#[a-z0-9_-]*' docs/api.md | cut -d'#' -f2 >>"$TMP/links"
sort -u "$TMP/links" | comm -23 - "$TMP/anchors" >"$TMP/dead"
[ -s "$TMP/links" ] && [ ! -s "$TMP/dead" ]
result $? 'links to docs/api.md and within it lead somewhere' "$TMP/dead"
