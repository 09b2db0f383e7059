#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only
# percpu-stat: numbers compared with those of the recorded programs or with perf script's text, outputs with
# *.expect files.
. "$(dirname "$0")/../../lib.sh"

# CPU and column of perf's events; an idle period is two events.
perf script -i "$DATA/panel.data" -F cpu,event 2>/dev/null | awk '
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
table panel percpu-stat --syscalls
check 'percpu-stat: the counts of perf' diff "$TMP/want" "$TMP/got"
check 'percpu-stat: the calls of the program' diff <(cut -d, -f1,2 "$TMP/got") - <<-'END'
	0,0
	1,5
	2,10
	3,0
	ALL,15
END
table panel percpu-stat -i 20ms --syscalls
check 'percpu-stat -i: intervals add up to the whole' diff <(head -n 4 "$TMP/want" | cut -d, -f1-8) - < <(awk -F, '
	$1 != "ALL" { for (i = 2; i <= 8; i++) n[$1, i] += $i }
	END { for (cpu = 0; cpu < 4; cpu++) { line = cpu; for (i = 2; i <= 8; i++) line = line "," n[cpu, i]; print line } }' \
	"$TMP/got")
expect_outputs percpu-stat panel percpu-stat --syscalls
expect_outputs percpu-stat-interval panel percpu-stat -i 50ms -N 2
