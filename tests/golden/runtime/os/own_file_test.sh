#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only
# The link of another user in a folder like /tmp is not written through, whatever fs.protected_symlinks says.
. "$(dirname "$0")/../../../lib.sh"
sched=$DATA/sched.data
if [ "$(id -u)" != 0 ]; then
	skip 'links of other users' 'only root can make them'
	exit
fi
cd "$TMP" || exit 1
mkdir open target
chmod 1777 open

# link NAME: another user's link in the open folder, to a file with a text
link() {
	rm -f "open/$1"
	echo untouched >target/file
	ln -s "$TMP/target/file" "open/$1"
	chown -h 65534 "open/$1"
}

# refuses NAME FILE ARG...: writing the file fails, and the link's target stays as it is
refuses() {
	local name=$1 file=$2
	shift 2
	link "$file"
	timeout 60 "$PROFSCRIPT" "$@" --input "$sched" >out 2>err
	check "$name fails" test $? -ne 0
	expect_line 'with the reason' "open/$file('|:|'?:) it is a symbolic link of another user$" err
	check 'in one line' test "$(wc -l <err)" -eq 1
	check 'and does not touch the target' grep -qx untouched target/file
}

refuses '-o' out.txt trace -e sched:sched_switch -o open/out.txt
refuses '--record' out.data trace -e sched:sched_switch --push ./open/out.data
refuses '--export' out.json trace -e sched:sched_switch --export open/out.json
refuses '--flame-graph' out.svg trace -e sched:sched_switch --flame-graph open/out.svg
refuses 'folded stacks' out.folded trace -e sched:sched_switch --flame-graph open/out.folded
refuses '--heatmap' out-sched_wakeup-sched_switch.lat multi-trace -e sched:sched_wakeup -e sched:sched_switch -k _cpu --heatmap open/out
refuses '--output2' out.db sql -e sched:sched_switch --output2 open/out.db

link own.txt
chown -h 0 open/own.txt
"$PROFSCRIPT" trace -e sched:sched_switch -N 1 -o open/own.txt --input "$sched" >out 2>err
check "one's own link is followed" grep -q sched_switch target/file
mkdir private
ln -s "$TMP/target/file" private/out.txt
chown -h 65534 private/out.txt
echo untouched >target/file
"$PROFSCRIPT" trace -e sched:sched_switch -N 1 -o private/out.txt --input "$sched" >out 2>err
check 'and any in a folder of its own' grep -q sched_switch target/file
