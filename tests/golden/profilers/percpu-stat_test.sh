#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only
# signal, sched-migrate and percpu-stat on recordings: figures against those that are known of the programs
# that were recorded, or counted from perf script's text; outputs against *.expect files.
# UPDATE=1 writes these anew, from what the figures have proved.
. "$(dirname "$0")/../lib.sh"
here=$TOP/tests/golden
export TZ=UTC

# outputs NAME DATA ARG...: in each form they are NAME.expect, NAME-json.expect and NAME-csv.expect
outputs() {
	local name=$1 data=$here/$2.data expected
	shift 2
	for form in '' -json -csv; do
		expected=$here/$name$form.expect
		[ -n "${UPDATE-}" ] && "$PROFSCRIPT" "$@" ${form:+-$form} --input "$data" >"$expected"
		expect_text "$(basename "$expected")" "$expected" "$PROFSCRIPT" "$@" ${form:+-$form} --input "$data"
	done
}

# csv ARG... DATA: all rows but the head, without table and time
csv() {
	"$PROFSCRIPT" "${@:1:$#-1}" --csv --input "$here/${*: -1}.data" 2>"$TMP/err" | tail -n +2 | cut -d, -f3- >"$TMP/got"
}

# --- signal ---------------------------------------------------------------------------------------
csv signal signal
check 'signal: who sent how many, to whom' diff <(cut -d, -f1,3,5- "$TMP/got") - <<-'END'
	USR1,states,states,delivered,12
	USR1,states,states,delivered,5
	TERM,sh,sleep,delivered,1
	RT5,sh,sleep,delivered,1
END
check 'signal: to itself' test "$(awk -F, '$2 == $4' "$TMP/got" | grep -c USR1)" = 2
csv signal --filter 'sig == 15' signal
check 'signal --filter: and no others' diff <(cut -d, -f1,7 "$TMP/got") <(echo TERM,1)
outputs signal signal signal
outputs signal-print signal signal --print --filter 'pid != common_pid'

# --- sched-migrate --------------------------------------------------------------------------------
# Of that machine each two CPUs share an L2 cache, each four an L3 cache.
csv sched-migrate migrate
check 'sched-migrate: all, and those within a cache' test "$(cut -d, -f1,2,4 "$TMP/got")" = 12,9,5
perf script -i "$here/migrate.data" -F trace 2>/dev/null | sed -nE 's/.*orig_cpu=([0-9]) dest_cpu=([0-9])$/\1 \2/p' |
	awk '{ llc += int($1 / 4) == int($2 / 4); l2 += int($1 / 2) == int($2 / 2) } END { print NR "," llc "," l2 }' >"$TMP/want"
check 'sched-migrate: as perf has them' diff "$TMP/want" <(cut -d, -f1,2,4 "$TMP/got")
"$PROFSCRIPT" sched-migrate --detail --input "$here/migrate.data" | sed -nE 's/.*orig_cpu=([0-9]) dest_cpu=([0-9])$/\1 \2/p' >"$TMP/got"
check 'sched-migrate --detail: from one L3 cache to another' diff <(printf '%s\n' '0 4' '6 2' '1 5') "$TMP/got"
csv sched-migrate nap
check 'sched-migrate: another machine, whose CPUs share the L3 cache only' test "$(cut -d, -f1,2,4 "$TMP/got")" = 8,8,0
"$PROFSCRIPT" sched-migrate --csv --input - <"$here/migrate.data" >"$TMP/got"
expect_text 'sched-migrate: on standard input' "$here/sched-migrate-csv.expect" cat "$TMP/got"
csv sched-migrate --filter 'dest_cpu < 4' migrate
check 'sched-migrate --filter: as many as perf has' test "$(cut -d, -f1 "$TMP/got")" = \
	"$(perf script -i "$here/migrate.data" -F trace 2>/dev/null | grep -c 'dest_cpu=[0-3]$')"
outputs sched-migrate migrate sched-migrate

# --- percpu-stat ----------------------------------------------------------------------------------
# CPU and column of what perf has; a period of idleness is two events.
perf script -i "$here/panel.data" -F cpu,event 2>/dev/null | awk '
	BEGIN {
		split("sys_enter context-switches cpu-migrations minor-faults softirq_entry hrtimer_expire_entry " \
			"workqueue_execute_start cpu_idle", name)
		for (i in name) column[name[i]] = i
	}
	{ gsub(/[][]/, ""); sub(/:$/, "", $2); sub(/.*:/, "", $2); n[$1 + 0, column[$2]]++ }
	END {
		for (cpu = 0; cpu < 4; cpu++) {
			line = cpu
			for (i = 1; i <= 8; i++) {
				count = i == 8 ? int(n[cpu, i] / 2) : n[cpu, i] + 0
				all[i] += count
				line = line "," count
			}
			print line
		}
		line = "ALL"
		for (i = 1; i <= 8; i++) line = line "," all[i]
		print line
	}' >"$TMP/want"
csv percpu-stat --syscalls panel
check 'percpu-stat: what perf counts' diff "$TMP/want" "$TMP/got"
check 'percpu-stat: the calls of the program' diff <(cut -d, -f1,2 "$TMP/got") - <<-'END'
	0,0
	1,5
	2,10
	3,0
	ALL,15
END
csv percpu-stat -i 20ms --syscalls panel
check 'percpu-stat -i: intervals add up to the whole' diff <(head -n 4 "$TMP/want" | cut -d, -f1-8) - < <(awk -F, '
	$1 != "ALL" { for (i = 2; i <= 8; i++) n[$1, i] += $i }
	END { for (cpu = 0; cpu < 4; cpu++) { line = cpu; for (i = 2; i <= 8; i++) line = line "," n[cpu, i]; print line } }' \
	"$TMP/got")
outputs percpu-stat panel percpu-stat --syscalls
outputs percpu-stat-interval panel percpu-stat -i 50ms -N 2
