#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only
# profile: a program with known shares, as lines, folded stacks and pictures.
# Runs alone.
. "$(dirname "$0")/../../lib.sh"
needs_tracepoint sched:sched_switch
burn=$TOP/build/workloads/burn
cd "$TMP" || exit 1

# share FILE REGEX: percent of the folded samples of burn whose stack matches
share() {
	awk -v stack="$2" '/(^|;)burn;/ { all += $NF; if ($0 ~ stack) sum += $NF } END { print int(sum * 100 / all) }' "$1"
}
# between NAME LOW HIGH N: some thousand samples make shares that are exact to two percent
between() {
	echo "$4 is not in $2..$3" >"$TMP/.between"
	[ "$4" -ge "$2" ] && [ "$4" -le "$3" ]
	result $? "$1" "$TMP/.between"
}

echo before >cpu.folded
check 'folded stacks of a command' "$PROFSCRIPT" profile -F 1997 -g --flame-graph cpu -- "$burn" 60
expect_line 'what to do with the file' 'profscript flamegraph cpu.folded cpu.svg' "$TMP/.check"
"$PROFSCRIPT" profile -F 100 --duration 0.1 >out 2>err
check 'no hardware counter: no line, as in perf' test ! -s err
if [ ! -e /sys/bus/event_source/devices/cpu ]; then
	"$PROFSCRIPT" profile -v -F 100 --duration 0.1 >out 2>err
	expect_line 'but with -v' '^profile: cannot count cycles .no hardware PMU.; sampling by cpu-clock$' err
fi
expect_line 'the old file is kept' '^before$' cpu.folded.old
expect_line 'comm, callers first, sum last' '^burn;.*main;warm;hot [0-9]+$' cpu.folded
check 'each line is a folded stack' sh -c '! grep -Ev "^[^ ;]+(;[^ ;]+)* [1-9][0-9]*$" cpu.folded'
between 'hot() takes four fifths' 70 90 "$(share cpu.folded 'hot')"
between 'half of it from warm()' 32 48 "$(share cpu.folded 'warm;hot')"
between 'cold() takes a fifth' 10 30 "$(share cpu.folded 'cold')"

"$PROFSCRIPT" profile -F 997 -g --flame-graph '' -q -- "$burn" 20 >stdout
expect_line 'an empty name is stdout' '^burn;.*;hot [0-9]+$' stdout
mkfifo fifo
cat fifo >from_fifo &
"$PROFSCRIPT" profile -F 997 -g --flame-graph fifo -q -- "$burn" 20
wait $!
expect_line 'a pipe gets the stacks' '^burn;.*;hot [0-9]+$' from_fifo
check 'and no file of its name' test ! -e fifo.folded
"$PROFSCRIPT" profile -F 997 -g --flame-graph split -i 100 -q -- "$burn" 60
expect_line 'intervals have their time' '^[0-9]{4}-[0-9]{2}-[0-9]{2};[0-9]{2}:[0-9]{2}:[0-9]{2};burn;.*hot [0-9]+$' split.folded
"$PROFSCRIPT" profile -F 997 --roots tid --no-kernel-callchain --flame-graph t.folded -q -- "$burn" 20
expect_line 'roots by thread' '^burn/[0-9]+;.*hot [0-9]+$' t.folded
"$PROFSCRIPT" profile -F 997 --annotate --flame-graph k -q -- dd if=/dev/zero of=/dev/null bs=1 count=300000 2>/dev/null
expect_line 'marks of the kernel' '_\[k\] [0-9]+$' k.folded

# A recording: sums and names of known functions match perf's.
perf record -q -g -F 1997 -e cpu-clock:u -o data -- "$burn" 60 2>/dev/null
check 'a recording' "$PROFSCRIPT" profile --input data --flame-graph rec
perf script -i data -F ip,sym 2>/dev/null | awk 'BEGIN { first = 1 }
	NF && first { f[$2]++; first = 0 } !NF { first = 1 }
	END { print f["hot"] + 0, f["cold"] + 0 }' >peer
awk '{ n = split($1, s, ";"); f[s[n]] += $NF } END { print f["hot"] + 0, f["cold"] + 0 }' rec.folded >ours
check 'hot and cold as often as in perf script' cmp peer ours

# Pictures.
check 'a picture' "$PROFSCRIPT" profile --input data --flame-graph rec.svg --title 'a <b> & c'
expect_line 'of all samples' "<title>all \\($(awk '{ n += $NF } END { print n }' rec.folded) samples, 100.00%\\)" rec.svg
expect_line 'and its title' '>a &lt;b&gt; &amp; c</text>' rec.svg
check 'the same from folded stacks' "$PROFSCRIPT" flamegraph rec.folded again.svg --title 'a <b> & c'
sed 's/fill="rgb[^"]*"//' rec.svg >one
sed 's/fill="rgb[^"]*"//; s/\[burn\]/Unknown/' again.svg >two
check 'frames are the same' test "$(grep -c '<g data' one)" = "$(grep -c '<g data' two)"
check 'a page' "$PROFSCRIPT" profile --input data --flame-graph rec.html --inverted --reverse
expect_line 'with a table' '<td>hot</td>' rec.html
sed 's/hot /hotter /' rec.folded >changed.folded
check 'a difference' "$PROFSCRIPT" flamegraph --diff rec.folded changed.folded diff.svg
expect_line 'more is red' 'hotter \([^)]*\)</title>.*fill="rgb\(255,90,90\)"' diff.svg
check 'a difference of a recording' "$PROFSCRIPT" profile --input data --flame-graph same.svg --diff rec.folded
expect_line 'to itself is none' 'hot \([^)]*; \+0.00%\)</title>.*rgb\(236,236,236\)' same.svg

cp data "it's.data"
check 'a difference of two recordings' "$PROFSCRIPT" flamegraph --diff "it's.data" data two.svg
check 'equal recordings do not differ' sh -c 'grep -q "; +0.00%)" two.svg && ! grep "<g data" two.svg | grep -v "; +0.00%)"'
check_status 'an invalid recording' 1 sh -c 'head -c 200 data >cut.data; exec "$0" flamegraph cut.data cut.svg' "$PROFSCRIPT"

# Lines.
"$PROFSCRIPT" profile -F 997 -N 3 -q -- "$burn" 20 >lines
check 'three lines' test "$(wc -l <lines)" = 3
expect_line 'as perf-prof prints them' \
	'^[-0-9]{10} [0-9:.]{15} +burn +[0-9]+ \[[0-9]{3}\] [0-9]+\.[0-9]{6}: profile: [0-9]+ (cpu-cycles|ns)$' lines
"$PROFSCRIPT" profile -F 100 --than 50 -q -- sleep 1.2 >idle
check 'an idle thread is below --than' test ! -s idle
"$PROFSCRIPT" profile -F 100 --than 10 -q -- nice -n -20 "$burn" 300 >busy
expect_line 'a busy one is not' 'burn .*profile: ' busy
echo before >dry.folded
check 'a dry run' "$PROFSCRIPT" profile --flame-graph dry --dry-run -- true
expect_line 'touches no file' '^before$' dry.folded

# Invalid combinations.
check_status '--diff without a graph' 2 "$PROFSCRIPT" profile --diff rec.folded -- true
check_status 'a picture without samples' 0 "$PROFSCRIPT" profile -F 1 --flame-graph none.svg -- true
check 'is not written' test ! -e none.svg
check_status 'a missing folder' 1 "$PROFSCRIPT" profile --flame-graph no/where/x -- true
check_status '--than without a rate' 2 "$PROFSCRIPT" profile --than 10 --period 1000000 -- true
check_status 'a full disk' 1 "$PROFSCRIPT" profile --input data --flame-graph /dev/full
expect_line 'is reported' 'cannot write /dev/full: ' "$TMP/.check"
check_status 'nor for a picture, which is reported at once' 1 timeout 5 "$PROFSCRIPT" profile --flame-graph no/x.svg -- sleep 60
echo 'no count' >bad.folded
check_status 'no folded stacks' 1 "$PROFSCRIPT" flamegraph bad.folded x.svg
expect_line 'the line is named' 'bad.folded:1: ' "$TMP/.check"
check_status 'an unknown kind of picture' 2 "$PROFSCRIPT" flamegraph rec.folded
