# SPDX-License-Identifier: GPL-2.0-only
# shellcheck shell=bash
# Mappings are sent with build ids, of programs that run before and of those that start later. So a receiver finds the
# functions of the same program elsewhere, and takes none from another program at the same path.
. "$(dirname "$0")/../../../lib.sh"
unset DEBUGINFOD_URLS
cd "$TMP" || exit 1
export HOME=$TMP
EVENT=cpu-clock/period=1000000/

# names: what profscript calls the functions of the program in the stream
names() {
	"$PROFSCRIPT" trace -g --input file.data -e cpu-clock 2>err | grep "($TMP/program)" >names
}

# sent NAME: the stream has the program's build id, and only that names it
sent() {
	local id where
	id=$(readelf -n "$TOP/build/workloads/burn" | sed -n 's/.*Build ID: //p')
	where=.debug/.build-id/${id:0:2}/${id:2}
	perf script -i file.data --show-mmap-events 2>/dev/null | grep PERF_RECORD_MMAP2 >maps
	check "$1: perf reads the build id" grep -q "<$id>.*$TMP/program" maps
	names
	check "$1: it is the same program" grep -q ' hot+' names
	cat "$TOP/build/workloads/deep" >program # the same inode
	names
	check "$1: another program gives no names" bash -c 'test -s names && ! grep -q + names'
	mkdir -p "$where"
	cp "$TOP/build/workloads/burn" "$where/elf"
	names
	check "$1: a copy by build id does" grep -q ' hot+' names
	rm -r .debug
}

cp "$TOP/build/workloads/burn" program
"$PROFSCRIPT" trace -g -m 1024 -e "$EVENT" --push file.data -- "$TMP/program" 20 2>err
sent 'a program that starts'

cp "$TOP/build/workloads/burn" program
mkfifo go
"$TMP/program" -w 20 <go &
program=$!
exec {go}>go
wait_for 20 grep -qx program "/proc/$program/comm"
start trace -g -m 1024 -e "$EVENT" --push file.data -p $program
echo >&$go
wait $program
stop
sent 'a program that runs'
