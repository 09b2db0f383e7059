#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only
# The examples in the head comments of these libraries run as the body of a start(). The recording is short, so a
# window of 1 s is one of 100 us.
. "$(dirname "$0")/../../lib.sh"
cd "$TMP" || exit 1

# example NAME REGEX: the example of lib.NAME prints a line that matches
example() {
	{
		printf '%s\n' "return { summary = 'an example', start = function(opt, out, session) local _ = opt, session"
		awk '/^---   / { sub(/'1s'/, "'100us'"); print substr($0, 5); found = 1; next } found { exit }' "$TOP/scripts/lib/$1.lua"
		echo 'end }'
	} >"$1.lua"
	check "lib.$1: there is an example" test "$(wc -l <"$1.lua")" -gt 4
	"$PROFSCRIPT" "./$1.lua" --input "$DATA/syscalls.data" >out 2>err
	check "lib.$1: it runs" test $? -eq 0 -a ! -s err
	expect_line "lib.$1: it prints" "$2" out
}

example map $'^0\t[0-9]+$'
example join $'^257\ttrue\t3$'
example names $'^access\tENOENT$'
example window $'^8\t[0-9.]+$'
