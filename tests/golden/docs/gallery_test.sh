#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only
# The table of docs/gallery.md has the lines of the examples, without blank lines and comments. Each tool has its output.
. "$(dirname "$0")/../../lib.sh"

sed -nE 's/^\| \[([a-z]+)\]\(#[a-z]+\) \| ([0-9]+) \|.*/\1 \2/p' "$TOP/docs/gallery.md" | sort >"$TMP/table"
cut -d' ' -f1 "$TMP/table" | while read -r name; do
	echo "$name $(grep -cvE '^\s*(--.*)?$' "$TOP/examples/$name.lua")"
done >"$TMP/examples"
check 'the table has all tools' test "$(wc -l <"$TMP/table")" -ge 21
check 'and their lines' diff "$TMP/examples" "$TMP/table"

sed -nE 's/^\| \[([a-z]+)\]\(#[a-z]+\) \|.*/\1/p' "$TOP/docs/gallery.md" | sort >"$TMP/tools"
check 'there are 40 tools' test "$(wc -l <"$TMP/tools")" -ge 40
while read -r name; do
	sed -n "/^## $name\$/,/^## /p" "$TOP/docs/gallery.md" | grep -A 1 '^```$' | grep -q '^[^`-]' || echo "$name"
done <"$TMP/tools" >"$TMP/without"
check 'all have real output' diff /dev/null "$TMP/without"
