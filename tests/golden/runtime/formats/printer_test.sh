#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only
# Plugins of libtraceevent print the text of the events that they know, and nothing else changes.
. "$(dirname "$0")/../../../lib.sh"

# One event is printed by the plugin alone, with a text that must be escaped. For the other one it prints only what
# comes before the text of the print format.
cat >"$TMP/plugin.c" <<'C'
#include <stdlib.h>
#include <traceevent/event-parse.h>

static int print_switch(struct trace_seq *s, struct tep_record *record, struct tep_event *event, void *context)
{
	unsigned long long pid = 0;

	(void)context;
	tep_get_field_val(NULL, event, "prev_pid", record, &pid, 1);
	trace_seq_printf(s, "\033[31mfrom %llu", pid);
	tep_print_num_field(s, " to %llu", event, "next_pid", record, 1);
	return 0;
}

static int print_wakeup(struct trace_seq *s, struct tep_record *record, struct tep_event *event, void *context)
{
	(void)record, (void)event, (void)context;
	trace_seq_puts(s, "(woken) ");
	return 1;
}

int TEP_PLUGIN_LOADER(struct tep_handle *tep)
{
	tep_register_event_handler(tep, -1, "sched", "sched_switch", print_switch, NULL);
	tep_register_event_handler(tep, -1, "sched", "sched_wakeup", print_wakeup, NULL);
	return 0;
}
C
mkdir "$TMP/plugins"
# shellcheck disable=SC2046 # words
check 'a plugin' cc -shared -fPIC -o "$TMP/plugins/plugin_test.so" "$TMP/plugin.c" $(pkg-config --cflags --libs libtraceevent)

sched=(trace --input "$DATA/sched.data" --raw-fields)
"$PROFSCRIPT" "${sched[@]}" >"$TMP/raw"
# The same text from the raw fields. Built-in directories may have plugins too, which print other events.
sed -E -e 's/(sched_wakeup: )/\1(woken) /' \
	-e 's/(sched_switch: ).*prev_pid=([0-9]+) .*next_pid=([0-9]+) .*/\1\\x1b[31mfrom \2 to \3/' "$TMP/raw" |
	grep -E 'sched_(switch|wakeup):' >"$TMP/expected"
check 'both events are in the recording' grep -q '(woken)' "$TMP/expected"
TRACEEVENT_PLUGIN_DIR=$TMP/plugins "$PROFSCRIPT" "${sched[@]:0:3}" >"$TMP/out" 2>"$TMP/err"
result $? 'with a plugin' "$TMP/err"
grep -E 'sched_(switch|wakeup):' "$TMP/out" | diff "$TMP/expected" - >"$TMP/diff"
result $? 'its text' "$TMP/diff"
TRACEEVENT_PLUGIN_DIR=$TMP/plugins expect_text '--raw-fields' "$TMP/raw" "$PROFSCRIPT" "${sched[@]}"
"$PROFSCRIPT" "${sched[@]}" --json >"$TMP/json"
TRACEEVENT_PLUGIN_DIR=$TMP/plugins expect_text 'JSON has no texts' "$TMP/json" "$PROFSCRIPT" "${sched[@]:0:3}" --json
expect_text 'an empty TRACEEVENT_PLUGIN_DIR' "$TMP/raw" "$PROFSCRIPT" "${sched[@]:0:3}"

# Those that a distribution has.
dir=$(dpkg -L libtraceevent1-plugin 2>/dev/null | grep -m 1 'plugins$')
if [ -z "$dir" ]; then
	skip 'the plugins of this system' 'libtraceevent1-plugin is not installed'
	exit
fi
unset TRACEEVENT_PLUGIN_DIR
expect_output sched-plugins sched trace
expect_output allocs-plugins allocs trace -N 20
