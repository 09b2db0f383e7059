#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only
# Completion, as an interactive bash asks for it.
. "$(dirname "$0")/../../../lib.sh"
needs_tracepoint sched:sched_switch
cd "$TMP" || exit 1

# complete_bash LINE
complete_bash() {
	bash --norc -c '
		. <("$PROFSCRIPT" completion bash)
		compopt() { echo "option $*"; }
		COMP_LINE=$1 COMP_POINT=${#1} COMP_WORDBREAKS=$'\'' \t\n"\047><=;|&(:'\''
		_profscript "$PROFSCRIPT" "${1##*[ :=]}" ""
		printf "%s\n" "${COMPREPLY[@]}"' bash "$1"
}
export PROFSCRIPT
expect_line 'completes profilers' '^multi-trace$' <(complete_bash 'profscript mul')
expect_line 'completes other names of profilers' '^event-care$' <(complete_bash 'profscript event-c')
expect_line 'and as sources' '^event-care/$' <(complete_bash 'profscript trace -e event-c')
expect_line 'completes options' '^--exit-n$' <(complete_bash 'profscript trace --ex')
for option in call-graph prio perfeval-pids; do
	check "stat, which only counts, has no --$option: help, page" bash -c \
		"! { '$PROFSCRIPT' stat --help=all; '$PROFSCRIPT' man stat | tr -d '\\\\'; } | grep -q -e '--$option'"
	check 'nor its completion' test -z "$(complete_bash "profscript stat --$option" | grep -e --)"
	[ $option = perfeval-pids ] || # is taken, and said to have no effect
		refused 'nor it' 2 ".*option '--$option' does not apply to this profiler" stat -e cs --$option 1
done
expect_line 'completes values' '^json$' <(complete_bash 'profscript trace --format=')
expect_line 'completes events' '^sched_switch$' <(complete_bash 'profscript trace -e sched:sched_swi')
expect_line 'events go on' '^option -o nospace$' <(complete_bash 'profscript trace -e sched:sched_swi')
expect_line 'completes after a comma' '^cs,page-faults$' <(complete_bash 'profscript trace -e cs,page')
expect_line 'completes fields' '^sched_switch/prev_state$' <(complete_bash 'profscript trace -e sched:sched_switch/prev_')
expect_line 'completes keys' '^next_pid$' <(complete_bash 'profscript multi-trace -e sched:sched_switch//key=next')
expect_line 'completes attributes' '^sched_switch//stack/$' <(complete_bash 'profscript trace -e sched:sched_switch//s')
touch a_recording
expect_line 'completes files' '^a_recording$' <(complete_bash 'profscript trace --input a_rec')
expect_line 'completes commands' '^chmod$' <(complete_bash 'profscript trace -e cs chmo')
