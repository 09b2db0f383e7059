#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only
# --export: formats by suffix and name, refused files, what becomes of the file.
. "$(dirname "$0")/../../../lib.sh"
cd "$TMP" || exit 1
sched=(--input "$DATA/sched.data")
exports() { "$PROFSCRIPT" trace -q "${sched[@]}" --export "$@" >out 2>err; }
starts() { [ "$(head -c "${#2}" "$1")" = "$2" ]; }

exports a.json
check 'chrome by .json' starts a.json '{"displayTimeUnit"'
exports a.speedscope.json
check 'speedscope by .speedscope.json' starts a.speedscope.json '{"$schema"'
exports a.profile.json
check 'firefox by .profile.json' starts a.profile.json '{"meta"'
exports firefox:b.json
check 'firefox by name' starts b.json '{"meta"'
exports a.perfetto-trace
exports perfetto:a:b.x
check 'a name with a colon' cmp a.perfetto-trace a:b.x
exports a.json.gz
check 'compressed' cmp a.json <(gzip -dc a.json.gz)
exports pprof:a.x
check 'pprof is always compressed' gzip -t a.x
"$PROFSCRIPT" export -q "$DATA/sched.data" -o whole.pftrace
"$PROFSCRIPT" export -q "$DATA/sched.data" -o perfetto:- | cat >piped
check 'a pipe is written directly' cmp whole.pftrace piped
ln -s linked.pftrace link.pftrace
exports link.pftrace
check 'a link stays one' test -L link.pftrace
check 'and its target is written' cmp a.perfetto-trace linked.pftrace
check 'no temporary file is left' test -z "$(ls -- *.tmp 2>/dev/null)"
(umask 077 && exports secret.json)
check 'the umask holds' test "$(stat -c %a secret.json)" = 600
ln -s /nonexistent/target link.json.tmp
exports link.json
check 'it does not follow a link that somebody has left' test -f link.json -a ! -e /nonexistent

echo before >kept.json
refused 'an unknown event' 2 "trace: the recording contains no event 'sched:nothing'" \
	trace "${sched[@]}" -e sched:nothing --export kept.json
check 'after a failure the old file is there' test "$(<kept.json)" = before
exports kept.json --dry-run
check '--dry-run writes nothing' test "$(<kept.json)" = before
refused 'an unknown suffix' 2 "trace: the format of 'a.xyz' is unknown" trace "${sched[@]}" --export a.xyz
refused 'a suffix with a mistake' 2 "trace: the format of 'a.pftrac' is unknown: .*; did you mean '.pftrace'" trace "${sched[@]}" --export a.pftrac
refused 'an unknown format' 2 "trace: unknown export format 'perfeto' .*; did you mean 'perfetto'" trace "${sched[@]}" --export perfeto:a
refused 'no such folder' 1 "cannot write 'no/a.json': No such file" export "$DATA/sched.data" -o no/a.json
refused 'a folder' 1 "cannot write '/tmp': Is a directory" export "$DATA/sched.data" -o chrome:/tmp
refused 'export without a file' 2 "export: option '-o FILE' is required" export "$DATA/sched.data"
refused 'export without a recording' 2 'export: missing RECORDING' export -o a.json
refused 'export of a file that is no recording' 1 '/etc/passwd: not a perf recording' export /etc/passwd -o a.json
check '/dev/full' grep -q "cannot write '/dev/full': No space left" \
	<("$PROFSCRIPT" export "$DATA/sched.data" -o perfetto:/dev/full 2>&1)

"$PROFSCRIPT" export "$DATA/mixed.data" -o a.json 2>err
expect_line 'it says what it has exported' '^export: exported 21 events, 43 stacks to a.json \(chrome\)$' err
"$PROFSCRIPT" export "$DATA/sched.data" -o a.pb.gz 2>err
expect_line 'it says if the format has no use for the events' '^export: exported nothing to a.pb.gz \(pprof\): the format holds only stacks' err
"$PROFSCRIPT" export "$DATA/sched.data" -e 'sched:sched_wakeup/target_cpu==1/' -o a.json 2>err
expect_line 'events are selected' "exported $(perf script -i "$DATA/sched.data" -F trace 2>/dev/null | grep -c 'target_cpu=001') events" err
# What a recording lacks, and what that means. Switches that do not follow each other are counted in perf's text.
luajit "$TOP/tests/tools/lose.lua" "$DATA/hogs.data" lost.data 10 3 >lost
broken=$(perf script -i lost.data -F cpu,event,trace 2>/dev/null | sed -n \
	's/^ *\[\([0-9]*\)\].*sched_switch:.* prev_pid=\([0-9]*\) .* next_pid=\([0-9]*\) .*/\1 \2 \3/p' |
	awk '$1 in entered { n += entered[$1] != $2; seen++ } { entered[$1] = $3 } END { print n " of " seen }')
check 'the recording has lost switches' test "${broken%% *}" -gt 0
for format in html json pftrace; do
	"$PROFSCRIPT" export "$DATA/nap.data" -o a.$format 2>err
	check "$format: one event of the scheduler is missing" diff <(grep 'has no' err) - <<-END
		export: the recording has no sched:sched_wakeup_new: the first wait of each new task is not shown
	END
	"$PROFSCRIPT" export "$DATA/hogs.data" -o a.$format 2>err
	check "$format: nothing is missing" test "$(wc -l <err)" -eq 1
	"$PROFSCRIPT" export "$DATA/sched.data" -e sched:sched_wakeup -o a.$format 2>err
	check "$format: what was not selected is not missing" test "$(wc -l <err)" -eq 1
	"$PROFSCRIPT" export lost.data -o a.$format 2>err
	expect_line "$format: switches are missing" \
		"export: $broken sched:sched_switch are from another task than the CPU had entered: switches are missing" err
done
"$PROFSCRIPT" export "$DATA/sched.data" -o a.folded 2>err
check 'a format without a time line lacks nothing' bash -c "! grep 'has no sched' err"
"$PROFSCRIPT" trace "${sched[@]}" -N 10 --export a.json >out 2>err
expect_line '-N' 'exported 10 events' err
"$PROFSCRIPT" export - -o b.pftrace <"$DATA/pipe.data" 2>err
expect_line 'a recording from a pipe' 'exported 58 events' err
head -c 15000 "$DATA/pipe.data" >cut.data
"$PROFSCRIPT" export cut.data -o cut.json 2>err
check 'a truncated recording is exported as far as it goes' "$(command -v python3 || echo true)" -m json.tool cut.json /dev/null

# Untrusted names: a task's name may hold anything.
cp "$DATA/syscalls.data" evil.data
LC_ALL=C sed -i 's/cat\x00\x00\x00\x00/"\\<\xff\x1b}\x00/g' evil.data
for format in speedscope chrome firefox; do
	"$PROFSCRIPT" export -q evil.data -o $format:evil.json
	check "$format: names are escaped" "$(command -v python3 || echo true)" -m json.tool evil.json /dev/null
done
check 'the name is there' grep -q '\\"\\\\<' evil.json
