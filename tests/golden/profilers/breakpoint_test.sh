#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only
# Breakpoints in a recording.
. "$(dirname "$0")/../../lib.sh"
cd "$DATA" || exit 1

"$PROFSCRIPT" exec -e mem:0x40401c:w --input watch.data 'count(("%x"):format(ev._addr), ("%x"):format(ev._ip))' >"$TMP/out"
expect_line 'a recorded breakpoint' '^40401c +40113c +10$' "$TMP/out"
"$PROFSCRIPT" trace -e 'breakpoint/0x40401c -N 4/' --input watch.data >"$TMP/out"
expect_line 'as a source' '^4$' <(grep -c ' breakpoint: 0x40401c/1:W ip [^ ]*$' "$TMP/out")
