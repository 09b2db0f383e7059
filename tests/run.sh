#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only
# Usage: tests/run.sh [WORD...]
# Runs every test program whose label contains one of the WORDs (default: all). Folders may be left out of a WORD:
# live/jit also matches live/bindings/view/jit_test. Counts the TAP lines of the programs. A program fails as a whole
# if it crashes, hangs, prints nothing, or prints fewer or more results than it planned. A skipped test that tests/skips
# does not list is a failure. At the end come the slowest programs, with their time and their CPUs' time, the total time,
# and the sum. The exit status is 1 if anything failed.
# Guests run in parallel, and so do live tests, except those with the line "# Runs alone.". Unit and golden tests take
# what these leave of the processors, except beside those with the line "# Runs on an idle machine.", and run in parallel
# after them. The order of the output is always the same.
# TEST_TIMEOUT: seconds per program (240; a guest 460).
set -u
cd "$(dirname "$0")/.." || exit 1

words=("$@")
passed=0 failed=0 skipped=0
log=$(mktemp -d)
trap 'rm -rf "$log"' EXIT
: >"$log/times"
mountpoint -q /sys/kernel/tracing || mount -t tracefs nodev /sys/kernel/tracing 2>/dev/null
export CMOCKA_MESSAGE_OUTPUT=TAP
export UBSAN_OPTIONS=print_stacktrace=1:halt_on_error=1

wanted() {
	local word
	[ ${#words[@]} -eq 0 ] && return
	for word in "${words[@]}"; do
		# shellcheck disable=SC2053 # each / of the word also matches folders in between
		[[ $1 == *${word//\//\/*}* ]] && return
	done
	return 1
}

# Prints "ok not_ok skipped planned". cmocka calls a skipped test "not ok".
count_tap='
/^(not )?ok( |$)/ { if (tolower($0) ~ /# skip/) skip++; else if ($1 == "ok") ok++; else bad++ }
/^1\.\.0 *# *skip/ || /^1\.\.0 *# *SKIP/ { skip++; planned++ }
/^1\.\.[0-9]/ { planned += substr($1, 4) }
END { print ok + 0, bad + 0, skip + 0, planned + 0 }'

# The tests to run are numbered from 0: labels[N], commands[N], limits[N] in seconds.
labels=() commands=() limits=()
next=0 # the first test that is not reported yet
started=0 # the first one that run_until has not started
fillers=() # the processes that `fill`

# add LIMIT LABEL COMMAND...
add() {
	wanted "$2" || return 0
	labels+=("$2") limits+=("${TEST_TIMEOUT:-$1}")
	shift 2
	commands+=("$(printf '%q ' "$@")")
}

# run N: unless it has been started
run() {
	local status TIMEFORMAT='%R %U %S'
	mkdir "$log/$1.started" 2>/dev/null || return 0
	{ time eval "timeout -k 5 ${limits[$1]} ${commands[$1]}" >"$log/$1.out" 2>"$log/$1.err" </dev/null; } 2>"$log/$1.time"
	status=$?
	echo "$status $(tail -n 1 "$log/$1.time")" >"$log/$1.tmp"
	mv "$log/$1.tmp" "$log/$1.status"
}

# unlisted LABEL FILE: the skipped tests in the program's output that tests/skips does not allow
unlisted() {
	local line label name reason
	grep -i '# *skip' "$2" | while IFS= read -r line; do
		while IFS='|' read -r label name reason; do
			# shellcheck disable=SC2053 # patterns
			[[ ${1% (asan)} == $label && $line == *$name* && $line == *$reason* ]] && continue 2
		done < <(grep -v '^#' tests/skips)
		echo "# not in tests/skips: $line"
	done
}

# report N: prints the result of a test that has ended
report() {
	local label=${labels[$1]} out=$log/$1.out status seconds user system ok bad skip planned problem=
	read -r status seconds user system <"$log/$1.status"
	read -r ok bad skip planned < <(awk "$count_tap" "$out")
	if [ "$status" -eq 124 ] || [ "$status" -eq 137 ]; then
		problem="took more than ${limits[$1]} s"
	elif [ $((ok + bad + skip + planned)) -eq 0 ]; then
		problem="printed no results, exit status $status"
	elif [ $((ok + bad + skip)) -ne "$planned" ]; then
		problem="printed $((ok + bad + skip)) of $planned results, exit status $status"
	elif [ "$status" -ne 0 ] && [ "$bad" -eq 0 ]; then
		problem="exit status $status"
	fi
	[ -n "$problem" ] && bad=$((bad + 1))
	unlisted "$label" "$out" >"$log/unlisted"
	skip=$((skip - $(wc -l <"$log/unlisted"))) bad=$((bad + $(wc -l <"$log/unlisted")))
	echo "$seconds $user $system $label" >>"$log/times"
	printf '  TEST    %-50s %3.0f s, CPUs %3.0f s %4d ok%s%s\n' "$label" "$seconds" \
		"$(awk "BEGIN { print $user + $system }")" "$ok" "${problem:+, $problem}" \
		"$([ "$bad" -gt 0 ] && echo ", FAILED")"
	grep -i '# *skip' "$out"
	if [ "$bad" -gt 0 ]; then
		cat "$log/unlisted"
		grep -Ev '^ok |^1\.\.' "$out"
		cat "$log/$1.err"
	fi
	passed=$((passed + ok)) failed=$((failed + bad)) skipped=$((skipped + skip))
}

# Prints the results of the tests that have ended, up to the first one that still runs.
report_ended() {
	while [ -e "$log/$next.status" ]; do
		report $next
		next=$((next + 1))
	done
}

# run_until END PARALLEL: runs the tests up to number END that have not been started, and waits for them
run_until() {
	for ((; started < $1; started++)); do
		while [ "$(jobs -rp | wc -l)" -ge $(($2 + ${#fillers[@]})) ]; do wait -n; done
		report_ended
		run "$started" &
	done
	while [ $next -lt "$1" ]; do
		wait -n
		report_ended
	done
}

# fill FIRST: runs tests one after the other from number FIRST on, only while a processor has nothing else to do. It lasts
# until $log/full exists. Tests that trace this kernel are not among them.
fill() {
	local i
	chrt -i -p 0 $BASHPID
	for ((i = $1; i < ${#labels[@]}; i++)); do
		[ ! -e "$log/full" ] || return
		[[ ${labels[i]} =~ ^unit/(bpf|runtime/live|runtime/probes)/ ]] || run $i
	done
	while [ -d "$log" ] && [ ! -e "$log/full" ]; do sleep 0.1; done
}

# add_suite BUILD_DIR PROGRAM SUFFIX SPEC...: adds the tests that need no particular kernel
add_suite() {
	local file label build=$1 program=$PWD/$2 suffix=$3
	shift 3
	for file in $(find tests/unit -name '*_test.c' | LC_ALL=C sort); do
		label=${file#tests/} label=${label%.c}
		add 240 "$label$suffix" env "PROFSCRIPT=$program" "$build/$label"
	done
	for file; do
		label=${file#tests/} label=${label%.lua}
		add 240 "$label$suffix" env "PROFSCRIPT=$program" "$program" --lua /usr/bin/busted -o TAP "$file"
	done
	for file in $(find tests/golden -name '*_test.sh' | LC_ALL=C sort); do
		[ -z "$suffix" ] || ! grep -q '^# Only Lua runs here[.]$' "$file" || continue
		label=${file#tests/} label=${label%.sh}
		add 240 "$label$suffix" env "PROFSCRIPT=$program" bash "$file"
	done
}

# add_live LIMIT FILE...: adds tests that trace this kernel
add_live() {
	local limit=$1 file label
	shift
	for file; do
		label=${file#tests/} label=${label%.sh}
		add $limit "$label" env "PROFSCRIPT=$PWD/profscript" "TEST_TIMEOUT=${TEST_TIMEOUT:-$limit}" bash "$file"
	done
}

# What these compile is kept for guests, which have no compiler.
compiling=(tests/live/bindings/bpf/program_test.sh tests/live/profilers/bpf-kvm_exit_test.sh)
add_live 240 "${compiling[@]}"
last_compiling=${#labels[@]}
# An emulated processor that waits for a real one makes events of two programs differ by more than these tests allow.
alone=(bpf/gen/targets bpf/ways/capture bpf/ways/pair)
for name in $(tests/guest/guest.sh | grep -vFxf <(printf '%s\n' "${alone[@]}")); do
	add 460 "guest/$name" tests/guest/guest.sh "$name"
done
last_guest_beside=${#labels[@]}
for name in "${alone[@]}"; do add 460 "guest/$name" tests/guest/guest.sh "$name"; done
last_guest=${#labels[@]}
mapfile -t live < <(find tests/live -name '*_test.sh' | LC_ALL=C sort | grep -vFxf <(printf '%s\n' "${compiling[@]}"))
mapfile -t files < <(grep -LE '^# Runs (alone|on an idle machine)[.]$' "${live[@]}")
add_live 240 "${files[@]}"
last_live_beside=${#labels[@]}
mapfile -t files < <(grep -l '^# Runs alone[.]$' "${live[@]}")
add_live 240 "${files[@]}"
last_live_alone=${#labels[@]}
mapfile -t files < <(grep -l '^# Runs on an idle machine[.]$' "${live[@]}")
add_live 240 "${files[@]}"
last_live=${#labels[@]}
mapfile -t specs < <(find tests/unit -name '*_spec.lua' | LC_ALL=C sort)
# Under ASan and UBSan, those that handle memory of C themselves. The others see C through the golden tests, too.
mapfile -t ffi_specs < <(grep -l "require 'ffi'" "${specs[@]}")
add_suite build/asan build/asan/profscript ' (asan)' "${ffi_specs[@]}"
add_suite build profscript '' "${specs[@]}"

run_until "$last_compiling" "$(nproc)"
export LAB_SHARED=$log/guests
mkdir "$LAB_SHARED"
run_until "$last_guest_beside" $(($(nproc) + 1)) # guests sleep now and then
for _ in 1 2; do # some of these sleep, too
	fill "$last_live" &
	fillers+=($!)
done
run_until "$last_guest" 1
unset LAB_SHARED
run_until "$last_live_beside" "$(nproc)"
run_until "$last_live_alone" 1
: >"$log/full"
wait "${fillers[@]}"
fillers=()
run_until "$last_live" 1
run_until ${#labels[@]} $(($(nproc) + 1)) # these sleep now and then, too

LC_ALL=C sort -rn "$log/times" | head -n 10 |
	awk '{ printf "  SLOW    %-50s %5.1f s, CPUs %5.1f s\n", $4 ($5 ? " " $5 : ""), $1, $2 + $3 }'
awk -v seconds=$SECONDS '{ cpu += $2 + $3 }
	END { printf "  TIME    %d programs in %d min %d s, CPUs %.0f s\n", NR, seconds / 60, seconds % 60, cpu }' "$log/times"
[ $((passed + failed + skipped)) -gt 0 ] || { echo "no test program is called ${words[*]}"; failed=1; }
echo "$passed passed, $failed failed, $skipped skipped"
[ $failed -eq 0 ]
