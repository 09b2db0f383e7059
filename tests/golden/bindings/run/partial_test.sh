#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only
# A recording that is not read to its end, because of a signal: each output says that it is partial.
. "$(dirname "$0")/../../../lib.sh"
cd "$TMP" || exit 1
mkfifo half

# cut NAME ARGUMENT...: a run that is ended by a signal when it has read 9 tenths of a recording
cut() {
	local size writer
	size=$(stat -c %s "$DATA/pipe.data")
	{ head -c $((size * 9 / 10)) "$DATA/pipe.data"; exec sleep 60; } >half &
	writer=$!
	"$PROFSCRIPT" "$@" --input - <half >out 2>err &
	wait_ready $!
	kill -TERM $!
	wait $!
	kill $writer
	wait $writer 2>/dev/null
}

event=$("$PROFSCRIPT" trace --input "$DATA/pipe.data" --json -N 1 | sed -E 's/^\{"event":"([^"]*)".*/\1/')
cut trace -e "$event"
expect_line 'a line says so' '^trace: partial: interrupted before the end of the recording, so all results are of its events up to' err
cut trace -e "$event" --json
expect_line 'JSON' '^\{"event":"partial","reason":"interrupted before the end of the recording","bytes":[0-9]+' out
cut trace -e "$event" --csv
expect_line 'CSV' '^partial,interrupted before the end of the recording,[0-9]+,$' out
cut trace -e "$event" --export x.html
expect_line 'the title of a page' '"title":"trace \(partial: interrupted before the end of the recording\)"' x.html
cut trace -e "$event" --export x.json
expect_line 'the file of Chrome' '^"partial":"interrupted before the end of the recording"\}$' x.json
cut sql -e "$event" --output2 x.db
echo 'interrupted before the end of the recording' >want
expect_text 'a database' want sqlite3 x.db 'SELECT * FROM partial'
"$PROFSCRIPT" trace -e "$event" --input "$DATA/pipe.data" --json >out 2>err
check 'a whole recording is not partial' test "$(cat out err | grep -c partial)" -eq 0
"$PROFSCRIPT" sql -e "$event" --input "$DATA/pipe.data" --output2 y.db >out 2>err
expect_text 'nor is a database of it' /dev/null sqlite3 y.db 'SELECT * FROM partial'
