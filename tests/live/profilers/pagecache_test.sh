#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only
# pagecache: a file of known size that a program writes, and another one removes.
. "$(dirname "$0")/../../lib.sh"
needs_tracepoint filemap:mm_filemap_add_to_page_cache filemap:mm_filemap_delete_from_page_cache
[ "$(stat -f -c %T "$TMP")" != tmpfs ] || skip_all "files in $TMP are not in the page cache"
"$PROFSCRIPT" pagecache -m 1024 --top 10000 --csv -- sh -c \
	'dd if=/dev/zero of="$1/new" bs=64k count=16; rm "$1/new"' - "$TMP" >"$TMP/out" 2>"$TMP/err"
rows 'the pages of a new file' 'c["task"] ~ "^dd " && c["added"] == 1048576'
rows 'and of one that is removed' 'c["task"] ~ "^rm " && c["removed"] == 1048576'
