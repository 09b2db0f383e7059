#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only
# Every example script runs, and the events of every example of -h can be opened. Exit status 3 means that this machine
# lacks what one needs; any other failure is an error.
# Runs alone.
. "$(dirname "$0")/../lib.sh"
export PROFSCRIPT
needs_tracepoint sched:sched_wakeup

for example in "$TOP"/examples/*.lua; do
	name="$(basename "$example") runs"
	"$PROFSCRIPT" "$example" --duration 0.2 >"$TMP/out" 2>"$TMP/err"
	status=$?
	unavailable $status "$name" || result $status "$name" "$TMP/err"
done

# The examples of -h as dry runs, which open their events. The files that they name exist.
cd "$TMP" || exit 1
printf 'int f(int x) { return x + 1; }\nint main(int n, char **v) { (void)v; return f(n) == 0; }\n' >program.c
gcc -O0 -o program program.c 2>/dev/null || cp "$(command -v true)" program
cp "$DATA/mixed.data" perf.data
cp "$DATA/mixed.data" new.data
cp "$DATA/mixed.data" old.data

# not_loaded: $TMP/err reports missing events of a module that is not loaded; only a user knows that these exist
not_loaded() {
	local system
	system=$(sed -nE "1s/^profscript: no such event( system)? '(kvm|kvmmmu)[:'].*/\2/p" "$TMP/err")
	[ -n "$system" ] && [ ! -d "/sys/kernel/tracing/events/$system" ]
}

for profiler in $("$PROFSCRIPT" --help | awk '/^  [a-z]/ { print $1 }'); do
	"$PROFSCRIPT" "$profiler" --help=all >help 2>&1
	grep -q -- '--dry-run' help || continue
	check "$profiler: -h is one screen" test "$("$PROFSCRIPT" "$profiler" --help | wc -l)" -le 50
	sed -n '/^examples/,/^$/s/^ *\(profscript .*\)/\1/p' help >commands
	: >wrong
	while IFS= read -r command; do
		case $command in
		*' -- '*) dry=${command/ -- / --dry-run -- } ;;
		*) dry="$command --dry-run" ;;
		esac
		timeout 60 bash -c "\"\$PROFSCRIPT\" ${dry#profscript }" >out 2>err </dev/null
		status=$?
		[ $status -ne 0 ] || continue
		! not_loaded || status=3
		unavailable $status "$command" || { echo "$command"; cat err; } >>wrong
	done <commands
	check "$profiler: the examples of -h" test ! -s wrong
done

workload pingpong -c 0 1000
trace_workload "$TOP/examples/wakeups.lua" --top 100000
check 'wakeups ends' test $? -eq 0
expect_line 'wakeups counts' '\<ping +1000$' "$TMP/out"
expect_line 'wakeups counts' '\<pong +1000$' "$TMP/out"

# during 'EXAMPLE [OPTION...]' COMMAND...: runs the example while the command runs; its lines are in $TMP/out
during() {
	local example=$1
	shift
	# shellcheck disable=SC2086 # an example may have options
	"$PROFSCRIPT" "$TOP/examples/"$example -m 1024 -- "$@" >"$TMP/out" 2>"$TMP/err"
}

# Some kernels report nothing to perf while the idle task of a CPU is current. So from here on no CPU is idle.
hogs=()
for _ in $(seq "$(nproc)"); do
	nice -n 19 bash -c 'while :; do :; done' &
	hogs+=($!)
done

during syscount.lua "$TOP/build/workloads/syscalls" 5000
expect_line 'syscount counts' '^getppid +5000 ' "$TMP/out"
during 'outliers.lua --call clock_nanosleep --times 5 --before 50ms' \
	bash -c 'for i in {1..8}; do sleep 0.02; done; sleep 0.7; sleep 0.5; sleep 0.1'
expect_line 'outliers prints the call' '^sleep +[0-9]+ +[5-9][0-9]{2}\.[0-9]+ +[0-9.]+$' "$TMP/out"
expect_line 'outliers prints what was before' ' sched:sched_(switch|wakeup): ' "$TMP/out"
# Two tasks that share a CPU.
during 'late-runs.lua --than 500us' taskset -c 0 bash -c "'$TOP/build/workloads/burn' 100 & '$TOP/build/workloads/burn' 100; wait; sleep 0.1"
expect_line 'late-runs prints who waited' '^burn +[0-9]+ +0$' "$TMP/out"
expect_line 'late-runs prints what ran' ' \[000\] .* sched:sched_switch: .*[:=]burn[: ]' "$TMP/out"
during syscount.lua cat /no/such/file
expect_line 'syscount names errors' '^openat +ENOENT +[1-9]' "$TMP/out"
during execsnoop.lua bash -c '/bin/true; /bin/true'
expect_line 'execsnoop prints programs' '^ +[0-9]+ bash +/bin/true +/bin/true$' "$TMP/out"
check 'execsnoop prints each' test "$(grep -c 'bash  */bin/true' "$TMP/out")" -eq 2
during killsnoop.lua bash -c 'sleep 60 & kill -USR1 $!; wait'
expect_line 'killsnoop prints signals' '^ +[0-9]+ bash +SIGUSR1 +[0-9]+ (sleep|bash) +delivered$' "$TMP/out"
during 'cpudist.lua --top 1000' "$TOP/build/workloads/burn" 50
expect_line 'cpudist has the command' '^comm=burn:$' "$TMP/out"
sleeps=(bash -c 'for i in {1..12}; do sleep 0.05; done')
during 'offcputime.lua --top 100000' "${sleeps[@]}"
check 'offcputime has the sleep' awk '/^sleep: ns / && $3 >= 5e7 { found = 1 } END { exit !found }' "$TMP/out"
during 'wakeuptime.lua --top 100000' "${sleeps[@]}"
check 'wakeuptime has it, too' awk '$2 == "sleep" && $NF >= 5e7 { found = 1 } END { exit !found }' "$TMP/out"
during vfsstat.lua dd if=/dev/zero of=/dev/null bs=1 count=3000
check 'vfsstat counts reads and writes' awk 'NR == 2 && $1 >= 3000 && $2 >= 3000 { found = 1 } END { exit !found }' "$TMP/out"

# TCP connections of this machine: one that is accepted, and one that is refused.
cat >"$TMP/tcp.py" <<'END'
import socket, time
server = socket.create_server(('127.0.0.1', 0))
port = server.getsockname()[1]
client = socket.create_connection(('127.0.0.1', port))
accepted, _ = server.accept()
time.sleep(0.2)
client.close()
accepted.close()
server.close()
try:
    socket.create_connection(('127.0.0.1', port))
except ConnectionRefusedError:
    pass
END
if [ -d /sys/kernel/tracing/events/sock/inet_sock_set_state ] && command -v python3 >/dev/null; then
	during tcpconnect.lua python3 "$TMP/tcp.py"
	expect_line 'tcpconnect prints a connection' '^ +[0-9]+ python3 +[0-9.]+ 127.0.0.1 +[0-9]+ ESTABLISHED$' "$TMP/out"
	expect_line 'tcpconnect prints a refused one' '^ +[0-9]+ python3 +[0-9.]+ 127.0.0.1 +[0-9]+ CLOSE$' "$TMP/out"
	during tcplife.lua python3 "$TMP/tcp.py"
	check 'tcplife prints how long it was open' awk '/python3 +127.0.0.1/ && $NF >= 200 { found = 1 } END { exit !found }' "$TMP/out"
fi
if "$PROFSCRIPT" "$TOP/examples/opensnoop.lua" --dry-run >/dev/null 2>&1; then
	echo text >"$TMP/a file"
	during opensnoop.lua cat "$TMP/a file" /no/such/file
	expect_line 'opensnoop prints a file' "^ +[0-9]+ cat +[0-9]+ +$TMP/a file\$" "$TMP/out"
	expect_line 'opensnoop prints one that does not exist' '^ +[0-9]+ cat +ENOENT +/no/such/file$' "$TMP/out"
	during 'opensnoop.lua --failed' cat "$TMP/a file" /no/such/file
	check 'opensnoop prints only failures' test "$(grep -cE 'cat +ENOENT +/no/such/file$|a file$' "$TMP/out")" -eq 1
	during statsnoop.lua stat "$TMP/a file" /no/such/file
	expect_line 'statsnoop prints it' "^ +[0-9]+ stat +ok +$TMP/a file\$" "$TMP/out"
	expect_line 'statsnoop prints errors' '^ +[0-9]+ stat +ENOENT +/no/such/file$' "$TMP/out"
	mkdir "$TMP/here"
	during mountsnoop.lua mount -t tmpfs none "$TMP/here"
	expect_line 'mountsnoop prints the target' "^ +[0-9]+ mount +mount +ok +none +$TMP/here\$" "$TMP/out"
	during mountsnoop.lua umount "$TMP/here"
	expect_line 'mountsnoop prints what is unmounted' "^ +[0-9]+ umount +umount +ok +$TMP/here\$" "$TMP/out"
fi
if [ -d /sys/kernel/tracing/events/filemap/mm_filemap_get_pages ]; then
	dd if=/dev/zero of="$TMP/pages" bs=64k count=64 2>/dev/null
	during cachestat.lua dd if="$TMP/pages" of=/dev/null bs=64k
	check 'cachestat has the hits' awk '$1 >= 1024 && $3 > 50 { found = 1 } END { exit !found }' "$TMP/out"
fi
"$PROFSCRIPT" "$TOP/examples/runqlen.lua" --duration 0.5 >"$TMP/out" 2>"$TMP/err"
status=$?
unavailable $status runqlen ||
	check 'runqlen samples' awk 'NR > 1 && $1 < 64 { n += $2 } END { exit n < 20 }' "$TMP/out"
before=$(awk '{ n += $8 } END { print n }' /proc/diskstats)
perf stat -a -x, -o "$TMP/perf.csv" -e block:block_rq_issue --filter 'comm == "dd"' \
	"$PROFSCRIPT" "$TOP/examples/biosnoop.lua" -m 1024 -- dd if=/dev/zero of="$TOP/build/direct" bs=64k count=16 oflag=direct \
	>"$TMP/out" 2>"$TMP/err"
after=$(awk '{ n += $8 } END { print n }' /proc/diskstats)
rm -f "$TOP/build/direct"
kill "${hogs[@]}"
if [ "$after" -ge $((before + 16)) ]; then # the file is on a block device
	awk -v issued="$(sed -n 's/,,block.*//p' "$TMP/perf.csv")" '$2 == "dd" { n++; if ($3 ~ /W/) sum += $5 }
		END { exit n != issued || sum < 16 * 65536 }' "$TMP/out" # a file system may write more
	result $? "biosnoop prints each request, as perf stat counts them" "$TMP/out"
fi
