#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only
# lock: waits compared with those computed from perf script's text.
. "$(dirname "$0")/../../lib.sh"
export TZ=UTC

# "lock,type,waits,total_ns" of all waits that have ended; those for futexes also those that last.
perf script -i "$DATA/locks.data" --ns -F tid,time,event,trace 2>/dev/null |
	sed -E 's/^ *([0-9]+) +([0-9]+)\.([0-9]+): +([a-z_:]+): */\1|\2\3|\4|/; s/, (op|val|utime):/|\1:/g' |
	awk -F '|' '
		function type_of(op, value) {
			if (op ~ /[08]0$/) return value ~ /0x0*2$/ ? "mutex" : "futex"
			if (op ~ /[0-7]9$/ && value !~ /0x0*[01]$/) return "join"
			return op ~ /[08]9$/ ? "condition" : ""
		}
		function add(lock, type, ns) { n[lock "," type]++; sum[lock "," type] += ns }
		{ last = $2 }
		$3 ~ /enter_futex/ {
			type[$1] = type_of($5, $6)
			lock[$1] = substr($4, 8); since[$1] = $2
		}
		$3 ~ /exit_futex/ && type[$1] {
			if ($4 != "0xfffffffffffffff5") add(lock[$1], type[$1], $2 - since[$1])
			type[$1] = ""
		}
		$3 ~ /contention_begin/ { split($4, part, " "); spin[$1] = part[1]; flags[$1] = $4; from[$1] = $2 }
		$3 ~ /contention_end/ && spin[$1] && $1 > 0 { split($4, part, " ")
			if (part[1] == spin[$1]) { add(spin[$1], flags[$1] ~ /SPIN/ ? "spinlock" : "other", $2 - from[$1]); spin[$1] = "" } }
		END {
			for (tid in type) if (type[tid]) add(lock[tid], type[tid], last - since[tid])
			for (key in n) print key "," n[key] "," sum[key]
		}' | sort >"$TMP/want"
csv lock --input "$DATA/locks.data" --top 1000
tail -n +2 "$TMP/out" | awk -F, -v OFS=, '{ key = $4 FS $5; n[key] += $6; sum[key] += $7 }
	END { for (key in n) print key, n[key], sum[key] }' | sort >"$TMP/got"
check 'waits by lock and type' diff "$TMP/want" "$TMP/got"
check 'there are mutexes, condition variables and spinlocks' \
	bash -c "grep -q ,mutex,5, '$TMP/got' && grep -q ,condition, '$TMP/got' && grep -q ,spinlock, '$TMP/got'"
csv lock --input "$DATA/locks.data" --only kernel
check '--only kernel' bash -c "! tail -n +2 '$TMP/out' | grep -v '\[kernel\]'"
csv lock --input "$DATA/locks.data" --only user --than 1h
check '--than: no wait is so long' test "$(wc -l <"$TMP/out")" -le 1
expect_output lock-hist locks lock --only user --hist
