# SPDX-License-Identifier: GPL-2.0-only
# shellcheck shell=bash
# Functions for shell tests. A test sources this file first. It prints TAP lines, and the plan at exit. Each test
# also runs alone, without tests/run.sh.
#
#   $PROFSCRIPT  the program under test      $TOP   the source tree
#   $HERE        the folder of the test      $DATA  the recordings
#   $TMP         removed at exit; $TMP/out and $TMP/err hold the output of the last run
#   $GETPPID     the number of the system call that the workload `syscalls` makes
set -u
TOP=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
HERE=$(cd "$(dirname "$0")" && pwd)
DATA=$TOP/tests/recordings
: "${PROFSCRIPT:=$TOP/profscript}"
export TRACEEVENT_PLUGIN_DIR= # no plugins of libtraceevent, which may be installed here or not
TMP=$(mktemp -d)
GETPPID=173
[ "$(uname -m)" != x86_64 ] || GETPPID=110
tests_run=0 tests_failed=0 pulse=() watch='' hidden=''
trap finish EXIT

finish() {
	local status=$? pids
	mapfile -t pids < <(jobs -p)
	pids+=("${pulse[@]}")
	[ ${#pids[@]} -gt 0 ] && kill "${pids[@]}" 2>/dev/null
	[ -z "$watch" ] || rmdir $watch
	rm -rf "$TMP"
	echo "1..$tests_run"
	[ $status -eq 0 ] && [ $tests_failed -gt 0 ] && status=1
	exit $status
}

# --- results --------------------------------------------------------------------------------------

# result STATUS NAME [FILE]: FILE has the details of a failure
result() {
	tests_run=$((tests_run + 1))
	if [ "$1" -eq 0 ]; then
		echo "ok $tests_run - $2"
	else
		tests_failed=$((tests_failed + 1))
		echo "not ok $tests_run - $2"
		[ -s "${3-}" ] && sed 's/^/# /' "$3" | head -n 50
	fi
	return 0
}

# check NAME COMMAND...: the command succeeds
check() {
	local name=$1
	shift
	"$@" >"$TMP/.check" 2>&1
	result $? "$name" "$TMP/.check"
}

# check_status NAME STATUS COMMAND...: the command exits with this status
check_status() {
	local name=$1 want=$2 status
	shift 2
	"$@" >"$TMP/.check" 2>&1
	status=$?
	echo "exit status $status, expected $want" >>"$TMP/.check"
	result $((status != want)) "$name" "$TMP/.check"
}

# expect_line NAME REGEX [FILE]: a line of FILE (default: stdin) matches the extended REGEX
expect_line() {
	cat -- "${3:--}" >"$TMP/.lines"
	grep -Eq -- "$2" "$TMP/.lines"
	result $? "$1: $2" "$TMP/.lines"
}

# expect_text NAME EXPECTED_FILE COMMAND...: the command succeeds and prints exactly this to stdout
expect_text() {
	local name=$1 expected=$2 status
	shift 2
	"$@" >"$TMP/.text" 2>"$TMP/.err"
	status=$?
	{ cat "$TMP/.err"; diff -u "$expected" "$TMP/.text"; } >"$TMP/.diff"
	cmp -s "$expected" "$TMP/.text" || status=1
	result $status "$name" "$TMP/.diff"
}

# expect_output NAME RECORDING PROFILER ARG...: on this recording the profiler prints NAME.expect, which is next to
# the test. UPDATE=1 rewrites that file.
expect_output() {
	local name=$1 command=("$PROFSCRIPT" "$3" --input "$DATA/$2.data" "${@:4}")
	[ -z "${UPDATE-}" ] || TZ=UTC "${command[@]}" >"$HERE/$name.expect"
	expect_text "$name.expect" "$HERE/$name.expect" env TZ=UTC "${command[@]}"
}

# expect_outputs NAME RECORDING PROFILER ARG...: the same as text, JSON (NAME-json.expect) and CSV (NAME-csv.expect)
expect_outputs() {
	local form
	for form in '' -json -csv; do
		expect_output "$1$form" "$2" "${@:3}" ${form:+-$form}
	done
}

# one_line STATUS WANT REGEX: prints what is wrong with the exit status and with $TMP/err, which must be one matching
# line. A caret below the quoted text and a line `try profscript ... -h` may follow.
one_line() {
	[ "$1" -eq "$2" ] || echo "exit status $1, expected $2"
	head -n 1 "$TMP/err" | grep -Eq -- "^profscript: $3" || echo "the message does not match: $3"
	grep -Eq 'stack traceback|attempt to|internal error' "$TMP/err" && echo 'the message shows internals'
	awk 'NR == 1 { next }
		/^try .profscript.* -h.$/ { next }
		/^ +\^$/ && NR == 3 { next }
		/^  / && NR == 2 { next }
		{ print "more than one line" }' "$TMP/err"
	LC_ALL=C grep -q $'[\001-\010\013-\037]' "$TMP/err" && echo 'control characters'
}

# refused NAME STATUS REGEX ARG...: profscript exits with this status and prints only a matching line
refused() {
	local name=$1 want=$2 regex=$3 status
	shift 3
	timeout 20 "$PROFSCRIPT" "$@" >"$TMP/out" 2>"$TMP/err" </dev/null
	status=$?
	{
		one_line $status "$want" "$regex"
		[ -s "$TMP/out" ] && echo 'something was printed'
	} >"$TMP/.wrong"
	[ -s "$TMP/.wrong" ] && cat "$TMP/err" >>"$TMP/.wrong"
	[ ! -s "$TMP/.wrong" ]
	result $? "$name" "$TMP/.wrong"
}

# partly NAME STATUS REGEX OUT_REGEX ARG...: the same, but it also prints partial results, which match
partly() {
	local name=$1 want=$2 regex=$3 out=$4 status
	shift 4
	timeout 20 "$PROFSCRIPT" "$@" >"$TMP/out" 2>"$TMP/err" </dev/null
	status=$?
	{
		one_line $status "$want" "$regex"
		grep -Eq -- "$out" "$TMP/out" || echo "no partial result matches $out"
	} >"$TMP/.wrong"
	[ -s "$TMP/.wrong" ] && cat "$TMP/err" "$TMP/out" >>"$TMP/.wrong"
	[ ! -s "$TMP/.wrong" ]
	result $? "$name" "$TMP/.wrong"
}

# skip NAME REASON: REASON names what is missing
skip() {
	tests_run=$((tests_run + 1))
	echo "ok $tests_run - $1 # SKIP $2"
}

skip_all() {
	skip "$(basename "$0" .sh)" "$1"
	exit 0
}

# unavailable STATUS NAME: skips NAME with the reason in $TMP/err if the status says that this machine lacks something
unavailable() {
	[ "$1" -eq 3 ] && skip "$2" "$(sed -n '1s/^profscript: //p' "$TMP/err")"
}

# --- tables ---------------------------------------------------------------------------------------

# csv ARG...: runs profscript with CSV into $TMP/out
csv() {
	"$PROFSCRIPT" "$1" --format csv "${@:2}" >"$TMP/out" 2>"$TMP/err"
}

# column NAME: the values of this column of the CSV in $TMP/out
column() {
	awk -F, -v name="$1" 'NR == 1 { for (i = 1; i <= NF; i++) if ($i == name) at = i; next } { print $at }' "$TMP/out"
}

# total COLUMN: its sum
total() { column "$1" | awk -v OFMT=%.15g '{ n += $1 } END { print n + 0 }'; }

# rows NAME EXPRESSION: awk's EXPRESSION holds for a row of the CSV in $TMP/out. c["NAME"] is a column.
rows() {
	awk -F, -v OFS=, 'NR == 1 { split($0, name); next } { for (i in name) c[name[i]] = $i; if ('"$2"') found = 1 }
		END { exit !found }' "$TMP/out"
	result $? "$1: $2" "$TMP/out"
}

# table RECORDING PROFILER ARG...: the rows of its CSV go to $TMP/got, without the header, the table's name and the time
table() {
	csv "$2" --input "$DATA/$1.data" "${@:3}"
	tail -n +2 "$TMP/out" | cut -d, -f3- >"$TMP/got"
}

# perf_text RECORDING: the output of perf script, as "CPU TIME_NS EVENT: FIELDS"
perf_text() {
	perf script -i "$DATA/$1.data" --ns -G -F cpu,time,event,trace 2>/dev/null |
		sed -E 's/^ *\[0*([0-9]+)\] +([0-9]+)\.([0-9]+): +/\1 \2\3 /'
}

# --- live runs ------------------------------------------------------------------------------------

# needs_tracepoint SYSTEM:NAME...: skips the whole test without them. From then on each CPU has system calls, wakeups
# and switches 20 times per second: an idle machine may have none for seconds.
needs_tracepoint() {
	local event events=/sys/kernel/tracing/events
	[ -d $events ] || mount -t tracefs nodev /sys/kernel/tracing 2>/dev/null
	for event; do
		[ -r "$events/${event/://}/id" ] || skip_all "no readable tracepoint $event in tracefs"
		perf stat -a -e "$event" true >/dev/null 2>&1 || skip_all "perf_event_open refuses $event"
	done
	[ ${#pulse[@]} -gt 0 ] && return
	mkfifo "$TMP/.pulse"
	for event in $(seq 0 $(($(nproc) - 1))); do
		# In guests, processes would be most of the load.
		if [ -n "${IN_GUEST-}" ]; then
			taskset -c "$event" bash -c 'while :; do read -rt 0.05; done' <>"$TMP/.pulse" >/dev/null 2>&1 &
		else
			taskset -c "$event" bash -c 'while sleep 0.05; do :; done' >/dev/null 2>&1 &
		fi
		pulse+=($!)
		disown
	done
}

# start ARG...: runs profscript in the background and returns when all events are enabled; its pid is $tracer
start() {
	"$PROFSCRIPT" "$@" >"$TMP/out" 2>"$TMP/err" &
	tracer=$!
	wait_ready $tracer
}

# stop: ends the tracer as Ctrl-C does
stop() {
	kill -INT $tracer 2>/dev/null
	wait $tracer
}

# workload [-C CPU|-u USER] NAME ARG...: starts build/workloads/NAME, which waits for `go`; its pid is $WORKLOAD. -C: it
# runs only on this CPU, from its start. -u: as this user.
workload() {
	local on=() name
	[ "$1" != -C ] || { on=(taskset -c "$2") && shift 2; }
	[ "$1" != -u ] || { on=(setpriv --reuid "$2" --clear-groups) && shift 2; }
	name=$1
	shift
	rm -f "$TMP/go"
	mkfifo "$TMP/go"
	"${on[@]}" "$TOP/build/workloads/$name" -w "$@" <"$TMP/go" &
	WORKLOAD=$!
	exec {workload_go}>"$TMP/go"
	wait_for 20 grep -qx "$name" "/proc/$WORKLOAD/comm"
}

# go: lets the workload run, and returns when it has ended
go() {
	echo >&"$workload_go"
	exec {workload_go}>&-
	wait "$WORKLOAD"
}

# calls_on CPU N: N system calls getppid on this CPU
calls_on() {
	taskset "$(printf %x $((1 << $1)))" "$TOP/build/workloads/syscalls" "$2"
}

# trace_workload ARG...: runs profscript while the workload runs
trace_workload() {
	start "$@"
	go
	stop
}

# capture_agrees NAME PROFILER ARG...: through perf and through BPF programs, runs at the same time print the same CSV and
# warnings about the workload
capture_agrees() {
	local name=$1 peer
	shift
	"$PROFSCRIPT" "$@" --capture perf -m 4096 -i 100s --csv >"$TMP/perf" 2>"$TMP/perf.err" &
	peer=$!
	wait_ready $peer
	start "$@" --capture bpf -i 100s --csv
	go
	kill -INT $peer
	wait $peer
	stop
	sed -Ei 's/,[0-9]{9,}\.[0-9]{6},/,/' "$TMP/perf" "$TMP/out"
	sed -i '/ are missing: the kernel counted them/d' "$TMP/perf.err" # of any task
	check "$name" diff "$TMP/perf" "$TMP/out"
	check "$name: the same warnings" diff "$TMP/perf.err" "$TMP/err"
}

# leaves_no_program N ARG...: a run has N BPF programs, whose names say whose they are, and SIGKILL leaves none
leaves_no_program() {
	local want=$1 id ids
	shift
	command -v bpftool >/dev/null || { skip 'SIGKILL leaves none' 'bpftool is not installed' && return; }
	start "$@"
	mapfile -t ids < <(sed -n 's/^prog_id:[^0-9]*//p' /proc/$tracer/fdinfo/* | sort -u)
	for id in "${ids[@]}"; do bpftool prog show id "$id"; done >"$TMP/programs"
	check "$want programs run" test "$(grep -c ' name ps_' "$TMP/programs")" -eq "$want" -a ${#ids[@]} -eq "$want"
	{ kill -KILL $tracer && wait $tracer; } 2>/dev/null
	# shellcheck disable=SC2317 # wait_for calls it
	gone() { for id in "${ids[@]}"; do ! bpftool prog show id "$id" || return 1; done; }
	check 'SIGKILL leaves none' wait_for 10 gone
}

# watch_tasks GLOB...: until all_reported, ftrace and perf stat count the scheduler's events about tasks of such names.
# Some kernels report not all of them to perf, nor to BPF programs that are attached to its events.
watch_tasks() {
	local glob tasks switches event counted=()
	[ -z "$watch" ] || end_watch
	for glob; do
		tasks+="${tasks:+ || }comm ~ \"$glob\""
		switches+="${switches:+ || }prev_comm ~ \"$glob\" || next_comm ~ \"$glob\""
	done
	for event in sched_switch sched_wakeup sched_wakeup_new; do
		counted+=(-e "sched:$event" --filter "$([ $event = sched_switch ] && echo "$switches" || echo "$tasks")")
	done
	perf stat -a -x, -o "$TMP/watch" "${counted[@]}" &
	watcher=$!
	wait_for 20 grep -q -E 'nanosleep|poll' "/proc/$watcher/wchan"
	watch=/sys/kernel/tracing/instances/watch$$
	mkdir $watch
	for event in sched_switch sched_wakeup sched_wakeup_new; do
		{ [ $event = sched_switch ] && echo "$switches" || echo "$tasks"; } >$watch/events/sched/$event/filter
	done
	echo 1 | tee $watch/events/sched/sched_{switch,wakeup,wakeup_new}/enable >/dev/null
}

# end_watch: ftrace, which began later, also ends earlier. $hidden says how many events it has more than perf stat, if any.
end_watch() {
	local traced counted
	echo 0 >$watch/events/enable
	traced=$(awk '/^(entries|overrun):/ { n += $2 } END { print n + 0 }' $watch/per_cpu/cpu*/stats)
	rmdir $watch
	watch=
	kill -INT $watcher
	wait $watcher
	counted=$(awk -F, '/sched:/ { n += $1 } END { print n + 0 }' "$TMP/watch")
	hidden=
	[ "$counted" -ge "$traced" ] || hidden="perf stat counts $counted of the $traced events that ftrace has"
}

# all_reported NAME [FILE...]: skips NAME if perf stat counted fewer events than ftrace since watch_tasks. The rings are
# large enough, so it fails if a run says in a FILE (default: $TMP/err) that events were lost.
all_reported() {
	local name=$1
	shift
	[ -z "$watch" ] || end_watch
	if grep -hE 'lost [1-9]|[1-9][0-9]* lost' "${@:-$TMP/err}" >"$TMP/lost"; then
		result 1 "$name: nothing is lost" "$TMP/lost"
	elif [ -n "$hidden" ]; then
		skip "$name" "$hidden"
	else
		return 0
	fi
	return 1
}

# total_is_perfs COLUMN PROFILER ARG...: the sum of this column of the CSV plus the lost events is what perf stat counts
# in the same threads at the same time, with rings that hold everything, with rings that are too small, and as the
# profiler counts if nothing else is said
total_is_perfs() {
	local column=$1 pages how lost want peer
	shift
	for how in 4096:perf 1:perf 4096:auto; do
		pages=${how%:*}
		workload syscalls 100000
		perf stat -x, -o "$TMP/perf.csv" -e raw_syscalls:sys_enter -p "$WORKLOAD" &
		peer=$!
		start "$1" --format csv -v -m $pages "${@:2}" -p "$WORKLOAD" -i 100s --capture "${how#*:}"
		wait_for 20 grep -q -E 'nanosleep|poll' /proc/$peer/wchan
		go
		wait $tracer $peer
		want=$(sed -n 's/,,raw_syscalls.*//p' "$TMP/perf.csv")
		lost=$(sed -n 's/^profscript: [0-9]* events, \([0-9]*\) lost.*/\1/p' "$TMP/err")
		echo "seen $(total "$column"), lost $lost, perf stat $want" >"$TMP/sum"
		[ "$want" -ge 100000 ] && [ $(($(total "$column") + lost)) -eq "$want" ] && [ $((lost > 0)) -eq $((pages == 1)) ]
		result $? "-m $pages, ${how#*:}: the total and the losses add up to perf stat's count" "$TMP/sum"
	done
}

# sum_of NAME: writes the sum of the numbers with this name in the JSON in $TMP/out to $TMP/sum
sum_of() {
	grep -o "\"$1\":[0-9]*" "$TMP/out" | awk -F: -v OFMT=%.15g '{ sum += $2 } END { print sum + 0 }' >"$TMP/sum"
}

# go_until NAME N: runs the workload on CPU 0, and the tracer until the numbers of this name in its JSON add up to N.
# Some kernels take no clock samples while a CPU other than the first is idle.
go_until() {
	taskset -cp 0 "$WORKLOAD" >/dev/null
	go
	# shellcheck disable=SC2317 # wait_for calls it
	printed() { sum_of "$1" && [ "$(<"$TMP/sum")" -ge "$2" ]; }
	wait_for 20 printed "$1" "$2"
	stop
	sum_of "$1"
}

# ends_on_ctrl_c PROFILER ARG...: its output is complete JSON and has a table
ends_on_ctrl_c() {
	start "$@" -i 100s --format json
	"$TOP/build/workloads/pingpong" -c 0 100
	"$TOP/build/workloads/states" signal 1 migrate 2 fork 1
	stop
	check 'Ctrl-C ends it' bash -c "! grep -v '^{.*}\$' '$TMP/out'"
	expect_line 'it reports at its end' '"table":' "$TMP/out"
}

# page_commands FILE [CHECK]: the indented commands of a page in Markdown succeed and print something, or draw a picture.
# They run in the current folder; their /tmp is $TMP. CHECK is called with the command after each and fails if the output is wrong.
page_commands() {
	local name line status picture
	while read -r name; do
		line=${name//sudo /}
		line=${line//\/tmp\//$TMP/}
		line=${line//.\/profscript/$PROFSCRIPT}
		line=${line//tests\/tools/$TOP/tests/tools}
		if [[ $line == *' -i '* ]]; then # runs until Ctrl-C
			: >"$TMP/out"
			bash -c "exec $line" >"$TMP/out" 2>"$TMP/err" </dev/null &
			wait_for 60 test -s "$TMP/out"
			kill -INT $!
			wait $!
		else
			timeout 60 bash -c "$line" >"$TMP/out" 2>"$TMP/err" </dev/null
		fi
		status=$?
		picture=$(grep -oE '/[^ ]+[.]svg' <<<"$line")
		[[ $status -ne 0 || -s $TMP/out || $line == *' -o '*.data* || -s ${picture:-/none} ]] || { status=1; echo 'printed nothing' >>"$TMP/err"; }
		[ $status -ne 0 ] || "${2-true}" "$name" 2>>"$TMP/err" || status=1
		unavailable $status "$name" || result $status "$name" "$TMP/err"
	done < <(grep -E '^    .*(\./profscript|perf record)' "$1")
}

# shown COMMAND: prints the headings, the events and the labels of the output that the file $page shows for this command
shown() {
	awk -v command="    $1" '
		$0 == command { found = 1; next }
		found && /^    |^#/ { exit }
		found && /^```/ { if (inside++) exit; next }
		!inside { next }
		/^-[- .]*-$/ {
			for (i = 1; i <= fields; i++) if (heading[i] != "...") print heading[i]
		}
		match($0, /[a-z_]+:[a-z_]+: /) { print substr($0, RSTART, RLENGTH) }
		/^[ A-Za-z-]+:/ { print substr($0, 1, index($0, ":")) }
		{ fields = split($0, heading) }' "$page" | sort -u
}

# as_shown COMMAND: $TMP/out and $TMP/err have all of them; for page_commands
as_shown() {
	local text missing=0
	while read -r text; do
		grep -qF -- "$text" "$TMP/out" "$TMP/err" && continue
		echo "the page shows '$text', the output does not have it" >&2
		missing=1
	done < <(shown "$1")
	return $missing
}

# page_scripts: writes the scripts that the file $page shows, each of which has its file name in its first line, into the
# current folder
page_scripts() {
	awk '
		/^```/ { file = ""; starts = /^```lua$/; next }
		starts { file = substr($0, 4); starts = 0 }
		file { print >file }' "$page"
}

# wait_for SECONDS COMMAND...: repeats the command until it succeeds
wait_for() {
	local end=$((SECONDS + $1))
	shift
	until "$@" 2>/dev/null; do
		[ $SECONDS -lt $end ] || return 1
		sleep 0.05
	done
}

# in_poll PID: it waits in ppoll(2). Kernels before 5.16 do not say in which of their functions, but say the call.
in_poll() {
	grep -q poll "/proc/$1/wchan" || { [ "$HOSTTYPE" = x86_64 ] && grep -q '^271 ' "/proc/$1/syscall"; }
}

# wait_ready PID: waits until profscript waits for events; then all are enabled, and signals end it
wait_ready() {
	wait_for 60 in_poll "$1"
}

# given_up_traces LOOP FILE: the traces in a report of jit.v that were aborted after the loop at LOOP was compiled: side
# traces of loops, and traces that start over. Earlier aborts do not matter: a function may get hot before the loop
# around it and be tried alone, but the loop is compiled with the function in it. Nor do returns to a lower frame:
# there the loop ends, once per batch. Which registers hold what depends on the traces before, and so on addresses: if
# there are too few at the start of a side trace, LuaJIT tries again, and says if it falls back to the interpreter.
given_up_traces() {
	awk -v loop=" $1:[0-9]+ loop]$" '
		{
			exit_of = match($0, /\([0-9]+\/[0-9]+\)/) ? substr($0, RSTART, RLENGTH) : ""
			parent = substr(exit_of, 2) + 0
		}
		/^\[TRACE +[0-9]+ / {
			in_loop[$2 + 0] = exit_of ? in_loop[parent] : / loop]$/
		}
		$0 ~ loop { there = 1 }
		/NYI: return to lower frame/ {
			ends[exit_of] = 1
			next
		}
		/NYI: register coalescing too complex/ { next }
		there && /-- NYI|fallback to interpreter|blacklisted/ && !(exit_of && ends[exit_of]) &&
			(exit_of ? in_loop[parent] : 1)' "$2"
}
