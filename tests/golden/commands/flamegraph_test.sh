#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only
# flamegraph: recordings and folded stacks from files and from stdin, and what it writes.
. "$(dirname "$0")/../../lib.sh"
cd "$TMP" || exit 1
draw() { "$PROFSCRIPT" flamegraph -q --title x "$@" >out 2>err; }

draw "$DATA/mixed.data" file.svg
result $? 'a recording' err
expect_line 'its stacks' '<title>.* \([0-9]+ samples' file.svg
draw - redirected.svg <"$DATA/mixed.data"
check 'a recording as stdin' cmp file.svg redirected.svg
"$PROFSCRIPT" profile -q --input "$DATA/mixed.data" --push stream.data >out 2>err
draw stream.data stream.svg
result $? 'a stream of events' err
cat stream.data | draw - piped.svg
check 'a stream through a pipe' cmp stream.svg piped.svg
cat "$DATA/mixed.data" | draw - x.svg
expect_line 'a perf.data file through a pipe' 'cannot read a perf.data file through a pipe: give its name$' err
(echo 'a;b 1' && sleep 0.2 && echo 'a;c 2') | draw - folded.svg
expect_line 'folded stacks through a pipe' '<title>a \(3 samples' folded.svg
draw --diff - "$DATA/mixed.data" diff.svg <"$DATA/mixed.data"
result $? 'stdin is what to compare with' err
refused 'stdin for both' 2 'flamegraph: stdin [(]-[)] cannot be both' flamegraph --diff - - x.svg
"$PROFSCRIPT" profile --input - --flame-graph x.svg --diff - <"$DATA/mixed.data" >out 2>err
check 'stdin for a recording and for stacks' test $? = 2
expect_line 'which is said' '^profscript: .*--diff - and --input - cannot both read from stdin' err
refused 'nothing' 1 '-: no stacks to draw' flamegraph - x.svg
refused 'no samples' 1 '.*/sched.data: no stacks to draw: the recording contains no samples of hardware or clock events' \
	flamegraph "$DATA/sched.data" x.svg
head -c 2000 "$DATA/mixed.data" >cut.data
refused 'a cut recording' 1 'cut.data: no stacks to draw: cut off: contains [0-9]+ of [0-9]+ bytes' flamegraph cut.data x.svg
draw --diff "$DATA/sched.data" "$DATA/mixed.data" x.svg
expect_line 'and what is said about the base' '^profscript: profile: the recording contains no samples' err

# As of exports: a link stays one, and its target is written; a pipe is written directly.
ln -s target.svg link.svg
draw "$DATA/mixed.data" link.svg
check 'a link stays one' test -L link.svg
check 'and its target is written' cmp file.svg target.svg
draw "$DATA/mixed.data" link.svg
check 'also if there is one already' cmp file.svg target.svg
ln -s out.svg other.svg
"$PROFSCRIPT" profile -q --input "$DATA/mixed.data" --title x --flame-graph other.svg >out 2>err
check 'a link, from a profiler' test -L other.svg -a -s out.svg
mkfifo pipe.svg
cat pipe.svg >read.svg &
draw "$DATA/mixed.data" pipe.svg
wait $!
check 'a pipe gets the picture' cmp file.svg read.svg
check 'no temporary file is left' test -z "$(ls -- *.tmp 2>/dev/null)"
