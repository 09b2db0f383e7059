#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only
# Usage: tests/run.sh [WORD...]
# Runs every test program whose label contains one of the WORDs (default: all). Folders may be left out of a WORD:
# live/jit also matches live/bindings/view/jit_test. Counts the TAP lines of the programs. A program fails as a whole
# if it crashes, hangs, prints nothing, or prints fewer or more results than it planned. The last line is the sum. The
# exit status is 1 if anything failed.
# Unit and golden tests run in parallel, one per CPU, and so do live tests with the line "# Runs beside others.". All
# other live tests run alone. The order of the output is always the same.
# TEST_TIMEOUT: seconds per program (240; all guests together 900).
set -u
cd "$(dirname "$0")/.." || exit 1

words=("$@")
passed=0 failed=0 skipped=0
log=$(mktemp -d)
trap 'rm -rf "$log"' EXIT
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

# add LIMIT LABEL COMMAND...
add() {
	wanted "$2" || return 0
	labels+=("$2") limits+=("${TEST_TIMEOUT:-$1}")
	shift 2
	commands+=("$(printf '%q ' "$@")")
}

# run N
run() {
	local begun=$SECONDS
	{ eval "timeout -k 5 ${limits[$1]} ${commands[$1]}" >"$log/$1.out" 2>"$log/$1.err" </dev/null; } 2>/dev/null
	echo $? $((SECONDS - begun)) >"$log/$1.tmp"
	mv "$log/$1.tmp" "$log/$1.status"
}

# report N: prints the result of a test that has ended
report() {
	local label=${labels[$1]} out=$log/$1.out status seconds ok bad skip planned problem=
	read -r status seconds <"$log/$1.status"
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
	printf '  TEST    %-50s %3d s %4d ok%s%s\n' "$label" "$seconds" "$ok" "${problem:+, $problem}" \
		"$([ "$bad" -gt 0 ] && echo ", FAILED")"
	grep -i '# *skip' "$out"
	if [ "$bad" -gt 0 ]; then
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

# run_all PARALLEL: runs all tests that were added
run_all() {
	local i
	for ((i = next; i < ${#labels[@]}; i++)); do
		while [ "$(jobs -rp | wc -l)" -ge "$1" ]; do wait -n; done
		report_ended
		run $i &
	done
	while [ $next -lt ${#labels[@]} ]; do
		wait -n
		report_ended
	done
}

# add_suite BUILD_DIR PROGRAM SUFFIX: adds the tests that need no particular kernel
add_suite() {
	local file label program=$PWD/$2
	for file in $(find tests/unit -name '*_test.c' | LC_ALL=C sort); do
		label=${file#tests/} label=${label%.c}
		add 240 "$label$3" env "PROFSCRIPT=$program" "$1/$label"
	done
	for file in $(find tests/unit -name '*_spec.lua' | LC_ALL=C sort); do
		label=${file#tests/} label=${label%.lua}
		add 240 "$label$3" env "PROFSCRIPT=$program" "$program" --lua /usr/bin/busted -o TAP "$file"
	done
	for file in $(find tests/golden -name '*_test.sh' | LC_ALL=C sort); do
		label=${file#tests/} label=${label%.sh}
		add 240 "$label$3" env "PROFSCRIPT=$program" bash "$file"
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

add_suite build profscript ''
add_suite build/asan build/asan/profscript ' (asan)'
run_all "$(nproc)"
mapfile -t live < <(find tests/live -name '*_test.sh' | LC_ALL=C sort)
mapfile -t files < <(grep -l '^# Runs beside others[.]$' "${live[@]}")
add_live 240 "${files[@]}"
run_all "$(nproc)"
mapfile -t files < <(grep -L '^# Runs beside others[.]$' "${live[@]}")
add_live 240 "${files[@]}"
add_live 900 tests/guest/guest_test.sh
run_all 1

[ $((passed + failed + skipped)) -gt 0 ] || { echo "no test program is called ${words[*]}"; failed=1; }
echo "$passed passed, $failed failed, $skipped skipped"
[ $failed -eq 0 ]
