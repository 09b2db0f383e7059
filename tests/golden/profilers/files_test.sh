#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only
# files: operations by descriptor compared with those computed from perf script's text. A recording of perf has no paths.
. "$(dirname "$0")/../../lib.sh"
export TZ=UTC

# operations RECORDING: "TID,OP,(fd N),FAILED,BYTES,NS" of each; descriptors have one digit
operations() {
	perf script -i "$DATA/$1.data" --ns -F tid,time,event,trace 2>/dev/null |
		sed -nE 's/^ *([0-9]+) +([0-9]+)\.([0-9]+): +raw_syscalls:(sys_[a-z]+): NR ([0-9]+) (\(([0-9a-f]+), .*|= (.*))$/\1 \2\3 \4 \5 \7\8/p' |
		awk 'BEGIN { op[0] = op[17] = "read"; op[1] = "write"; op[3] = "close"; op[217] = "list"; op[257] = "open" }
			!($4 in op) { next }
			$3 == "sys_enter" { since[$1] = $2; fd[$1] = $5; next }
			since[$1] { fd_of = $4 != 257 ? fd[$1] : $5
				print $1 "," op[$4] "," (fd_of < 0 ? "(unknown)" : "(fd " fd_of ")") "," ($5 < 0) "," \
					(op[$4] ~ /read|write/ && $5 > 0 ? $5 : 0) "," $2 - since[$1]
				since[$1] = 0 }'
}

for recording in zstd syscalls; do
	operations $recording >"$TMP/operations"
	awk -F, -v OFS=, '{ key = $1 "," $2 "," $3; n[key]++; err[key] += $4; bytes[key] += $5; ns[key] += $6 }
		END { for (key in n) print key, n[key], err[key], bytes[key], ns[key] }' "$TMP/operations" | sort >"$TMP/want"
	csv files --input "$DATA/$recording.data" --top 1000
	tail -n +2 "$TMP/out" | sed -E 's/^[^(]*\(([0-9]+)\)/\1/' | awk -F, -v OFS=, '{ print $1, $2, $10, $3, $4, $5, $6 }' |
		sort >"$TMP/got"
	check "$recording: operations by thread and descriptor" diff "$TMP/want" "$TMP/got"
	check "$recording: there are reads and failures" bash -c "grep -q ',read,' '$TMP/got' && grep -q ',open,(unknown),13,13,' '$TMP/got'"
done

expect_output files syscalls files
csv files --input "$DATA/syscalls.data" --by op
check '--by op: one row for each' test "$(column op | sort | tr '\n' ' ')" = 'close open read write '
check '--by op: their calls' test "$(total calls)" -eq "$(wc -l <"$TMP/operations")"
slow=$(awk -F, '$6 > 5000' "$TMP/operations" | wc -l)
"$PROFSCRIPT" files --input "$DATA/syscalls.data" --than 5us --json >"$TMP/out" 2>"$TMP/err"
check "--than: $slow slow operations" test "$(grep -c '^{"event":"slow"' "$TMP/out")" -eq "$slow" -a "$slow" -gt 0
refused 'a column that does not exist' 2 "--by: no column 'fil'; did you mean 'file'\?" \
	files --by fil --input "$DATA/syscalls.data"
