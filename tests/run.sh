#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only
# Usage: tests/run.sh [WORD...]
# Runs every test program whose label contains one of the WORDs (default: all) and counts the TAP
# lines it prints. A program that crashes, hangs, is silent, or prints another number of results
# than it planned counts as failed. The last line is the sum; the exit status is 1 if any failed.
# Live and guest tests share the machine with what else it does: those that fail are shown and, if they
# are three or fewer, run once more at the end. The second result counts; a line says that it was one.
# TEST_TIMEOUT: seconds that one program may take (120; a live one 240, all guests together 900).
set -u
cd "$(dirname "$0")/.." || exit 1

words=("$@")
passed=0 failed=0 skipped=0
again=() again_failed=0 # labels of live and guest tests that failed, and how many of their results
log=$(mktemp -d)
trap 'rm -rf "$log"' EXIT
export CMOCKA_MESSAGE_OUTPUT=TAP
export UBSAN_OPTIONS=print_stacktrace=1:halt_on_error=1

wanted() {
	local word
	[ ${#words[@]} -eq 0 ] && return
	for word in "${words[@]}"; do
		[[ $1 == *"$word"* ]] && return
	done
	return 1
}

# Prints "ok not_ok skipped planned". cmocka calls a skipped test "not ok".
count_tap='
/^(not )?ok( |$)/ { if (tolower($0) ~ /# skip/) skip++; else if ($1 == "ok") ok++; else bad++ }
/^1\.\.0 *# *skip/ || /^1\.\.0 *# *SKIP/ { skip++; planned++ }
/^1\.\.[0-9]/ { planned += substr($1, 4) }
END { print ok + 0, bad + 0, skip + 0, planned + 0 }'

# run LABEL COMMAND...
run() {
	local label=$1 limit=${TEST_TIMEOUT:-120} status ok bad skip planned problem=
	shift
	wanted "$label" || return 0
	{ timeout -k 5 "$limit" "$@" >"$log/out" 2>"$log/err" </dev/null; } 2>/dev/null
	status=$?
	read -r ok bad skip planned < <(awk "$count_tap" "$log/out")
	if [ $status -eq 124 ] || [ $status -eq 137 ]; then
		problem="took more than $limit s"
	elif [ $((ok + bad + skip + planned)) -eq 0 ]; then
		problem="printed no results, exit status $status"
	elif [ $((ok + bad + skip)) -ne "$planned" ]; then
		problem="printed $((ok + bad + skip)) of $planned results, exit status $status"
	elif [ $status -ne 0 ] && [ "$bad" -eq 0 ]; then
		problem="exit status $status"
	fi
	[ -n "$problem" ] && bad=$((bad + 1))
	printf '  TEST    %-36s %3d ok%s%s\n' "$label" "$ok" "${problem:+, $problem}" \
		"$([ "$bad" -gt 0 ] && echo ", FAILED")"
	grep -i '# *skip' "$log/out"
	if [ "$bad" -gt 0 ]; then
		grep -Ev '^ok |^1\.\.' "$log/out"
		cat "$log/err"
	fi
	if [ "$bad" -gt 0 ] && [[ -z ${second-} && $label =~ ^(live|guest)/ ]]; then
		again+=("$label") again_failed=$((again_failed + bad))
		return
	fi
	passed=$((passed + ok)) failed=$((failed + bad)) skipped=$((skipped + skip))
}

# The failed live and guest tests once more.
run_again() {
	local label second=yes
	if [ ${#again[@]} -gt 3 ]; then
		failed=$((failed + again_failed))
		return
	fi
	for label in "${again[@]}"; do
		echo "  AGAIN   $label, which failed"
		kernel_test "$label"
	done
}

# kernel_test LABEL: live/NAME or guest/NAME
kernel_test() {
	local limit=240
	[[ $1 == guest/* ]] && limit=900
	PROFSCRIPT=$PWD/profscript TEST_TIMEOUT=${TEST_TIMEOUT:-$limit} run "$1" bash "tests/$1.sh"
}

# suite BUILD_DIR PROGRAM SUFFIX: what needs no particular kernel
suite() {
	local file label
	export PROFSCRIPT=$PWD/$2
	for file in tests/unit/*/*_test.c tests/unit/*/*/*_test.c; do
		file=${file#tests/} file=${file%.c}
		run "$file$3" "$1/$file"
	done
	for file in tests/unit/*/*_spec.lua tests/unit/*/*/*_spec.lua; do
		label=${file#tests/}
		run "${label%.lua}$3" "$PROFSCRIPT" --lua /usr/bin/busted -o TAP "$file"
	done
	for file in tests/golden/*_test.sh; do
		[ -e "$file" ] && run "golden/$(basename "$file" .sh)$3" bash "$file"
	done
}

suite build profscript ''
for file in tests/{live,guest}/*_test.sh; do
	label=${file#tests/}
	[ -e "$file" ] && kernel_test "${label%.sh}"
done
suite build/asan build/asan/profscript ' (asan)'
run_again

[ $((passed + failed + skipped)) -gt 0 ] || { echo "no test program is called ${words[*]}"; failed=1; }
echo "$passed passed, $failed failed, $skipped skipped"
[ $failed -eq 0 ]
