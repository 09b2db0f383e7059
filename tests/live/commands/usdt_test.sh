#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only
# usdt: the probes of a program are listed, and become events that stay until they are deleted.
. "$(dirname "$0")/../../lib.sh"
. "$TOP/tests/tools/probes.sh"

check list "$PROFSCRIPT" usdt list "$PROGRAM"
expect_line 'it names each probe once' '^5$' <("$PROFSCRIPT" usdt list "$PROGRAM" | grep -c '^lab:')
check add "$PROFSCRIPT" usdt add "lab:plain@$PROGRAM number=%s text=+0(%s):string" "inlined@$PROGRAM"
check 'added probes are events' trace lab:plain,lab:inlined -- "$PROGRAM" $N
lines 'with the names given to arguments' $N lab:plain \
	"\"number=\" i \" text=\\\"\" $text \"\\\" arg3=\" ((256 * i - i + 128) % 256 - 128)"
lines 'in both places' $N lab:inlined
check del "$PROFSCRIPT" usdt del "lab:plain@$PROGRAM" "lab:inlined@$PROGRAM"
nothing_left del
refused 'a missing file' 1 'usdt: cannot read /nonexistent: No such file or directory' usdt list /nonexistent
for probe in foo@/bin/true /nonexistent; do
	"$PROFSCRIPT" usdt list "$probe" -v >"$TMP/out" 2>"$TMP/err"
	check "-v does not repeat what is wrong with $probe" test "$(wc -l <"$TMP/err")" -eq 1
done
check 'one of the probes is added' "$PROFSCRIPT" usdt add "lab:plain@$PROGRAM"
check 'del of a file deletes those that were added' "$PROFSCRIPT" usdt del "$PROGRAM"
nothing_left 'del of a file'
refused 'del without any' 1 "usdt: no probe of $PROGRAM has been added" usdt del "$PROGRAM"
