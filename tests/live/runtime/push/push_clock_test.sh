# SPDX-License-Identifier: GPL-2.0-only
# shellcheck shell=bash
# Times that are sent follow --clock-offset and --tsc, as do all clocks in the stream, so perf prints converted times.
# Another profscript gets its own times back.
. "$(dirname "$0")/../../../lib.sh"
needs_tracepoint raw_syscalls:sys_enter
CALLS="raw_syscalls:sys_enter/id==$GETPPID"
wire=$TOP/tests/tools/wire.py
OFFSET=1000000000000000 # ns, a million seconds
cd "$TMP" || exit 1

now() { awk '{ printf "%.2f\n", $1 }' /proc/uptime; }

# pushed ARG...: sends events of a workload to a file, and reads that with perf and wire.py
pushed() {
	local before after
	rm -f file.data
	before=$(now)
	"$PROFSCRIPT" trace -m 1024 -e "$CALLS/push=-/" "$@" -- "$TOP/build/workloads/syscalls" 5000 2000 >file.data 2>err
	after=$(now)
	perf script --ns -i file.data 2>perf.err | grep -o '[0-9]*\.[0-9]*: raw' | tr -d .a-z: >times
	python3 "$wire" clocks file.data >clocks
	echo "$before $after" >span
}

# holds NAME PROGRAM: whether awk finds the clocks and times as they should be
holds() {
	awk -v offset=$OFFSET "$2" clocks times >awk.out
	result $? "$1" clocks
}

pushed --clock-offset $OFFSET
check 'perf prints shifted times' awk -v offset=$OFFSET '
	NR == FNR { from = ($1 - 1) * 1e9 + offset; to = ($2 + 1) * 1e9 + offset; next }
	{ n++; if ($1 < from || $1 > to) exit bad = 1 }
	END { exit bad || n < 5000 }' span times
holds 'HELLO says that they are shifted' '$1 == "hello" { ok = int($2 / 8) % 2 == 1 && $3 == offset } END { exit !ok }'
holds 'so are the pairs' '$1 == "pair" { n++; if ($3 - $4 != offset) bad = 1 } END { exit bad || !n }'
holds 'and the groups contain their records' '
	$1 == "group" && $4 { if (!n++) first = $2; last = $3 }
	NF == 1 { records++; if ($1 < first || $1 > last) bad = 1 }
	END { exit bad || !n || !records }'

# A pair and a TIME_CONV are sent together: the one tells the other.
python3 - clocks >conv <<'END'
import sys
rows = [line.split() for line in open(sys.argv[1])]
for pair, conv in zip(rows, rows[1:]):
    if conv[0] == 'conv':
        shift, mult, zero = map(int, conv[1:])
        print(zero + (int(pair[1]) * mult >> shift) - int(pair[2]))
END
check 'TIME_CONV converts to shifted times' awk '{ if ($1 > 1 || $1 < -1) bad = 1 } END { exit bad || !NR }' conv

pushed --tsc --clock-offset $OFFSET
holds 'cycles are sent' '
	$1 == "pair" { if (!n++) first = $2; last = $2; if ($3 - $2 - offset > 1e6 || $3 - $2 - offset < -1e6) bad = 1 }
	NF == 1 { records++; if ($1 - offset < first || $1 - offset > last + 1e10) bad = 1 }
	END { exit bad || !n || !records }'

# A recording that is sent on keeps its wall times.
"$PROFSCRIPT" trace -m 1024 -e "$CALLS" --push plain.data -- "$TOP/build/workloads/syscalls" 10 2>err
"$PROFSCRIPT" trace --input plain.data -e raw_syscalls:sys_enter --push shifted.data --clock-offset $OFFSET 2>err
for file in plain shifted; do
	"$PROFSCRIPT" trace --input $file.data -e raw_syscalls:sys_enter 2>err | sed 's/ *syscalls .*//' >$file.wall
done
check 'wall times do not shift' cmp plain.wall shifted.wall
check 'and are there' test "$(grep -c '^[0-9]*-[0-9]*-' plain.wall)" = 10

check_status 'negative times' 1 "$PROFSCRIPT" trace -e "$CALLS/push=-/" --clock-offset -$OFFSET \
	-- "$TOP/build/workloads/syscalls" 100
expect_line 'are refused' 'push: --clock-offset makes times negative' .check

# pulled NAME ARG...: events of a sender with these options have the receiver's own times
pulled() {
	local name=$1 before after
	workload syscalls 20000
	rm -f err
	"$PROFSCRIPT" trace -m 1024 -e "$CALLS/push=\"unix:$TMP/s\"/" -p "$WORKLOAD" "${@:2}" >sent 2>&1 &
	sender=$!
	wait_for 20 grep -q '^Listen at' sent
	wait_ready $sender
	"$PROFSCRIPT" trace -e "raw_syscalls:sys_enter//pull=\"unix:$TMP/s\"/" >out 2>err &
	receiver=$!
	wait_for 20 grep -q 'Connected to' err
	before=$(now)
	go
	after=$(now)
	kill -INT $sender 2>/dev/null # it ends with the workload
	wait $receiver
	echo "$before $after" >span
	grep -o '[0-9]*\.[0-9]*: raw' out | tr -d a-z: >times
	check "a receiver undoes $name" awk '
		NR == FNR { from = $1 - 0.03; to = $2 + 0.03; next }
		{ n++; if ($1 < from || $1 > to) exit bad = 1 }
		END { exit bad || n < 20000 }' span times
}
pulled 'an offset' --clock-offset $OFFSET
pulled 'a negative offset' --clock-offset -5000000000
pulled 'cycles' --tsc
pulled 'shifted cycles' --tsc --clock-offset $OFFSET
